package amd64

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestMeasured steps out of a function with a frame pointer whose value is unknown, as that of a blocked
// thread.
func TestMeasured(t *testing.T) {
	enter := []byte{0x55, 0x48, 0x89, 0xe5, 0x53} // push rbp; mov rbp, rsp; push rbx
	sub24, wait := []byte{0x48, 0x83, 0xec, 24}, []byte{0x0f, 0x05}
	program := []byte{cfi.DW_CFA_advance_loc | 1, cfi.DW_CFA_def_cfa_offset, 16, cfi.DW_CFA_offset | 6, 2,
		cfi.DW_CFA_advance_loc | 3, cfi.DW_CFA_def_cfa_register, 6}
	follow := &unwind.Bounds{Follow: true}
	for _, c := range []struct {
		name     string
		prolog   []byte // behind enter
		program  []byte
		bounds   *unwind.Bounds
		distance uint64 // of the stack pointer to a return address
		ok       bool
	}{
		{"a frame of fixed size", sub24, program, follow, 40, true},
		{"a stack aligned as every function's",
			slices.Concat([]byte{0x48, 0x83, 0xe4, 0xf0}, sub24), program, follow, 48, true},
		{"a stack aligned to 32 bytes",
			slices.Concat([]byte{0x48, 0x83, 0xe4, 0xe0}, sub24), program, follow, 48, false},
		{"the same, measured from elsewhere",
			slices.Concat([]byte{0x48, 0x83, 0xe4, 0xe0}, sub24), program, follow, 64, false},
		{"sub rsp, rax", []byte{0x48, 0x29, 0xc4}, program, follow, 16, false},
		{"no return address", sub24, program, follow, 48, false},
		{"bounds that forbid it", sub24, program, nil, 40, false},
		{"a part that begins in the frame", sub24,
			[]byte{cfi.DW_CFA_def_cfa, 6, 16, cfi.DW_CFA_offset | 6, 2}, follow, 40, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, leave := slices.Concat(enter, c.prolog, wait), []byte{0xc9, 0xc3, 0xc9, 0xc3}
			u, s, r := unwinder(describedTable(t, append(code, leave...), c.program)), newStack(),
				start(codeLo+uint64(len(code)), sp0)
			r.Known = 1 << context.RSP
			s.Set(sp0+c.distance, codeCall)
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), c.bounds, &f)
			if !c.ok && stop != unwind.Unreadable {
				t.Errorf("%v, at %#x/%#x", stop, r.RIP, r.SP())
			} else if c.ok && (stop != unwind.StopNone || r.RIP != codeCall || r.SP() != sp0+c.distance+8 ||
				r.Known>>context.RBP&1 == 0 || r.GPR[context.RBP] != s.Word(sp0+c.distance-8)) {
				t.Errorf("%v, at %#x/%#x", stop, r.RIP, r.SP())
			}
		})
	}
}

// TestMeasuredBranch does not step out of a function in which one of two ways to the frame's instruction
// calls alloca: push rbp; mov rbp, rsp; push rbx; test edi, edi; jne 2f; 1: sub rsp, 24; syscall; 2: sub rsp,
// rax; jmp 1b. On the path without alloca, a return address is at the measured place.
func TestMeasuredBranch(t *testing.T) {
	code := []byte{0x55, 0x48, 0x89, 0xe5, 0x53, 0x85, 0xff, 0x75, 6, 0x48, 0x83, 0xec, 24, 0x0f, 0x05,
		0x48, 0x29, 0xc4, 0xeb, 0xf5}
	program := []byte{cfi.DW_CFA_advance_loc | 1, cfi.DW_CFA_def_cfa_offset, 16, cfi.DW_CFA_offset | 6, 2,
		cfi.DW_CFA_advance_loc | 3, cfi.DW_CFA_def_cfa_register, 6}
	u, s, r := unwinder(describedTable(t, code, program)), newStack(), start(codeLo+15, sp0)
	r.Known = 1 << context.RSP
	s.Set(sp0+40, codeCall)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), &unwind.Bounds{Follow: true}, &f)
	expect.True(t, stop == unwind.Unreadable, "%v, at %#x/%#x", stop, r.RIP, r.SP())
}

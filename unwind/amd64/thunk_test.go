package amd64

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// TestThunkRows steps from each place of a function with an inlined thunk: sub rsp, 16;
// call 1f; 0: pause; lfence; jmp 0b; 1: BODY; ret; nop.
func TestThunkRows(t *testing.T) {
	head := []byte{0x48, 0x83, 0xec, 0x10, 0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9}
	drop := slices.Concat(head, []byte{0x48, 0x8d, 0x64, 0x24, 8, 0xc3, 0x90, 0x90})
	load := slices.Concat(head, []byte{0x4c, 0x89, 0x1c, 0x24, 0xc3, 0x90, 0x90, 0x90}) // r11
	call := slices.Concat(head, []byte{0x4c, 0x89, 0x1c, 0x24, 0xc3, 0xe8, 0xea, 0xff, 0xff, 0xff, 0x90})
	other := slices.Concat(head, []byte{0x4c, 0x89, 0x5c, 0x24, 0xc3, 0x90, 0x90, 0x90})
	// CFA RSP+24 at the call, RSP+16 from the body on, rbx saved in the second word below it.
	program := []byte{cfi.DW_CFA_advance_loc | 4, cfi.DW_CFA_def_cfa_offset, 24, cfi.DW_CFA_offset | 3, 3,
		cfi.DW_CFA_advance_loc | 12, cfi.DW_CFA_def_cfa_offset, 16}
	for _, c := range []struct {
		name  string
		code  []byte
		at    uint64
		exact bool
		cfa   uint64 // above RSP
		rbx   bool   // it is read from its word
	}{
		{"before", drop, 2, true, 8, false},
		{"at the call of a return thunk", drop, 4, true, 24, true},
		{"at the body", drop, 16, true, 16, false},
		{"at the return", drop, 21, true, 8, false},
		{"behind", drop, 22, true, 24, true},
		{"at a return address behind", drop, 23, false, 24, true},
		{"at the call of a branch", load, 4, true, 24, true},
		{"at the body of a branch", load, 16, true, 32, true},
		{"at the return of a branch", load, 20, true, 32, true},
		{"at the call of a called branch", call, 4, true, 8, false},
		{"at the body of a called branch", call, 16, true, 16, false},
		{"at the return of a called branch", call, 20, true, 16, false},
		{"behind a called branch", call, 26, true, 24, true},
		{"behind a branch", load, 21, true, 24, true},
		{"at other code", other, 16, true, 16, true},
		{"behind other code", other, 22, true, 16, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(describedTable(t, c.code, program)), newStack(), start(codeLo+c.at, sp0)
			s.Set(sp0+c.cfa-8, codeCall)
			r.GPR[context.R11] = codeLo // of a call
			rbx := r.GPR[context.RBX]
			if c.rbx {
				r.GPR[context.R11] = codeLo + 23
				rbx = s.Word(sp0 + c.cfa - 24)
			}
			var f unwind.Frame
			_, stop := stepOf(u, &r, c.exact, s.Window(), nil, &f)
			must.True(t, stop == unwind.StopNone, "%v", stop)
			expect.True(t, r.RIP == codeCall && r.SP() == sp0+c.cfa && r.GPR[context.RBX] == rbx,
				"at %#x/%#x, rbx %#x; want %#x/%#x, %#x", r.RIP, r.SP(), r.GPR[context.RBX], codeCall,
				sp0+c.cfa, rbx)
		})
	}
}

// TestThunkBodyOfTwelveBytes: the row of a thunk's body may be as long as the code between the thunk's call
// and its body.
func TestThunkBodyOfTwelveBytes(t *testing.T) {
	code := slices.Concat([]byte{0xe8, 7, 0, 0, 0}, x86.Trap,
		[]byte{0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3}, make([]byte, 6))
	program := []byte{cfi.DW_CFA_advance_loc | 12, cfi.DW_CFA_def_cfa_offset, 16, cfi.DW_CFA_advance_loc | 12,
		cfi.DW_CFA_def_cfa_offset, 40}
	for at, cfa := range map[uint64]uint64{0: 8, 12: 16, 17: 8} {
		u, s, r := unwinder(describedTable(t, code, program)), newStack(), start(codeLo+at, sp0)
		s.Set(sp0+cfa-8, codeCall)
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+cfa,
			"at %d: %v at %#x/%#x", at, stop, r.RIP, r.SP())
	}
}

// TestBeginningIsNoThunk: the bytes of a thunk's body at a function's beginning follow no thunk's call, so
// the CFA that begins there is right for all of its row.
func TestBeginningIsNoThunk(t *testing.T) {
	// push rbx; lea rsp, [rsp+8]; ret
	code := []byte{0x53, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3, 0x90, 0x90, 0x5b, 0xc3}
	program := []byte{cfi.DW_CFA_advance_loc | 1, cfi.DW_CFA_def_cfa_offset, 16}
	u, s, r := unwinder(describedTable(t, code, program)), newStack(), start(codeLo+8, sp0)
	s.Set(sp0+8, codeCall)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+16,
		"%v at %#x/%#x", stop, r.RIP, r.SP())
}

// TestBehindThunk steps from return addresses after an inlined thunk, where gcc's CFA remains
// the thunk's, even in rows that are remembered and restored.
func TestBehindThunk(t *testing.T) {
	code := slices.Concat([]byte{0x48, 0x83, 0xec, 0x10, 0xe8, 7, 0, 0, 0}, x86.Trap,
		[]byte{0xeb, 0xf9, 0x4c, 0x89, 0x1c, 0x24, 0xc3}, make([]byte, 20))
	// The CFA is 40 bytes away up to the thunk. rbx is saved in the word of slot.
	program := func(slot byte, more ...byte) []byte {
		return append([]byte{cfi.DW_CFA_advance_loc | 4, cfi.DW_CFA_def_cfa_offset,
			40, cfi.DW_CFA_offset | 3, slot,
			cfi.DW_CFA_advance_loc | 12, cfi.DW_CFA_def_cfa_offset, 16}, more...)
	}
	restored := []byte{cfi.DW_CFA_advance_loc | 8, cfi.DW_CFA_remember_state,
		cfi.DW_CFA_restore | 3, cfi.DW_CFA_def_cfa_offset, 8,
		cfi.DW_CFA_advance_loc | 1, cfi.DW_CFA_restore_state}
	for _, c := range []struct {
		name string
		code []byte
		row  []byte
		at   uint64
		cfa  uint64 // 0: no information
	}{
		{"saved below RSP", code, program(3), 23, 40},
		{"saved above RSP", code, program(2), 23, 40},
		{"restored", code, program(3, restored...), 30, 40},
		{"restored, saved above RSP", code, program(2, restored...), 30, 40},
		{"without a thunk, saved above RSP", make([]byte, 40), program(2), 23, 16},
		{"without a thunk, saved below RSP", make([]byte, 40), program(3), 23, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(describedTable(t, c.code, c.row)), newStack(), start(codeLo+c.at, sp0)
			s.Set(sp0+c.cfa-8, codeCall)
			var f unwind.Frame
			_, stop := stepOf(u, &r, false, s.Window(), nil, &f)
			if c.cfa == 0 {
				expect.True(t, stop == unwind.NoInfo, "%v, want no information", stop)
			} else if stop != unwind.StopNone || r.RIP != codeCall || r.SP() != sp0+c.cfa {
				t.Errorf("%v at %#x/%#x, want %#x/%#x", stop, r.RIP, r.SP(), codeCall, sp0+c.cfa)
			}
		})
	}
}

// TestThunkOfRBP: the thunk of an indirect call is in a function whose CFA does not depend on RSP. The CFA
// counts from RBP, or is saved below RBP, as in a function of gcc that aligns its stack.
func TestThunkOfRBP(t *testing.T) {
	code := slices.Concat([]byte{0xe8, 7, 0, 0, 0}, x86.Trap,
		[]byte{0xeb, 0xf9, 0x4c, 0x89, 0x1c, 0x24, 0xc3, 0xe8, 0xea, 0xff, 0xff, 0xff})
	for name, cfa := range map[string][]byte{
		"from RBP": {cfi.DW_CFA_def_cfa, 6, 16},
		"below it": {cfi.DW_CFA_def_cfa_expression, 3, cfi.DW_OP_breg0 + 6, 0x58, cfi.DW_OP_deref},
	} {
		program := slices.Concat(cfa,
			[]byte{cfi.DW_CFA_offset | 6, 2, cfi.DW_CFA_advance_loc | 12, cfi.DW_CFA_def_cfa_offset, 16})
		for at, cfa := range map[uint64]uint64{0: 8, 12: 16, 16: 16} {
			u, s, r := unwinder(describedTable(t, code, program)), newStack(), start(codeLo+at, sp0)
			s.Set(sp0+cfa-8, codeCall)
			fp := r.FP()
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+cfa && r.FP() == fp,
				"%s, at %d: %v at %#x/%#x, rbp %#x", name, at, stop, r.RIP, r.SP(), r.FP())
		}
	}
}

// TestThunkByGoto: a thunk that is a function is left by the rule of its jump target, whether
// the thunk was called or jumped to.
func TestThunkByGoto(t *testing.T) {
	program := []byte{cfi.DW_CFA_advance_loc | 4, cfi.DW_CFA_def_cfa_offset, 24, cfi.DW_CFA_offset | 3, 3}
	for _, c := range []struct {
		name string
		at   uint64
		to   uint64
		cfa  uint64
		rbx  bool // it is read from the frame
	}{
		{"to a label, at the call", 0, codeLo + 4, 24, true},
		{"to a label, at the body", 12, codeLo + 4, 32, true},
		{"to a label, at the return", 16, codeLo + 4, 32, true},
		{"to a function, at the call", 0, codeLo, 8, false},
		{"to a function, at the body", 12, codeLo, 16, false},
		{"to code without unwind data", 12, codeLo + 0x700, 16, false},
		{"to no code", 16, 0x1234, 16, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(describedTable(t, nil, program)), newStack(), start(thunkLo+c.at, sp0)
			s.Set(sp0+c.cfa-8, codeCall)
			r.GPR[context.R11] = c.to
			rbx := r.GPR[context.RBX]
			if c.rbx {
				rbx = s.Word(sp0 + c.cfa - 24)
			}
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+c.cfa &&
				r.GPR[context.RBX] == rbx && f.IP == thunkLo+c.at,
				"%v at %#x/%#x, rbx %#x, of %#x", stop, r.RIP, r.SP(), r.GPR[context.RBX], f.IP)
		})
	}
}

// TestThunkKeepsRegisters: a thunk that cannot be left leaves the registers as they were.
func TestThunkKeepsRegisters(t *testing.T) {
	u, s, r := unwinder(describedTable(t, nil, []byte{cfi.DW_CFA_def_cfa_offset, 16})),
		newStack(), start(thunkLo, sp0)
	r.GPR[context.R11] = codeLo
	s.Set(sp0+8, 0)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.NullReturn && r.RIP == thunkLo && r.SP() == sp0,
		"%v at %#x/%#x", stop, r.RIP, r.SP())
}

// TestPEThunk: the walk leaves a thunk that jumps, in a PE function, by the rule of its jump target.
func TestPEThunk(t *testing.T) {
	// sub rsp, 40; call 1f; 0: pause; lfence; jmp 0b; 1: mov [rsp], r11; ret
	code := []byte{0x48, 0x83, 0xec, 0x28, 0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb,
		0xf9, 0x4c, 0x89, 0x1c, 0x24, 0xc3}
	untrapped := slices.Concat(code[:9], []byte{0x90}, code[10:])
	plain := slices.Concat(code[:4], bytes.Repeat([]byte{0x90}, 12), code[16:])
	// sub rsp, 40; jmp 2f; nop; nop; 2: the thunk
	jump := slices.Concat(code[:4], []byte{0xe9, 2, 0, 0, 0, 0x90, 0x90}, code[4:])
	short := slices.Concat(code[:4], []byte{0xeb, 2, 0x90, 0x90}, code[4:])
	words := make([]byte, 8*8)
	for i := range 8 {
		binary.LittleEndian.PutUint64(words[8*i:], peBase+peFn+0x20+uint64(i))
	}
	for _, c := range []struct {
		name   string
		code   []byte
		at     uint64
		target uint64
		want   uint64 // word of the return address
	}{
		{"at the body", code, 16, peBase + peFn + 24, 6},
		{"at the return", code, 20, peBase + peFn + 24, 6},
		{"at the return, to the function's start", code, 20, peBase + peFn, 1},
		{"at the call", code, 4, peBase + peFn + 24, 5},
		{"at the call, to the function's start", code, 4, peBase + peFn, 0},
		{"at a jump to the thunk: a switch", jump, 4, peBase + peFn + 24, 5},
		{"at a jump to the thunk: a tail call", jump, 4, peBase + peFn, 0},
		{"at a short jump to the thunk", short, 4, peBase + peFn + 0x40, 5},
		{"at a short jump to the thunk: a tail call", short, 4, peBase + peFn, 0},
		{"at the return, to unknown code", code, 20, 0x1234, 1},
		{"at another return, over code that is no trap", untrapped, 20, peBase + peFn + 24, 0},
		{"at another return", plain, 20, peBase + peFn + 24, 0},
	} {
		for _, cached := range []bool{true, false} {
			u, regs, f := peUnwinder(peImage(info(1, 0, 4, 0, 4, 0x42), c.code)),
				peRegs(peFn+uint32(c.at)), unwind.Frame{}
			u.DisableCache(!cached)
			regs.GPR[context.R11] = c.target
			mem := memory.New(memory.Run{Addr: peRSP, Data: words})
			_, stop := stepOf(u, &regs, true, mem, nil, &f)
			expect.True(t, stop == 0 && regs.RIP == peBase+peFn+0x20+c.want &&
				regs.GPR[context.RSP] == peRSP+8*(c.want+1),
				"%s, cached %v: %v at %#x, sp %#x", c.name, cached, stop, regs.RIP, regs.GPR[context.RSP])
		}
	}
}

package amd64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A thread interrupted in managed code has no unmanaged frame to walk.
func TestWalkFromManaged(t *testing.T) {
	u, r := lab.New(t, lab.Plain, lab.Last).(*Unwinder), start(jitIP, sp0)
	before := r
	var out [4]unwind.Frame
	n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, newStack().Window(), nil, out[:])
	expect.True(t, n == 0 && exact && stop == unwind.Managed && r == before,
		"%d frames, exact %v, %v", n, exact, stop)
}

// A return hook with unknown code: its call frame information (CFA = RSP+24 here)
// gives a CFA one word too high. The word in the return address's place is the
// caller's data, and the true address is below it. Without such return hooks, the word
// is used as it is.
func TestHijack(t *testing.T) {
	for _, c := range []struct {
		name      string
		above     uint64 // at CFA-8
		below     uint64 // at CFA-16
		ip, sp    uint64
		wantTrust unwind.Trust
		stop      unwind.Stop
		n         int
	}{
		{"no such hooks", 0x33, jitIP, 0x33, sp0 + 24, unwind.TrustCFI, unwind.NoInfo, 2},
		{"hijacked", 0x33, jitIP, jitIP, sp0 + 16, unwind.TrustCFI, unwind.Managed, 1},
		{"hijacked, the word above happens to be 0", 0, jitIP, jitIP, sp0 + 16,
			unwind.TrustCFI, unwind.Managed, 1},
		{"not hijacked: the return address is managed", jitIP + 64, jitIP, jitIP + 64, sp0 + 24,
			unwind.TrustCFI, unwind.Managed, 1},
		{"not hijacked: the return address is in a module", at(1), jitIP, at(1), sp0 + 24,
			unwind.TrustCFI, unwind.EndOfStack, 2},
		{"garbage, and nothing managed below", 0x33, 0x44, 0x33, sp0 + 24, unwind.TrustCFI, unwind.NoInfo, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 24, 0x80 | 3, 3}},
				fn{Program: []byte{0x07, 16}}))
			if c.name != "no such hooks" {
				u.SetReturnHooks([]unwind.ReturnHook{{Arch: context.ArchAMD64, Off: -8}})
			}
			s, r := newStack(), start(at(0), sp0)
			s.Set(sp0+16, c.above)
			s.Set(sp0+8, c.below)
			var out [8]unwind.Frame
			n, exact, stop := walkOf(u, &r, true, unwind.TrustContext, s.Window(), nil, out[:])
			expect.True(t, n == c.n && stop == c.stop && !exact && r.RIP == c.ip && r.SP() == c.sp &&
				out[0].CFA == c.sp,
				"%d frames, %v, exact %v, at %#x/%#x, CFA %#x", n, stop, exact, r.RIP, r.SP(), out[0].CFA)
			expect.True(t, u.trust == c.wantTrust && r.GPR[context.RBX] == s.Word(sp0),
				"trust %v, rbx %#x", u.trust, r.GPR[context.RBX])
			one := start(at(0), sp0)
			var f unwind.Frame
			_, stop = stepOf(u, &one, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && one.RIP == c.ip && f == out[0],
				"Step: %v at %#x, %+v", stop, one.RIP, f)
		})
	}
}

// Only a step by call frame information can be mistaken for the hijack stub's.
func TestNoHijackInLinkageTable(t *testing.T) {
	u := unwinder(codeTable(t, []byte{0xff, 0x25, 1, 2, 3, 4, 0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0}))
	s, r := newStack(), start(codeLo, sp0)
	s.Set(sp0, 0x33)
	s.Set(sp0-8, jitIP)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && r.RIP == 0x33, "%v at %#x", stop, r.RIP)
}

// Signal frames may go down the stack, so only the limit ends a chain of them.
func TestSignalChainIsLimited(t *testing.T) {
	ops := []byte{cfi.DW_OP_drop, cfi.DW_OP_breg0 + 7, 0x78} // RSP = RSP-8
	program := cat(expr(0x16, 7, ops...), []byte{0x09, 16, 0, 0x08, 0})
	u := unwinder(makeTable(t, 1, fn{Program: program, Signal: true}))
	r := start(at(0), stackLow+stackSize-8)
	r.GPR[context.RAX] = at(0)
	out := make([]unwind.Frame, 300)
	n, _, stop := walkOf(u, &r, true, unwind.TrustContext, newStack().Window(),
		&unwind.Bounds{MaxSteps: 200}, out)
	expect.True(t, n == 200 && stop == unwind.Limit, "%d frames, %v", n, stop)
}

// TestOutsideInterrupted: a frame that a signal interrupted outside all known code is doubtful,
// except after a call through a null pointer.
func TestOutsideInterrupted(t *testing.T) {
	for ip, want := range map[uint64]unwind.Trust{0x10: unwind.TrustCFI, nullPage: unwind.TrustOutside} {
		u, s := unwinder(makeTable(t, 1, fn{Program: []byte{0x0e, 16}, Signal: true})), newStack()
		s.Set(sp0+8, ip)
		all, f := context.FromAMD64(start(at(0), sp0)), unwind.Frame{}
		state := unwind.Interrupted(&all)
		stop := u.Step(&state, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && state.Exact && state.Trust == want,
			"%#x: %v, exact %v by %v, want %v", ip, stop, state.Exact, state.Trust, want)
	}
}

// TestSideNull: a return address of 0 is no frame, by whatever row, unless a signal has
// interrupted a call to 0.
func TestSideNull(t *testing.T) {
	for _, signal := range []bool{false, true} {
		want := unwind.NullReturn
		if signal {
			want = unwind.StopNone
		}
		u, s := unwinder(makeTable(t, 1, fn{Program: []byte{0x0c, 10, 16}, Signal: signal})), newStack()
		r := start(at(0), sp0)
		r.GPR[context.R10] = sp0
		s.Set(sp0+8, 0)
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
		expect.True(t, stop == want, "signal %v: %v, want %v", signal, stop, want)
	}
}

// A walk continues on another stack at a function that keeps its caller's stack
// pointer in RBP: rustc's stacker, gcc's -fsplit-stack.
func TestLeavesStack(t *testing.T) {
	sp := cat([]byte{0x12, dwarfRSP}, binary.AppendUvarint(nil, walktest.Apart/8)) // def_cfa_sf: -Apart
	table := makeTable(t, 1,
		fn{Program: []byte{0x0e, 16}},
		fn{Program: []byte{0x0c, dwarfRBP, 16, 0x80 | dwarfRBP, 2}},
		fn{Program: []byte{0x0f, 2, cfi.DW_OP_breg0 + dwarfRBP, 16, 0x80 | dwarfRBP, 2}},
		fn{Program: []byte{0x0c, dwarfRBP, 16, 0x80 | dwarfRBP, 2, 0x10, 3,
			2, cfi.DW_OP_plus_uconst, 8}}, // rbx at CFA + 8
		fn{Program: []byte{0x0e, 16, 0x16, dwarfRSP, 2, cfi.DW_OP_breg0 + dwarfRBP, 16, 0x10, dwarfRA, 2,
			cfi.DW_OP_breg0 + dwarfRBP, 8,
			0x10, dwarfRBP, 2, cfi.DW_OP_breg0 + dwarfRBP, 0}},
		fn{Program: sp})
	code := bytes.Repeat([]byte{0x90}, walktest.LeavingFns*fnSize)
	for i := range walktest.LeavingFns {
		code[i*fnSize+0x10-5] = 0xe8
	}
	f := must.Get(elf.New(elfasm.Code(elfasm.AMD64, textLo, code), "code"))(t)
	m := *table.At(0)
	m.ELF, m.Image = f, nil
	l := walktest.Leaving{
		New: newCached, At: at, Managed: jitIP,
		Table: module.NewTable(1, []module.Module{m}, table.Managed()),
		Registers: func(ip, sp, fp uint64) context.Registers {
			r := start(ip, sp)
			r.GPR[context.RBP] = fp
			return context.FromAMD64(r)
		},
	}
	l.Run(t)
}

package arm64

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestStepByFollowing leaves code without unwind data, frame records and simple
// ends.
func TestStepByFollowing(t *testing.T) {
	const (
		ret     = 0xd65f03c0
		loads   = 0xf94007fe // ldr x30, [sp, #8]
		pair    = 0xa9407bfd // ldp x29, x30, [sp]
		loadX0  = 0xa94103f3 // ldp x19, x0, [sp, #16]
		up      = 0x910083ff // add sp, sp, #32
		other   = 0xf9400bfe // ldr x30, [sp, #16]
		further = 0x9100c3ff // add sp, sp, #48
		down    = 0xd10083ff // sub sp, sp, #32
		second  = 0x34000080 // cbz w0, four instructions on
		signed  = 0x7f << 48
		hard    = 0xaa1303f3 // mov x19, x19: more than what surely ends a function
	)
	byRegister := []uint32{0xd282000c, 0x8b2c63ff, ret} // mov x12, #0x1000; add sp, sp, x12
	for _, c := range []struct {
		name  string
		code  []uint32
		exact bool
		lr    uint64 // the word 8 above SP
		up    uint64 // how far the caller's SP is above; 0: no caller is found
	}{
		{"a frame taken by a register", append([]uint32{pair}, byRegister...), false, codeCall, 0x1000},
		{"x30 is kept", byRegister, true, 0, 0x1000},
		{"x30 of a frame that has called", byRegister, false, 0, 0},
		{"two ways out", []uint32{hard, second, loads, up, ret, loads, up, ret}, false, codeCall, 32},
		{"two ways out, a signed address", []uint32{hard, second, loads, up, ret, loads, up, ret},
			false, codeCall | signed, 32},
		{"no call before the return address",
			[]uint32{hard, second, loads, up, ret, loads, up, ret}, false, codeCall + 4, 0},
		{"ways that disagree", []uint32{hard, second, loads, up, ret, loads, further, ret}, false,
			codeCall, 0},
		{"ways to two callers", []uint32{hard, second, loads, up, ret, other, up, ret}, false, codeCall, 0},
		{"a way to what lies below the frame",
			[]uint32{hard, second, loads, down, ret, loads, up, ret}, false, codeCall, 32},
		{"the other way to what lies below",
			[]uint32{hard, second, loads, up, ret, loads, down, ret}, false, codeCall, 32},
		{"registers that are not kept",
			[]uint32{hard, loadX0, second, loads, up, ret, loads, up, ret}, false, codeCall, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(makeTable(t, c.code)), newStack(), start(codeLo, sp0)
			r.X[regLR] = codeCall
			s.Set(sp0+8, c.lr)
			s.Set(sp0+16, jitIP)
			at := stateOf(&r, c.exact)
			var f unwind.Frame
			stop := u.Step(&at, s.Window(),
				&unwind.Bounds{Low: stackLow, High: stackLow + stackSize, Guess: true}, &f)
			got := at.Regs.ARM64
			must.Equal(t, stop == unwind.StopNone, c.up != 0,
				"stop %v, pc %#x, sp %#x by %v", stop, got.PC, got.Sp, at.Trust)
			if stop == unwind.StopNone &&
				(got.PC != codeCall || got.Sp != sp0+c.up || at.Trust != unwind.TrustCode || known(&got, 0)) {
				t.Errorf("pc %#x, sp %#x by %v, known %#x", got.PC, got.Sp, at.Trust, got.Known)
			}
		})
	}
}

// TestStepFromBeginning: a function that never returns is run from its beginning, which a call
// names, or an end of another function before it. It restores the registers that the function
// saved or did not touch.
func TestStepFromBeginning(t *testing.T) {
	const (
		ret    = 0xd65f03c0
		other  = 0x91000400 // add x0, x0, #1
		begin  = codeLo + 4
		second = codeCall + 0x40 // behind another call of the function
		call   = 0x94000000
		jump   = 0x14000000
	)
	// stp x19, x30, [sp, #-32]!; mov x20, #0; bl; b
	body := []uint32{0xa9be7bf3, 0xd2800014, 0x94000040, 0x17ffffff}
	for name, c := range map[string]struct {
		before uint32 // the instruction before the function
		branch uint32 // before the return address
		lr     uint64 // the word that the function saved
		decoy  uint64 // a word below it
		ok     bool
	}{
		"a call names it":             {other, call, codeCall, 0, true},
		"a signed address":            {other, call, codeCall | 0x7f<<48, 0, true},
		"a call's address lies below": {other, call, codeCall, second, true},
		"a jump names it":             {other, jump, codeCall, 0, false},
		"no call names it":            {ret, 0, second, 0, true},
		"padding before it":           {0, 0, second, 0, true},
		"no call names it, no end":    {other, 0, second, 0, false},
		"no return address":           {ret, 0, codeCall + 8, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			table := makeTable(t, append([]uint32{c.before}, body...))
			m := table.At(0)
			branch := func(ra uint64, op uint32) {
				to := uint32(begin-(ra-4)) >> 2 & 0x3ffffff
				if op == 0 {
					op, to = call, 0x40
				}
				word, _ := m.ELF.BytesAt(ra-4-m.Bias, 4)
				binary.LittleEndian.PutUint32(word, op|to)
			}
			branch(codeCall, c.branch)
			if branch(second, call); c.branch == 0 {
				branch(second, 0)
			}
			u, s, r := unwinder(table), newStack(), start(begin+12, sp0)
			for reg := 19; reg < 22; reg++ {
				r.X[reg] = uint64(reg) << 40
				r.Known |= 1 << reg
			}
			s.Set(sp0+8, c.lr)
			if c.decoy != 0 {
				s.Set(sp0, c.decoy)
			}
			at := stateOf(&r, false)
			var f unwind.Frame
			stop := u.Step(&at, s.Window(),
				&unwind.Bounds{Low: stackLow, High: stackLow + stackSize, Guess: true}, &f)
			got := at.Regs.ARM64
			must.Equal(t, stop == unwind.StopNone, c.ok,
				"stop %v, pc %#x, sp %#x by %v", stop, got.PC, got.Sp, at.Trust)
			if want := c.lr & (1<<48 - 1); c.ok &&
				(got.PC != want || got.Sp != sp0+32 || at.Trust != unwind.TrustCode ||
					got.X[19] != s.Word(sp0) || got.X[21] != r.X[21] || !known(&got, 19) ||
					!known(&got, 21) ||
					known(&got, 20)) {
				t.Errorf("pc %#x, sp %#x, x19 %#x, x21 %#x by %v, known %#x", got.PC, got.Sp, got.X[19],
					got.X[21], at.Trust, got.Known)
			}
		})
	}
}

// TestStepFromBeginningLater: each word that may be the function's return address has a budget of its own.
func TestStepFromBeginningLater(t *testing.T) {
	const far = 490 // instructions
	// sub sp, sp, #64; str x30, [sp, #56]; nops; bl; b
	body := slices.Concat([]uint32{0xd10103ff, 0xf9001ffe}, slices.Repeat([]uint32{insNop}, far),
		[]uint32{0x94000040, 0x17ffffff})
	table := makeTable(t, body)
	m := table.At(0)
	call, _ := m.ELF.BytesAt(codeCall-4-m.Bias, 4)
	binary.LittleEndian.PutUint32(call, 0x97fffe00) // bl codeLo
	u, s, r := unwinder(table), newStack(), start(codeLo+4*(far+3), sp0)
	for i := range uint64(8) {
		s.Set(sp0+8*i, codeCall)
	}
	at := stateOf(&r, false)
	var f unwind.Frame
	b := unwind.Bounds{Low: stackLow, High: stackLow + stackSize, Guess: true}
	stop := u.Step(&at, s.Window(), &b, &f)
	if got := at.Regs.ARM64; stop != unwind.StopNone || got.PC != codeCall || got.Sp != sp0+64 {
		t.Errorf("%v, pc %#x, sp %#x", stop, got.PC, got.Sp)
	}
}

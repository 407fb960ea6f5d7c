package amd64

import (
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A thunk of gcc's -mfunction-return and -mindirect-branch is call 1f; 0: pause; lfence;
// jmp 0b; 1: BODY; ret. The body drops the return address (lea rsp, [rsp+8]) or overwrites
// it with the target of an indirect jump or call (mov [rsp], reg). gcc writes a CFA of RSP+16
// at 1 and nothing later. At the return of the first kind the CFA is RSP+8. A thunk of the
// second kind is left as its target would be: it may be called, or jumped to from the middle of
// a function, by a computed goto. Behind a thunk that is inlined, the function's old CFA holds
// again, and gcc's stays wrong to the function's end, also where it is remembered and restored
// (seen in 11.3 and 12.2).
const (
	thunkCFA = 16
	trapSize = 12 // from the call to the body
	maxBody  = 6  // bytes
)

// trap is pause; lfence: what lies behind the call in a thunk.
var trap = []byte{0xf3, 0x90, 0x0f, 0xae, 0xe8}

// thunk is a thunk's body.
type thunk struct {
	ret   uint64 // offset of the return
	drops bool   // the body drops the return address
	reg   uint64 // else the register that has the target
}

// thunkAt reads the body of a thunk at addr, an address in the image.
func thunkAt(m *module.Module, addr uint64) (t thunk, ok bool) {
	code := m.Bytes(addr+m.Bias, maxBody)
	t.ret, t.drops = thunkReturn(code)
	if t.ret != 0 {
		t.reg = uint64(code[0]&4<<1 | code[2]>>3)
	}
	return t, t.ret != 0
}

// inThunk makes the rule of the call in a thunk, or of its body.
func inThunk(row *cfi.Row, m *module.Module, i int, addr uint64) (Rule, bool) {
	body, into, off := row.Lo, addr-row.Lo, uint64(thunkCFA)
	switch atCall := addr == row.Hi-trapSize; {
	case row.CFA.Kind != cfi.RegisterOffset || !m.SystemV():
		return Rule{}, false
	case atCall:
		body, into, off = row.Hi, 0, 8
	case row.CFA.Off != thunkCFA || row.Lo == row.FDE.Lo || into >= maxBody:
		return Rule{}, false
	}
	t, ok := thunkAt(m, body)
	switch {
	case !ok || into > t.ret || t.drops && off == 8: // at the call of a return thunk the row is right
		return Rule{}, false
	case t.drops && into == t.ret:
		off = 8
		fallthrough
	case t.drops:
		return makeRule(RuleSP, i).withIndex(int(off >> 3)), true
	}
	return makeRule(RuleThunk, i).withIndex(int(off>>3 | t.reg<<(slotShift-offsetShift))), true
}

// stepThunk leaves a thunk by the rule of the place that it jumps to. A thunk changes no
// register. Where nothing is known of that place, it is a function that was called.
func (u *Unwinder) stepThunk(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (exact bool, stop unwind.Stop) {
	regs, was, cfa := &s.Regs.AMD64, s.Regs.AMD64, s.Regs.AMD64.GPR[context.RSP]+r.offset()
	reg := int(r.slots() & 15)
	to := u.lookup(unwind.Address{IP: regs.GPR[reg], Exact: true})
	if k := to.Kind(); !known(regs, reg) || k != RuleSP && k != RuleBP && k != RuleSide {
		return false, u.stepCFA(makeRule(RuleSP, r.Module()), cfa, s, mem, b, f)
	}
	regs.RIP, regs.GPR[context.RSP] = regs.GPR[reg], cfa-8
	if exact, stop = u.leaveFrame(to, s, mem, b, f); stop != unwind.StopNone {
		*regs = was
	}
	return exact, stop
}

// thunkReturn returns the offset of the return in a thunk's body, 0 if code is none.
// drops reports whether the body drops the return address.
func thunkReturn(code []byte) (at uint64, drops bool) {
	if len(code) < 6 {
		return 0, false
	}
	switch b := [6]byte(code); {
	case b == [6]byte{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}:
		return 5, true
	case b[0]&0xfb == 0x48 && b[1] == 0x89 && b[2]&0xc7 == 4 && b[3] == 0x24 && b[4] == 0xc3:
		return 4, false
	}
	return 0, false
}

// mendThunk corrects u.row behind a thunk. It reads code for few rows only.
func (u *Unwinder) mendThunk(m *module.Module, a unwind.Address) cfi.Reason {
	row := &u.row
	// The row of a push at a function's beginning, or before a pop, is right.
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || row.CFA.Off != thunkCFA || row.Lo == row.FDE.Lo || !m.SystemV() ||
		a.Exact && (row.Hi-row.Lo <= 2 || row.Lo-row.FDE.Lo < trapSize) {
		return cfi.None
	}
	u.thunks.m = m
	why := u.machine.RowWithout(&u.thunks, m.CFI, a.Lookup()-m.Bias, row)
	if why == cfi.None && !a.Exact && row.CFA.Reg == dwarfRSP && savedBelow(row, thunkCFA) && row.CFA.Off == thunkCFA {
		return cfi.NoInfo
	}
	return why
}

// thunkCFAs finds what gcc writes of thunks' bodies in a call frame program.
type thunkCFAs struct{ m *module.Module }

// Omits implements cfi.Omitter.
func (t *thunkCFAs) Omits(pc uint64, off int64) bool {
	if off != thunkCFA {
		return false
	}
	_, ok := thunkAt(t.m, pc)
	return ok
}

// savedBelow reports whether a register is saved more than off bytes below the CFA.
func savedBelow(row *cfi.Row, off int64) bool {
	return slices.ContainsFunc(row.Regs[:dwarfRA], func(r cfi.Rule) bool { return r.Kind == cfi.Offset && r.Off < -off })
}

// thunkRow makes a row that of a leaf that has pushed words only.
func thunkRow(row *cfi.Row, off int64) {
	row.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: off}
	for c := range row.Regs[:dwarfRA] {
		if cfi.CalleeSaved(context.ArchAMD64, uint16(c)) && c != dwarfRSP {
			row.Set(c, cfi.Rule{Kind: cfi.SameValue})
		}
	}
}

// mayLie reports whether a common row may be one behind a thunk: its CFA came near to RSP in
// one step from further away, or it claims that a register is saved below RSP, where nothing
// is kept across a call.
func mayLie(row *cfi.CommonRow) bool {
	if row.Off != thunkCFA || row.Reg != dwarfRSP {
		return row.Fell
	}
	for w := row.Words; w != 0; w >>= 4 {
		if w&15 > thunkCFA/8 {
			return true
		}
	}
	return row.Fell
}

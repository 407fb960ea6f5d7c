package amd64

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Constants of the thunks of package x86.
const (
	thunkCFA = 16
	trapSize = 12 // from the call to the body
)

// thunkAt reads the body of a thunk at addr, an address in the image.
func thunkAt(m *module.Module, addr uint64) (x86.Thunk, bool) {
	return x86.ThunkIn(m.Bytes(addr+m.Bias, x86.ThunkSize))
}

// inThunk makes the rule of a thunk's body, or of the call before it.
func inThunk(row *cfi.Row, m *module.Module, i int, addr uint64) (Rule, bool) {
	if row.CFA.Kind != cfi.RegisterOffset && row.CFA.Kind != cfi.Expression || !m.SystemV() {
		return Rule{}, false
	}
	var t x86.Thunk
	into, off, ok := addr-row.Lo, uint64(thunkCFA), false
	if row.CFA.Off == thunkCFA && row.Lo != row.FDE.Lo && into < x86.ThunkSize {
		t, ok = thunkAt(m, row.Lo)
	}
	if !ok && addr == row.Hi-trapSize { // the row is right at the call of a return thunk
		into, off = 0, 8
		t, ok = thunkAt(m, row.Hi)
		ok = ok && !t.Drops
	}
	if t.Drops && into == t.Ret {
		off = 8
	}
	kind := RuleThunk
	if t.Drops {
		kind = RuleSP
	}
	return thunkRule(t, kind, i, off), ok && into <= t.Ret
}

// inPEThunk returns the rule for an interrupted pc in a thunk of a PE image that jumps, or at a jump to one.
// Compilers do not list thunks in the exception directory. A thunk is recognized by its code: see trapCall. A
// jump to one is a tail call, or a switch inside a function.
func inPEThunk(image *peamd64.Table, i int, pc uint32) (Rule, bool) {
	const mov, align = 4, 16 // bytes
	code := image.Tail(pc, x86.ThunkSize)
	if len(code) == 0 {
		return Rule{}, false
	}
	switch code[0] {
	case 0xe9, 0xeb:
		distance, _ := x86.DirectJump(code)
		pc += uint32(distance)
		fallthrough
	case 0xe8:
		size := trapCall(image, pc)
		if size == 0 {
			return Rule{}, false
		}
		t, ok := x86.ThunkIn(image.Tail(pc+size, x86.ThunkSize))
		return thunkRule(t, RuleThunk, i, 8), ok && !t.Drops
	case 0xc3:
		pc -= mov
		code = image.Tail(pc, x86.ThunkSize)
	}
	t, ok := x86.ThunkIn(code)
	for size := uint32(trapSize); ok && !t.Drops && size < trapSize+align; size++ {
		if trapCall(image, pc-size) == size {
			return thunkRule(t, RuleThunk, i, thunkCFA), true
		}
	}
	return Rule{}, false
}

// trapCall returns the distance from a thunk's call at pc to the thunk's body, which clang aligns, and 0 if
// no such call is there. A loop that stops speculative execution follows the call.
func trapCall(image *peamd64.Table, pc uint32) uint32 {
	code := image.Tail(pc, trapSize)
	if len(code) < trapSize || code[0] != 0xe8 || !bytes.HasPrefix(code[5:], x86.Trap) {
		return 0
	}
	return 5 + binary.LittleEndian.Uint32(code[1:])
}

// thunkRule makes the rule of kind k for a thunk whose CFA is off bytes above RSP.
func thunkRule(t x86.Thunk, k Kind, module int, off uint64) Rule {
	return makeRule(k, module).withIndex(int(off>>3 | t.Reg<<(slotShift-offsetShift)))
}

// stepThunk leaves a thunk by the rule of its jump target. A thunk changes no register. If the target or its
// unwind data is unknown, or the target is a thunk too, this thunk counts as a called function.
func (u *Unwinder) stepThunk(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	regs, prev, cfa := &s.Regs.AMD64, s.Regs.AMD64, s.Regs.AMD64.GPR[context.RSP]+r.offset()
	reg := int(r.slots() & 15)
	to := u.lookup(unwind.Address{IP: regs.GPR[reg], Exact: true})
	if k := to.Kind(); !known(regs, reg) || k > RuleSide && k < RuleNear || k == RuleThunk {
		return false, u.stepCFA(makeRule(RuleSP, r.Module()), cfa, s, mem, b, f)
	}
	regs.RIP, regs.GPR[context.RSP] = regs.GPR[reg], cfa-8
	if exact, stop = u.leaveFrame(to, s, mem, b, f); stop != unwind.StopNone {
		*regs = prev
	}
	return exact, stop
}

// mendThunk corrects u.row after a thunk. It reads the code of few rows only.
func (u *Unwinder) mendThunk(m *module.Module, a unwind.Address) cfi.Reason {
	row := &u.row
	// The row of a push at a function's beginning, or before a pop, is right.
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || row.CFA.Off != thunkCFA ||
		row.Lo == row.FDE.Lo || !m.SystemV() ||
		a.Exact && (row.Hi-row.Lo <= 2 || row.Lo-row.FDE.Lo < trapSize) {
		return cfi.None
	}
	u.thunks.m = m
	why := u.machine.RowWithout(&u.thunks, m.CFI, a.Lookup()-m.Bias, row)
	if why == cfi.None && !a.Exact && row.CFA.Reg == dwarfRSP && savedBelow(row, thunkCFA) &&
		row.CFA.Off == thunkCFA {
		return cfi.NoInfo
	}
	return why
}

// thunkCFAs finds in a call frame program what gcc writes for the bodies of thunks.
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
	return slices.ContainsFunc(row.Regs[:dwarfRA],
		func(r cfi.Rule) bool { return r.Kind == cfi.Offset && r.Off < -off })
}

// restored marks the registers that functions preserve as unchanged in a row, except RSP.
func restored(row *cfi.Row) {
	for c := range row.Regs[:dwarfRA] {
		if cfi.CalleeSaved(context.ArchAMD64, uint16(c)) && c != dwarfRSP {
			row.Set(c, cfi.Rule{Kind: cfi.SameValue})
		}
	}
}

// mayLie reports whether a common row may be wrong because of a thunk before it. Signs: its CFA moved close
// to RSP in one step, or it lists a register as saved below RSP, where nothing survives a call.
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

package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// A thunk of gcc's -mfunction-return and -mindirect-branch is call 1f; 0: pause; lfence; jmp 0b; 1: BODY;
// ret. The body drops the return address (lea rsp, [rsp+8]) or overwrites it with the target of an indirect
// jump or call (mov [rsp], reg). gcc writes a CFA of RSP+16 at 1 and nothing later. At the return of the
// first kind the CFA is RSP+8. A thunk of the second kind is left as its target would be: it may be called,
// or reached by a computed goto from the middle of a function. After an inlined thunk, the function's old CFA
// is right again. gcc's CFA stays wrong up to the function's end, also if it is remembered and restored (seen
// in 11.3 and 12.2).
const (
	thunkCFA = 16
	trapSize = 12 // from the call to the body
	maxBody  = 6  // bytes
)

// trap is pause; lfence: the code after the call in a thunk.
var trap = []byte{0xf3, 0x90, 0x0f, 0xae, 0xe8}

// returnThunk is the code after the call in a return thunk: the trap, jmp 0b, lea rsp, [rsp+8], ret.
var returnThunk = append(trap[:5:5], 0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3)

// thunk is a thunk's body.
type thunk struct {
	ret   uint64 // offset of the return
	drops bool   // the body drops the return address
	reg   uint64 // otherwise the register with the target
}

// thunkAt reads the body of a thunk at addr, an address in the image.
func thunkAt(m *module.Module, addr uint64) (thunk, bool) {
	return thunkIn(m.Bytes(addr+m.Bias, maxBody))
}

// thunkIn reads the body of a thunk at the beginning of code.
func thunkIn(code []byte) (t thunk, ok bool) {
	if len(code) < maxBody {
		return t, false
	}
	switch b := [maxBody]byte(code); {
	case b == [maxBody]byte{0x48, 0x8d, 0x64, 0x24, 8, 0xc3}:
		return thunk{ret: 5, drops: true}, true
	case b[0]&0xfb == 0x48 && b[1] == 0x89 && b[2]&0xc7 == 4 && b[3] == 0x24 && b[4] == 0xc3:
		return thunk{ret: 4, reg: uint64(b[0]&4<<1 | b[2]>>3)}, true
	}
	return t, false
}

// inThunk makes the rule of a thunk's body, or of the call before it.
func inThunk(row *cfi.Row, m *module.Module, i int, addr uint64) (Rule, bool) {
	if row.CFA.Kind != cfi.RegisterOffset && row.CFA.Kind != cfi.Expression || !m.SystemV() {
		return Rule{}, false
	}
	var t thunk
	into, off, ok := addr-row.Lo, uint64(thunkCFA), false
	if row.CFA.Off == thunkCFA && row.Lo != row.FDE.Lo && into < maxBody {
		t, ok = thunkAt(m, row.Lo)
	}
	if !ok && addr == row.Hi-trapSize { // the row is right at the call of a return thunk
		into, off = 0, 8
		t, ok = thunkAt(m, row.Hi)
		ok = ok && !t.drops
	}
	if t.drops && into == t.ret {
		off = 8
	}
	kind := RuleThunk
	if t.drops {
		kind = RuleSP
	}
	return t.rule(kind, i, off), ok && into <= t.ret
}

// inPEThunk returns the rule for an address in a thunk of a PE image that jumps, or at a jump to one.
// Compilers do not list thunks in the exception directory. A thunk is recognized by its code: see trapCall. A
// jump to one is a tail call, or a switch inside a function.
func inPEThunk(m *module.Module, i int, a unwind.Address) (Rule, bool) {
	const mov, align = 4, 16 // bytes
	if !a.Exact {
		return Rule{}, false
	}
	to, code := a.IP, m.Bytes(a.IP, x86.MaxInsn)
	if len(code) == 0 {
		return Rule{}, false
	}
	switch code[0] {
	case 0xe9, 0xeb:
		in := x86.Decode(code)
		to += uint64(in.Size) + uint64(in.Disp)
		fallthrough
	case 0xe8:
		size := trapCall(m, to)
		if size == 0 {
			return Rule{}, false
		}
		t, ok := thunkAt(m, to+size-m.Bias)
		return t.rule(RuleThunk, i, 8), ok && !t.drops
	case 0xc3:
		to -= mov
		code = m.Bytes(to, maxBody)
	}
	t, ok := thunkIn(code)
	for size := uint64(trapSize); ok && !t.drops && size < trapSize+align; size++ {
		if trapCall(m, to-size) == size {
			return t.rule(RuleThunk, i, thunkCFA), true
		}
	}
	return Rule{}, false
}

// trapCall returns the distance from a thunk's call at addr to the thunk's body, which clang aligns, and 0 if
// no such call is there. A loop that stops speculative execution follows the call.
func trapCall(m *module.Module, addr uint64) uint64 {
	code := m.Bytes(addr, trapSize)
	if len(code) < trapSize || code[0] != 0xe8 || !bytes.HasPrefix(code[5:], trap) {
		return 0
	}
	return 5 + signed32(code[1:])
}

// rule makes the rule of kind k for a thunk whose CFA is off bytes above RSP.
func (t *thunk) rule(k Kind, module int, off uint64) Rule {
	return makeRule(k, module).withIndex(int(off>>3 | t.reg<<(slotShift-offsetShift)))
}

// stepThunk leaves a thunk by the rule of its jump target. A thunk changes no register. If the target or its
// unwind data is unknown, or the target is a thunk too, this thunk counts as a called function.
func (u *Unwinder) stepThunk(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	regs, was, cfa := &s.Regs.AMD64, s.Regs.AMD64, s.Regs.AMD64.GPR[context.RSP]+r.offset()
	reg := int(r.slots() & 15)
	to := u.lookup(unwind.Address{IP: regs.GPR[reg], Exact: true})
	if k := to.Kind(); !known(regs, reg) || k > RuleSide && k < RuleNear || k == RuleThunk {
		return false, u.stepCFA(makeRule(RuleSP, r.Module()), cfa, s, mem, b, f)
	}
	regs.RIP, regs.GPR[context.RSP] = regs.GPR[reg], cfa-8
	if exact, stop = u.leaveFrame(to, s, mem, b, f); stop != unwind.StopNone {
		*regs = was
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

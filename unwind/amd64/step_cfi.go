package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// resolveCFI makes the rule of an address from a module's call frame information.
func (u *Unwinder) resolveCFI(m *module.Module, i int, a unwind.Address) Rule {
	if !a.Exact {
		if r, ok := u.resolveCommon(m.CFI, i, a.Lookup()-m.Bias); ok {
			return r
		}
	}
	return u.resolveRow(m, i, a)
}

// resolveRow is resolveCFI from the whole row.
func (u *Unwinder) resolveRow(m *module.Module, i int, a unwind.Address) Rule {
	addr := a.Lookup()
	why := u.machine.Row(m.CFI, addr-m.Bias, &u.row)
	if why == cfi.None {
		if a.Exact {
			if r, ok := inThunk(&u.row, m, i, addr-m.Bias); ok {
				return r
			}
		}
		why = u.mendThunk(m, a)
		if a.Exact {
			returnByJump(&u.row, m, addr-m.Bias)
		}
	}
	if why != cfi.None {
		return withoutRow(why, i)
	}
	u.foldHook(&u.row, m, a)
	if a.Exact {
		u.catchUp(&u.row, m, addr-m.Bias)
		u.unpush(&u.row, m, addr-m.Bias)
		unlistedPush(&u.row, m, addr-m.Bias)
	}
	return u.compile(&u.row, i, addr, m.Bias)
}

// withoutRow is the rule of an address that has no row.
func withoutRow(why cfi.Reason, module int) Rule {
	if why == cfi.NoInfo {
		return makeRule(RuleNoInfo, module)
	}
	return makeRule(RuleBad, module)
}

// resolveCommon is resolveCFI for nearly all return addresses: a common row that fits a rule and is not a
// return hook's. It returns false for others.
func (u *Unwinder) resolveCommon(t *cfi.Table, module int, addr uint64) (Rule, bool) {
	var row cfi.CommonRow
	if !t.CommonRow(addr, &row) || row.Words&^slotWords != 0 || row.Off&7 != 0 || module >= noModule ||
		mayLie(&row) {
		return Rule{}, false
	}
	w := row.Words
	slots := w>>(4*dwarfRBX)&15 | w>>(4*dwarfRBP)&15<<4 | w>>(4*dwarfR12)<<8
	r := makeRule(RuleSP, module)
	switch row.Reg {
	case dwarfRSP:
		if u.mayBeHook(slots, int64(row.Off)) {
			return Rule{}, false
		}
	case dwarfRBP:
		r = makeRule(RuleBP, module)
	default:
		return Rule{}, false
	}
	r.bits |= row.Off>>3<<offsetShift | slots<<slotShift
	return r, true
}

// slotWords are the words of the registers that have slots in a rule.
const slotWords = 15<<(4*dwarfRBX) | 15<<(4*dwarfRBP) | 0xffff<<(4*dwarfR12)

// compile packs a row into a rule.
func (u *Unwinder) compile(row *cfi.Row, module int, addr, bias uint64) Rule {
	switch row.Rule(context.ArchAMD64, row.FDE.RA).Kind {
	case cfi.Undefined:
		return makeRule(RuleEnd, module)
	case cfi.Unspecified:
		return makeRule(RuleBad, module)
	}
	foldPLT(row, addr)
	forgetMoved(row)
	if r, ok := pack(row, module); ok {
		return r
	}
	return makeRule(RuleSide, module).withIndex(u.addSide(row, module, bias))
}

// pltCFA is the CFA expression that GNU ld writes for procedure linkage tables: in each 16-byte entry the
// offset grows by a word after the index is pushed, 11 bytes in. RSP+8 + (((RIP & 15) >= 11) << 3).
var pltCFA = []byte{
	cfi.DW_OP_breg0 + dwarfRSP, 8,
	cfi.DW_OP_breg0 + dwarfRA, 0,
	cfi.DW_OP_lit0 + 15, cfi.DW_OP_and,
	cfi.DW_OP_lit0 + 11, cfi.DW_OP_ge,
	cfi.DW_OP_lit0 + 3, cfi.DW_OP_shl,
	cfi.DW_OP_plus,
}

// foldPLT replaces that expression by its value at this address, since a rule is stored per address anyway.
func foldPLT(row *cfi.Row, addr uint64) {
	if row.CFA.Kind != cfi.Expression || !bytes.Equal(row.CFA.Expr, pltCFA) {
		return
	}
	off := int64(8)
	if addr&15 >= 11 {
		off = 16
	}
	row.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: dwarfRSP, Off: off}
}

// forgetMoved drops the saved registers from a row whose CFA is the value of a register other than RSP and
// RBP. A function has its CFA in R10 or R13 while it aligns its stack, and saves registers on the aligned
// stack. gcc writes expressions for those. clang with block sections writes distances from the CFA, which are
// wrong. Only R13 itself was saved before, so its place is right.
func forgetMoved(row *cfi.Row) {
	if row.CFA.Kind != cfi.RegisterOffset ||
		row.CFA.Off != 0 || row.CFA.Reg == dwarfRSP || row.CFA.Reg == dwarfRBP {
		return
	}
	for c := range row.Regs[:dwarfRA] {
		if row.Regs[c].Kind == cfi.Offset && c != int(row.CFA.Reg) {
			row.Regs[c].Kind = cfi.Undefined
		}
	}
}

// stepSide executes a side rule.
func (u *Unwinder) stepSide(r Rule, from *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	s, regs := &u.sides[r.index()%maxSide], &from.Regs.AMD64
	e := &u.env
	enter(e, regs, mem, s.bias)
	cfa, ok := frameAddress(s, e)
	if s.signal {
		f.Kind = unwind.KindSignal
	} else if from.Exact && s.module >= 0 && !r.looked(true) && s.regs[dwarfRBX].Kind != cfi.Undefined {
		to, straight, left := u.epilog(u.table.At(int(s.module)), cfa, regs, mem)
		if left {
			stop := u.accept(&to, false, regs, b, f)
			u.trust = unwind.TrustEpilog
			return false, stop
		}
		if !straight {
			u.amend(from.Address(), r, seenBit|exactBit)
		}
	}
	u.trust = unwind.TrustCFI
	if !ok {
		return false, unwind.Unreadable
	}
	e.CFA, e.PushCFA = cfa, true
	sp := cfa
	if k := s.regs[dwarfRSP].Kind; k > cfi.SameValue {
		if sp, ok = value(&s.regs[dwarfRSP], dwarfRSP, e); !ok {
			return false, unwind.Unreadable
		}
	}
	ra, ok := value(&s.ra, dwarfRA, e)
	if !ok {
		return false, unwind.Unreadable
	}
	left, stop := u.checkSide(s, from, sp, ra, mem, b)
	if stop != unwind.StopNone {
		return false, stop
	}
	from.Left += left
	restoreSide(s, regs, e)
	regs.RIP, regs.GPR[context.RSP] = ra, sp
	f.CFA = cfa
	return s.signal, unwind.StopNone
}

// checkSide checks a caller's stack pointer and return address. Below a signal frame the stack may be another
// one, so only a frame that changes nothing is refused there. left is 1 if a called frame leaves its stack.
func (u *Unwinder) checkSide(s *side, from *unwind.State, sp, ra uint64, mem *memory.Window,
	b *unwind.Bounds) (left uint8, stop unwind.Stop) {
	regs := &from.Regs.AMD64
	if !s.signal {
		if stop := checkSP(regs.GPR[context.RSP], sp, b); stop != unwind.StopNone {
			if s.countsFromRSP() || !u.leavesStack(from, sp, ra, mem, b) {
				return 0, stop
			}
			left = 1
		}
	}
	stop = checkRA(regs, sp, ra)
	if s.signal && stop == unwind.NullReturn {
		return 0, unwind.StopNone // a call to 0 was interrupted
	}
	return left, stop
}

// countsFromRSP reports whether the caller's stack pointer is the frame's plus a distance.
func (s *side) countsFromRSP() bool {
	return s.cfa.Kind == cfi.RegisterOffset && s.cfa.Reg == dwarfRSP && s.regs[dwarfRSP].Kind <= cfi.SameValue
}

// enter sets the frame's registers for expressions. The return address column represents the instruction
// pointer.
func enter(e *cfi.ExprEnv, regs *Registers, mem *memory.Window, bias uint64) {
	g, k, r := &regs.GPR, uint64(regs.Known), &e.Regs
	r[0], r[1], r[2], r[3] = g[context.RAX], g[context.RDX], g[context.RCX], g[context.RBX]
	r[4], r[5], r[6], r[7] = g[context.RSI], g[context.RDI], g[context.RBP], g[context.RSP]
	*(*[8]uint64)(r[8:]) = *(*[8]uint64)(g[8:]) // R8 to R15 have one number
	r[dwarfRA] = regs.RIP
	e.Known = k&0xff09 | k>>1&(1<<1) | k<<1&(1<<2) | k>>2&(3<<4) | k<<1&(1<<6) | 1<<dwarfRSP | 1<<dwarfRA
	e.Bias, e.Mem, e.PushCFA = bias, mem, false
}

func frameAddress(s *side, e *cfi.ExprEnv) (uint64, bool) {
	switch s.cfa.Kind {
	case savedAt:
		return savedWord(&s.cfa, e)
	case cfi.Expression:
		v, why := cfi.Eval(s.cfa.Expr, e)
		return v, why == cfi.None
	}
	v, ok := envRegister(s.cfa.Reg, e)
	return v + uint64(s.cfa.Off), ok && s.cfa.Kind == cfi.RegisterOffset
}

func envRegister(reg uint16, e *cfi.ExprEnv) (uint64, bool) {
	if reg > dwarfRA {
		return 0, false
	}
	return e.Regs[reg], e.Known>>reg&1 != 0
}

// savedWord returns the value of a savedAt rule.
func savedWord(r *cfi.Rule, e *cfi.ExprEnv) (uint64, bool) {
	at, ok := envRegister(r.Reg, e)
	if !ok {
		return 0, false
	}
	return e.Mem.Word(at + uint64(r.Off))
}

// value returns a register's value in the caller.
func value(r *cfi.Rule, reg uint16, e *cfi.ExprEnv) (uint64, bool) {
	switch r.Kind {
	case savedAt:
		return savedWord(r, e)
	case cfi.SameValue:
		return envRegister(reg, e)
	case cfi.Offset:
		return e.Mem.Word(e.CFA + uint64(r.Off))
	case cfi.ValOffset:
		return e.CFA + uint64(r.Off), true
	case cfi.Register:
		return envRegister(r.Reg, e)
	case cfi.Expression:
		at, why := cfi.Eval(r.Expr, e)
		if why != cfi.None {
			return 0, false
		}
		return e.Mem.Word(at)
	case cfi.ValExpression:
		v, why := cfi.Eval(r.Expr, e)
		return v, why == cfi.None
	}
	return 0, false
}

// restoreSide sets the general registers, except RSP, to the caller's values and updates Known.
func restoreSide(s *side, regs *Registers, e *cfi.ExprEnv) {
	have := uint32(1 << context.RSP)
	for d, n := range fromDWARF {
		switch {
		case d == dwarfRSP:
			continue
		case s.regs[d].Kind == cfi.Unspecified: // most: what functions preserve stays as it is
			have |= regs.Known & nonvolatile & (1 << n)
			continue
		}
		if v, ok := value(&s.regs[d], uint16(d), e); ok {
			regs.GPR[n] = v
			have |= 1 << n
		}
	}
	regs.Known = have
}

package arm64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// resolveCFI interprets a module's call frame information at an address.
func (u *Unwinder) resolveCFI(m *module.Module, i int, addr uint64) Rule {
	if u.isStart(m, addr) {
		return makeRule(RuleEnd, i)
	}
	switch why := u.machine.Row(m.CFI, addr-m.CFIBias(), &u.row); why {
	case cfi.None:
		if u.row.FDE.Signal && inTrampoline(m, addr, nil) { // its CFI is wrong before Linux 5.8
			return makeRule(RuleNoInfo, i)
		}
		if addr&3 == 0 && (contradicts(&u.row) || !u.correct(m, addr, &u.row)) ||
			addr&3 != 0 && forgets(&u.row) {
			r := makeRule(RuleNoInfo, i)
			r.saved |= flagDoubt
			return r
		}
		r, first := compile(&u.row, m, i), u.row.FDE.Lo == addr-m.CFIBias()
		if first && r.kind == RuleSlots && u.beginsResolve(m, addr) {
			r.saved |= flagShift
		}
		return r
	case cfi.NoInfo:
		return makeRule(RuleNoInfo, i)
	}
	return makeRule(RuleBad, i)
}

// isStart reports whether addr is the first instruction of a program's _start: it has no caller, whatever x30
// contains, but its rows show that only from the second instruction on.
func (u *Unwinder) isStart(m *module.Module, addr uint64) bool {
	if at, ok := m.Entry(); !ok || addr != at {
		return false
	}
	row := &u.row
	return u.machine.Row(m.CFI, addr-m.Bias+4, row) == cfi.None &&
		row.Rule(context.ArchARM64, row.FDE.RA).Kind == cfi.Undefined
}

// compile packs a row into a rule.
func compile(row *cfi.Row, m *module.Module, i int) Rule {
	if row.Rule(context.ArchARM64, row.FDE.RA).Kind == cfi.Undefined {
		return makeRule(RuleEnd, i)
	}
	r, ok := pack(row, i)
	if !ok {
		return makeRule(RuleCFI, i)
	}
	if ignoresPLT0(m, row) {
		r.saved |= flagShift
	}
	return r
}

// stepCFI interprets the row, because a rule cannot hold it.
func (u *Unwinder) stepCFI(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	i := r.Module()
	if i < 0 || i >= u.table.Len() {
		return false, unwind.NoInfo
	}
	m, row, e := u.table.At(i), &u.row, &u.env
	if u.machine.Row(m.CFI, s.Address().Lookup()-m.CFIBias(), row) != cfi.None {
		return false, unwind.BadInfo
	}
	if row.FDE.Signal {
		f.Kind = unwind.KindSignal
	}
	if s.Exact {
		u.correct(m, s.Regs.ARM64.PC, row)
	}
	enter(e, &s.Regs.ARM64, mem, m.CFIBias())
	cfa, ok := frameAddress(&row.CFA, e)
	if !ok {
		return false, unwind.Unreadable
	}
	e.CFA, e.PushCFA = cfa, true
	return u.leaveCFI(row, s, mem, b, f)
}

// leaveCFI finds SP and the return address, checks them, and restores the other registers.
func (u *Unwinder) leaveCFI(row *cfi.Row, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	e, regs := &u.env, &s.Regs.ARM64
	sp, other := e.CFA, row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != regSP
	ok := true
	if rule := row.Rule(context.ArchARM64, regSP); rule.Kind > cfi.SameValue {
		other = true
		if sp, ok = value(&rule, regSP, e); !ok {
			return false, unwind.Unreadable
		}
	}
	rule := row.Rule(context.ArchARM64, row.FDE.RA)
	if !s.Exact && rule.Kind <= cfi.SameValue {
		return false, unwind.BadInfo // lr cannot be live: see returnAddress
	}
	if rule.Kind == cfi.Unspecified {
		rule.Kind = cfi.SameValue
	}
	lr, ok := value(&rule, row.FDE.RA, e)
	if !ok {
		return false, unwind.Unreadable
	}
	pc := stripPAC(lr)
	left := uint8(0)
	if stop := checkSP(regs.Sp, sp, b); stop != unwind.StopNone && !row.FDE.Signal {
		if !other || !s.LeavesStack(sp, mem, b) || !u.called(pc, mem) {
			return false, stop
		}
		left = 1
	}
	if stop := checkRA(regs, sp, pc); stop != unwind.StopNone &&
		!(row.FDE.Signal && stop == unwind.NullReturn) {
		return false, stop
	}
	s.Left += left
	u.restoreCFI(row, regs)
	if row.FDE.RA == regLR {
		regs.X[regLR] = lr
		regs.Known |= 1 << regLR
	}
	regs.PC, regs.Sp = pc, sp
	f.CFA = sp
	return row.FDE.Signal, unwind.StopNone
}

// enter sets the frame's registers for expressions.
func enter(e *cfi.ExprEnv, regs *Registers, mem *memory.Window, bias uint64) {
	copy(e.Regs[:], regs.X[:])
	e.Regs[regSP] = regs.Sp
	e.Known = regs.Known&(1<<regSP-1) | 1<<regSP
	e.Bias, e.Mem, e.PushCFA = bias, mem, false
}

func frameAddress(rule *cfi.Rule, e *cfi.ExprEnv) (uint64, bool) {
	if rule.Kind == cfi.Expression {
		v, why := cfi.Eval(rule.Expr, e)
		return v, why == cfi.None
	}
	v, ok := envRegister(rule.Reg, e)
	return v + uint64(rule.Off), ok && rule.Kind == cfi.RegisterOffset
}

func envRegister(reg uint16, e *cfi.ExprEnv) (uint64, bool) {
	if reg > regSP {
		return 0, false
	}
	return e.Regs[reg], e.Known>>reg&1 != 0
}

// value returns a general register's value in the caller.
func value(r *cfi.Rule, reg uint16, e *cfi.ExprEnv) (uint64, bool) {
	switch r.Kind {
	case cfi.Unspecified:
		v, ok := envRegister(reg, e)
		return v, ok && cfi.CalleeSaved(context.ArchARM64, reg)
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

// restoreCFI sets every register except SP and PC.
func (u *Unwinder) restoreCFI(row *cfi.Row, regs *Registers) {
	have := uint64(0)
	for d := range regs.X {
		if v, ok := value(&row.Regs[d], uint16(d), &u.env); ok {
			regs.X[d] = v
			have |= 1 << d
		}
	}
	for d := range regs.D {
		rule := row.Rule(context.ArchARM64, uint16(72+d))
		v, ok := regs.D[d], known(regs, 32+d)
		if rule.Kind > cfi.SameValue {
			v, ok = value(&rule, uint16(72+d), &u.env)
		}
		if ok && rule.Kind != cfi.Undefined {
			regs.D[d] = v
			have |= 1 << (32 + d)
		}
	}
	regs.Known = have
}

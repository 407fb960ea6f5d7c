package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var unbounded unwind.Bounds

// Step replaces regs, the state of one frame, by its caller's and describes the
// frame it left in f (all of it but Trust, which only the caller of Step
// knows; StepTrust says how sure the new frame is). exact tells whether
// regs.RIP is an interrupted instruction rather than a return address;
// callerExact tells it for the caller. A nil b bounds nothing.
//
// The callee-saved registers (RBX RBP RSP R12-R15) are the caller's after it;
// those whose value cannot be had, and all volatile ones, are not in
// regs.Known. If stop is not StopNone, regs is unchanged and f.CFA is 0.
func (u *Unwinder) Step(regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (callerExact bool, stop unwind.Stop) {
	if b == nil {
		b = &unbounded
	}
	r := u.lookup(unwind.LookupIP(regs.RIP, exact), exact)
	callerExact, stop = u.step(r, regs, exact, mem, b, f)
	if stop == unwind.StopNone {
		u.next(regs, callerExact, mem, f)
	}
	return callerExact, ended(stop, regs, mem, b)
}

// ended is why a walk ended whose last frame is regs.
func ended(stop unwind.Stop, regs *Registers, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	if stop == unwind.NullReturn {
		return b.Null(regs.GPR[context.RSP], mem.Hot().End())
	}
	return stop
}

// next gives the rule of the frame just reached, after repairing the step out of a landing.
func (u *Unwinder) next(regs *Registers, exact bool, mem *memory.Window, f *unwind.Frame) Rule {
	r := u.lookup(unwind.LookupIP(regs.RIP, exact), exact)
	if r.outside() && !exact && u.unlisted(regs, mem, f) {
		r = u.lookup(unwind.LookupIP(regs.RIP, false), false)
	}
	return r
}

// describe fills what a frame is before it is left.
func describe(r Rule, regs *Registers, exact bool, f *unwind.Frame) {
	f.IP, f.SP, f.FP, f.CFA = regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP], 0
	f.Module, f.Kind, f.Exact = int32(r.Module()), unwind.KindNative, exact
	if r.Managed() {
		f.Kind = unwind.KindManaged
	}
}

// step runs a rule.
func (u *Unwinder) step(r Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	if u.stepHot(r, regs, exact, mem.Hot(), b, f) {
		return false, unwind.StopNone
	}
	return u.stepRare(r, regs, exact, mem, b, f)
}

// stepCFA runs a rule of slots. A return address of 0 ends the walk,
// unless the frame is a landing and the word only looks like one.
func (u *Unwinder) stepCFA(r Rule, cfa uint64, regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	u.trust = unwind.TrustCFI
	stop := stepWords(r, cfa, regs, mem, b, f)
	if stop == unwind.NullReturn && u.replacedReturn(cfa, mem) != 0 {
		restoreWords(r, cfa, regs, mem)
		f.CFA = cfa - 8
		regs.RIP, regs.GPR[context.RSP] = u.replacedReturn(cfa, mem), f.CFA
		return unwind.StopNone
	}
	return stop
}

// stepRare runs any rule.
func (u *Unwinder) stepRare(r Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	describe(r, regs, exact, f)
	switch r.Kind() {
	case RuleSP:
		return false, u.stepCFA(r, regs.GPR[context.RSP]+r.offset(), regs, mem, b, f)
	case RuleBP:
		if !known(regs, context.RBP) {
			return false, unwind.Unreadable
		}
		return false, u.stepCFA(r, regs.GPR[context.RBP]+r.offset(), regs, mem, b, f)
	case RuleSide:
		return u.stepSide(&u.sides[r.index()], regs, exact, mem, b, f)
	case RuleSlotsPE:
		if r.exactPE() == exact {
			return false, u.stepSlotsPE(&u.pe.rules[r.index()], regs, mem, b, f)
		}
		fallthrough
	case RuleNear, RuleNearEpilog: // at an edge of the window, as the leaf always is
		if r.exactPE() == exact {
			p := r.unpackPE()
			return false, u.stepSlotsPE(&p, regs, mem, b, f)
		}
		fallthrough
	case RulePE:
		u.trust = unwind.TrustUnwindInfo
		return u.stepPE(u.table.At(r.Module()), regs, exact, mem, b, f)
	case RuleEnd:
		return false, unwind.EndOfStack
	case RuleBad:
		return false, unwind.BadInfo
	case RuleUnsupported:
		return false, unwind.Unsupported
	}
	return u.fallback(r, regs, exact, mem, b, f)
}

// stepWords runs a rule of slots anywhere in the window.
func stepWords(r Rule, cfa uint64, regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	if stop := checkSP(regs.GPR[context.RSP], cfa, b); stop != unwind.StopNone {
		return stop
	}
	ra, ok := mem.Word(cfa - 8)
	if !ok {
		return unwind.Unreadable
	}
	if stop := checkRA(regs, cfa, ra); stop != unwind.StopNone {
		return stop
	}
	restoreWords(r, cfa, regs, mem)
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	f.CFA = cfa
	return unwind.StopNone
}

// restoreWords reads the saved registers. One whose word is missing becomes
// unknown: the walk may still go on without it.
func restoreWords(r Rule, cfa uint64, regs *Registers, mem *memory.Window) {
	have := regs.Known & nonvolatile
	for i, s := 0, r.slots(); s != 0; i, s = i+1, s>>4 {
		if s&15 == 0 {
			continue
		}
		reg := slotRegs[i]
		v, ok := mem.Word(cfa - 8*(s&15))
		have &^= 1 << reg
		if ok {
			regs.GPR[reg] = v
			have |= 1 << reg
		}
	}
	regs.Known = have
}

// checkSP decides whether a caller's stack pointer can follow sp. A thread that
// is on another stack than the bounded one (a signal stack) is not held to the
// bounds, only to progress.
func checkSP(sp, caller uint64, b *unwind.Bounds) unwind.Stop {
	if caller < sp {
		return unwind.NoProgress
	}
	if b.High != 0 && sp >= b.Low && sp <= b.High && caller > b.High {
		return unwind.OutOfStack
	}
	return unwind.StopNone
}

// checkRA ends the walk at a zero return address, which Step and Walk then judge,
// and where nothing changes.
// The same return address at another stack pointer is recursion.
func checkRA(regs *Registers, sp, ra uint64) unwind.Stop {
	if ra == 0 {
		return unwind.NullReturn
	}
	if ra == regs.RIP && sp == regs.GPR[context.RSP] {
		return unwind.NoProgress
	}
	return unwind.StopNone
}

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
	r := u.lookup(unwind.LookupIP(regs.RIP, exact))
	callerExact, stop = u.step(r, regs, exact, mem, b, f)
	if stop == unwind.StopNone {
		u.next(regs, callerExact, mem, f)
	}
	return callerExact, stop
}

// next gives the rule of the frame just reached, after undoing a hijack.
func (u *Unwinder) next(regs *Registers, exact bool, mem *memory.Window, f *unwind.Frame) Rule {
	r := u.lookup(unwind.LookupIP(regs.RIP, exact))
	if r.outside() && !exact && u.unhijack(regs, mem, f) {
		r = u.lookup(unwind.LookupIP(regs.RIP, false))
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
	describe(r, regs, exact, f)
	switch r.Kind() {
	case RuleSP:
		u.trust = unwind.TrustCFI
		return false, stepSlots(r, regs.GPR[context.RSP]+r.offset(), regs, mem, b, f)
	case RuleBP:
		if !known(regs, context.RBP) {
			return false, unwind.Unreadable
		}
		u.trust = unwind.TrustCFI
		return false, stepSlots(r, regs.GPR[context.RBP]+r.offset(), regs, mem, b, f)
	}
	return u.stepRare(r, regs, exact, mem, b, f)
}

// stepRare runs the rules that are not a matter of a few loads.
func (u *Unwinder) stepRare(r Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	switch r.Kind() {
	case RuleSide:
		u.trust = unwind.TrustCFI
		return u.stepSide(&u.sides[r.index()], regs, mem, b, f)
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

// stepSlots runs a rule whose registers lie in slots below the CFA.
func stepSlots(r Rule, cfa uint64, regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	sp := regs.GPR[context.RSP]
	if stop := checkSP(sp, cfa, b); stop != unwind.StopNone {
		return stop
	}
	ra, ok := mem.Word(cfa - 8)
	if !ok {
		return unwind.Unreadable
	}
	if stop := checkRA(regs, cfa, ra); stop != unwind.StopNone {
		return stop
	}
	restoreSlots(r, cfa, regs, mem)
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	f.CFA = cfa
	return unwind.StopNone
}

// restoreSlots reads the saved registers. One whose word is missing becomes
// unknown: the walk may still go on without it.
func restoreSlots(r Rule, cfa uint64, regs *Registers, mem *memory.Window) {
	have := regs.Known & nonvolatile
	for s, i := r.slots(), 0; s != 0; s, i = s>>4, i+1 {
		if s&15 == 0 {
			continue
		}
		reg := slotRegs[i%len(slotRegs)]
		have &^= 1 << reg
		if v, ok := mem.Word(cfa - 8*(s&15)); ok {
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

// checkRA ends the walk at a zero return address and where nothing changes.
// The same return address at another stack pointer is recursion.
func checkRA(regs *Registers, sp, ra uint64) unwind.Stop {
	if ra == 0 {
		return unwind.EndOfStack
	}
	if ra == regs.RIP && sp == regs.GPR[context.RSP] {
		return unwind.NoProgress
	}
	return unwind.StopNone
}

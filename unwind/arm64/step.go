package arm64

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var unbounded unwind.Bounds

// Step replaces regs, the state of one frame, by its caller's and describes the
// frame it left in f (all of it but Trust, which only the caller of Step
// knows; StepTrust says how sure the new frame is). exact tells whether regs.PC
// is an interrupted instruction rather than a return address; callerExact tells
// it for the caller. A nil b bounds nothing.
//
// The callee-saved registers (x19-x29, d8-d15, SP) are the caller's after it;
// those whose value cannot be had, and all volatile ones, are not in
// regs.Known. x30 is what was in the return address's place, with its pointer
// authentication code if the platform leaves it there. If stop is not StopNone,
// regs is unchanged and f.CFA is 0.
func (u *Unwinder) Step(regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (callerExact bool, stop unwind.Stop) {
	if b == nil {
		b = &unbounded
	}
	r := u.lookup(unwind.LookupIP(regs.PC, exact))
	callerExact, stop = u.step(r, regs, exact, mem, b, f)
	return callerExact, ended(stop, regs, mem, b)
}

// ended is why a walk ended whose last frame is regs.
func ended(stop unwind.Stop, regs *Registers, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	if stop == unwind.NullReturn {
		return b.Null(regs.Sp, mem.Hot().End())
	}
	return stop
}

// describe fills what a frame is before it is left.
func describe(r *Rule, regs *Registers, exact bool, f *unwind.Frame) {
	f.IP, f.SP, f.FP, f.CFA = regs.PC, regs.Sp, regs.X[regFP], 0
	f.Module, f.Kind, f.Exact = int32(r.Module()), unwind.KindNative, exact
	if r.Managed() {
		f.Kind = unwind.KindManaged
	}
}

// step runs a rule.
func (u *Unwinder) step(r *Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	if u.stepHot(r, regs, exact, mem.Hot(), b, f) {
		return false, unwind.StopNone
	}
	return u.stepRare(r, regs, exact, mem, b, f)
}

// stepRare runs any rule.
func (u *Unwinder) stepRare(r *Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	describe(r, regs, exact, f)
	switch r.kind {
	case RuleSlots:
		u.trust = unwind.TrustCFI
		return false, stepSlots(r, regs, exact, mem, b, f)
	case RuleSlotsPE:
		u.trust = unwind.TrustUnwindInfo
		return r.saved&flagExact != 0, stepSlots(r, regs, exact, mem, b, f)
	case RuleCFI:
		u.trust = unwind.TrustCFI
		return u.stepCFI(r, regs, exact, mem, b, f)
	case RulePE:
		u.trust = unwind.TrustUnwindInfo
		return u.stepPE(r, regs, exact, mem, b, f)
	case RuleLeafPE:
		if !exact {
			return u.fallback(r, regs, exact, mem, b, f) // no leaf: it has made a call
		}
		u.trust = unwind.TrustLeaf
		return false, stepSlots(r, regs, exact, mem, b, f)
	case RuleEnd:
		return false, unwind.EndOfStack
	case RuleBad:
		return false, unwind.BadInfo
	case RuleUnsupported:
		return false, unwind.Unsupported
	}
	return u.fallback(r, regs, exact, mem, b, f)
}

// stepSlots runs a rule of slots anywhere in the window.
func stepSlots(r *Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	from, ok := base(regs, r.base)
	if !ok {
		return unwind.Unreadable
	}
	cfa := from + uint64(int64(r.cfa))
	sp := cfa
	if r.saved&flagShift != 0 {
		sp += 16
	}
	if stop := checkSP(regs.Sp, sp, b); stop != unwind.StopNone {
		return stop
	}
	lr, stop := returnAddress(r, from, regs, exact, mem)
	if stop != unwind.StopNone {
		return stop
	}
	pc := stripPAC(lr)
	if r.kind != RuleSlots {
		if pc = lr; r.saved&flagStrip != 0 {
			pc = stripUser(lr)
			lr = pc
		}
	}
	if stop := checkRA(regs, sp, pc); stop != unwind.StopNone {
		return stop
	}
	restoreSlots(r, from, regs, mem)
	regs.X[regLR], regs.PC, regs.Sp = lr, pc, sp
	f.CFA = sp
	return unwind.StopNone
}

// returnAddress gives x30 as it was when the function was entered. A frame that
// has made a call must have saved it: what is in x30 now is of the callee.
func returnAddress(r *Rule, from uint64, regs *Registers, exact bool, mem *memory.Window) (uint64, unwind.Stop) {
	if r.saved&(1<<slotLR) != 0 {
		v, ok := mem.Word(r.slotAt(slotLR, from))
		if !ok {
			return 0, unwind.Unreadable
		}
		return v, unwind.StopNone
	}
	switch {
	case !exact && r.saved&flagExact == 0:
		return 0, unwind.BadInfo
	case !known(regs, regLR):
		return 0, unwind.Unreadable
	}
	return regs.X[regLR], unwind.StopNone
}

// slotAt is the address of slot i.
func (r *Rule) slotAt(i int, from uint64) uint64 { return from + uint64(int64(r.slots[i])*8) }

// restoreSlots reads the saved registers. One whose word is missing becomes
// unknown: the walk may still go on without it.
func restoreSlots(r *Rule, from uint64, regs *Registers, mem *memory.Window) {
	have, lost := regs.Known&nonvolatile|1<<regLR, uint64(0)
	for s := r.saved & (slotsMask &^ (1 << slotLR)); s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		if v, ok := mem.Word(r.slotAt(i, from)); ok {
			setSlot(regs, i, v)
			have |= slotBit(i)
		} else {
			lost |= slotBit(i)
		}
	}
	regs.Known = have &^ lost
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
	if ra == regs.PC && sp == regs.Sp {
		return unwind.NoProgress
	}
	return unwind.StopNone
}

package arm64

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var unbounded unwind.Bounds

// Step implements unwind.Walker. After it, the callee-saved registers (x19-x29, d8-d15, SP) are the caller's.
// Those whose value is lost, and all volatile ones, are not in Known. x30 is the word in the return address's
// place, with its pointer authentication code if the platform leaves it there.
func (u *Unwinder) Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	if s.Regs.Arch != context.ArchARM64 {
		*f = unwind.Frame{Module: -1}
		return unwind.Unsupported
	}
	if b == nil {
		b = &unbounded
	}
	regs, at := &s.Regs.ARM64, unwind.Address{IP: s.Regs.ARM64.PC, Exact: s.Exact}
	r := u.hit(at.Lookup())
	if r == nil {
		r = u.lookup(at)
	}
	f.Trust = s.Trust
	if u.stepHot(r, regs, s.Exact, mem, b, f) {
		s.Reached(false, u.trust)
	} else if stop := u.stepRare(r, s, mem, b, f); stop != unwind.StopNone {
		return ended(r, stop, s, mem, b)
	}
	if r = u.hit(s.Address().Lookup()); r == nil {
		r = u.lookup(s.Address())
	}
	if r.outside() {
		doubtOutside(s)
	}
	return unwind.StopNone
}

// doubtOutside marks a frame outside all known code as doubtful, unless a call to 0 was interrupted.
func doubtOutside(s *unwind.State) {
	if !s.Exact || s.Regs.ARM64.PC >= nullPage {
		s.Trust = s.Trust.Then(unwind.TrustOutside)
	}
}

// ended returns why a walk ended at s, with rule r. A return address of 0 at the stack's end is EndOfStack,
// but not in interrupted code with call frame information, which may be wrong there.
func ended(r *Rule, stop unwind.Stop, s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	if stop == unwind.NullReturn && !(s.Exact && (r.Kind() == RuleSlots || r.Kind() == RuleCFI)) {
		return b.Null(s.Regs.ARM64.Sp, mem.Hot().End())
	}
	return stop
}

// describe fills in f before the frame is left.
func describe(r *Rule, regs *Registers, exact bool, f *unwind.Frame) {
	f.IP, f.SP, f.FP, f.CFA = regs.PC, regs.Sp, regs.X[regFP], 0
	f.Module, f.Kind, f.Exact = int32(r.Module()), unwind.KindNative, exact
	if r.Managed() {
		f.Kind = unwind.KindManaged
	}
}

// stepRare executes any rule. On success, s is the caller, and u.trust how it was found.
func (u *Unwinder) stepRare(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	describe(r, &s.Regs.ARM64, s.Exact, f)
	exact, stop := u.leaveFrame(r, s, mem, b, f)
	if stop == unwind.StopNone {
		s.Reached(exact, u.trust)
	}
	return stop
}

// leaveFrame changes only the registers and Left of s, and reports whether the caller was interrupted.
func (u *Unwinder) leaveFrame(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	switch r.kind {
	case RuleSlots:
		u.trust = unwind.TrustCFI
		return false, u.stepSlots(r, s, mem, b, f)
	case RuleSlotsPE:
		u.trust = unwind.TrustUnwindInfo
		return r.saved&flagExact != 0, u.stepSlots(r, s, mem, b, f)
	case RuleCFI:
		u.trust = unwind.TrustCFI
		return u.stepCFI(r, s, mem, b, f)
	case RulePE:
		u.trust = unwind.TrustUnwindInfo
		return u.stepPE(r, s, mem, b, f)
	case RuleLeafPE:
		u.trust = unwind.TrustLeaf
		return false, u.stepSlots(r, s, mem, b, f)
	case RuleEnd:
		return false, unwind.EndOfStack
	case RuleBad:
		return false, unwind.BadInfo
	case RuleUnsupported:
		return false, unwind.Unsupported
	}
	return u.fallback(r, s, mem, b, f)
}

// stepSlots executes a rule of slots anywhere in the window.
func (u *Unwinder) stepSlots(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	regs := &s.Regs.ARM64
	from, ok := base(regs, r.base)
	if !ok {
		return unwind.Unreadable
	}
	cfa := from + uint64(int64(r.cfa))
	sp := cfa
	if r.saved&flagShift != 0 {
		sp += 16
	}
	left := uint8(0)
	if stop := checkSP(regs.Sp, sp, b); stop != unwind.StopNone {
		if r.kind != RuleSlots || r.base != regFP || !s.LeavesStack(sp, mem, b) {
			return stop
		}
		left = 1 // if the return address follows a call
	}
	lr, stop := returnAddress(r, from, s, mem)
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
	if left != 0 && !u.called(pc, mem) {
		return checkSP(regs.Sp, sp, b)
	}
	s.Left += left
	restoreSlots(r, from, regs, mem)
	regs.X[regLR], regs.PC, regs.Sp = lr, pc, sp
	f.CFA = sp
	return unwind.StopNone
}

// returnAddress returns x30 as it was at the function's entry. A frame that has made a call must have saved
// it, because x30 now belongs to the callee.
func returnAddress(r *Rule, from uint64, s *unwind.State, mem *memory.Window) (uint64, unwind.Stop) {
	regs := &s.Regs.ARM64
	if r.saved&(1<<slotLR) != 0 {
		v, ok := mem.Word(r.slotAt(slotLR, from))
		if !ok {
			return 0, unwind.Unreadable
		}
		return v, unwind.StopNone
	}
	switch {
	case !s.Exact && r.saved&flagExact == 0:
		return 0, unwind.BadInfo
	case !known(regs, regLR):
		return 0, unwind.Unreadable
	}
	return regs.X[regLR], unwind.StopNone
}

// slotAt returns the address of slot i.
func (r *Rule) slotAt(i int, from uint64) uint64 { return from + uint64(int64(r.slots[i])*8) }

// restoreSlots reads the saved registers. A register whose word is missing becomes unknown: the walk may
// continue without it.
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

// checkSP checks whether a caller's stack pointer can follow sp. A thread on a stack other than the bounded
// one (a signal stack) must only make progress.
func checkSP(sp, caller uint64, b *unwind.Bounds) unwind.Stop {
	if caller < sp {
		return unwind.NoProgress
	}
	if b.High != 0 && sp >= b.Low && sp <= b.High && caller > b.High {
		return unwind.OutOfStack
	}
	return unwind.StopNone
}

// checkRA ends the walk at a zero return address, which ended then judges, and at a frame that changes
// nothing. The same return address at another stack pointer is recursion.
func checkRA(regs *Registers, sp, ra uint64) unwind.Stop {
	if ra == 0 {
		return unwind.NullReturn
	}
	if ra == regs.PC && sp == regs.Sp {
		return unwind.NoProgress
	}
	return unwind.StopNone
}

package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var unbounded unwind.Bounds

// Step implements unwind.Walker. After it, the callee-saved registers (RBX RBP RSP R12-R15, on Windows more)
// are the caller's. Those whose value is lost, and all volatile ones, are not in Known.
func (u *Unwinder) Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	if s.Regs.Arch != context.ArchAMD64 {
		*f = unwind.Frame{Module: -1}
		return unwind.Unsupported
	}
	if b == nil {
		b = &unbounded
	}
	regs := &s.Regs.AMD64
	r := u.kept(unwind.Address{IP: regs.RIP, Exact: s.Exact}.Lookup())
	if r.bits == 0 {
		r = u.miss(s.Address())
	}
	f.Trust = s.Trust
	if fm := &forms[r.bits&15]; stepHot(r, fm, regs, s.Exact, mem, b, f) {
		u.trust = fm.trust
		s.Reached(false, fm.trust)
	} else if stop := u.stepRare(r, s, mem, b, f); stop != unwind.StopNone {
		return ended(r, stop, s, mem, b)
	}
	r = u.kept(unwind.Address{IP: regs.RIP, Exact: s.Exact}.Lookup())
	if r.bits == 0 || r.outside() {
		u.reached(r, s, mem, f)
	}
	return unwind.StopNone
}

// ended returns why a walk ended at s, with rule r. A return address of 0 at the stack's end is EndOfStack,
// but not in interrupted code with call frame information, which may be wrong there.
func ended(r Rule, stop unwind.Stop, s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop {
	if stop == unwind.NullReturn && !(s.Exact && (r.Kind() <= RuleSide || r.Kind() == RuleThunk)) {
		return b.Null(s.Regs.AMD64.GPR[context.RSP], mem.Hot().End())
	}
	return stop
}

// reached returns the rule of the frame just reached, after repairing the step out of a return hook. r is its
// rule from the cache. reached marks a frame outside all known code as doubtful, unless a call to 0 was
// interrupted.
func (u *Unwinder) reached(r Rule, s *unwind.State, mem *memory.Window, f *unwind.Frame) Rule {
	regs := &s.Regs.AMD64
	if r.bits == 0 {
		r = u.miss(unwind.Address{IP: regs.RIP, Exact: s.Exact})
	}
	switch {
	case !r.outside() || s.Exact && regs.RIP < nullPage:
	case u.unknown != 0 && !s.Exact && u.unlisted(regs, mem, f):
		return u.lookup(unwind.ReturnAddress(regs.RIP))
	default:
		s.Trust = s.Trust.Then(unwind.TrustOutside)
	}
	return r
}

// describe fills in f before the frame is left. It is small enough to be inlined.
func describe(r Rule, regs *Registers, exact bool, f *unwind.Frame) {
	f.IP, f.SP, f.FP, f.CFA = regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP], 0
	f.Module, f.Kind, f.Exact = int32(r.Module()), unwind.KindNative, exact
	if r.Managed() {
		f.Kind = unwind.KindManaged
	}
}

// stepCFA executes a rule of slots anywhere in the window. If a saved register cannot be read, the register
// becomes unknown and the walk continues. A return address of 0 ends the walk, except in a return hook, where
// the word is not a return address.
func (u *Unwinder) stepCFA(r Rule, cfa uint64, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	u.trust = unwind.TrustCFI
	regs, to, left := &s.Regs.AMD64, cfa, uint8(0)
	ra, ok := mem.Word(cfa - 8)
	if stop := checkSP(regs.GPR[context.RSP], cfa, b); stop != unwind.StopNone {
		if r.Kind() != RuleBP || !u.leavesStack(s, cfa, ra, mem, b) {
			return stop
		}
		left = 1
	}
	if !ok {
		return unwind.Unreadable
	}
	if stop := checkRA(regs, cfa, ra); stop != unwind.StopNone {
		ra = u.replacedReturn(cfa, f.SP, mem)
		if stop != unwind.NullReturn || ra == 0 {
			return stop
		}
		to, left = cfa+uint64(u.unknown), 0
	}
	s.Left += left
	regs.Known = restoreFar(regs.Known&nonvolatile, r.slots()<<8, cfa, regs, mem)
	f.CFA, regs.RIP, regs.GPR[context.RSP] = to, ra, to
	return unwind.StopNone
}

// stepRare executes any rule. On success, s is the caller, and u.trust how it was found.
func (u *Unwinder) stepRare(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	describe(r, &s.Regs.AMD64, s.Exact, f)
	if r.Kind() == RuleNoInfo && r.bits&jitBit != 0 {
		f.Kind = unwind.KindJIT
	}
	exact, stop := u.leaveFrame(r, s, mem, b, f)
	if stop == unwind.StopNone {
		s.Reached(exact, u.trust)
	}
	return stop
}

// leaveFrame changes only the registers and Left of s, and reports whether the caller was interrupted.
func (u *Unwinder) leaveFrame(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	regs := &s.Regs.AMD64
	switch r.Kind() {
	case RuleSP:
		return false, u.stepCFA(r, regs.GPR[context.RSP]+r.offset(), s, mem, b, f)
	case RuleBP:
		bp, ok := regs.GPR[context.RBP], known(regs, context.RBP)
		if !ok && b.Follow {
			bp, ok = u.measureFrame(r, s, mem)
		}
		if !ok {
			return false, unwind.Unreadable
		}
		return false, u.stepCFA(r, bp+r.offset(), s, mem, b, f)
	case RuleThunk:
		return u.stepThunk(r, s, mem, b, f)
	case RuleSide:
		return u.stepSide(r, s, mem, b, f)
	case RuleSlotsPE:
		if r.exactPE() == s.Exact && u.stepTable(r, regs, mem, b, f) {
			return false, unwind.StopNone
		}
		fallthrough
	case RuleNear, RuleNearBP, RuleNearEpilog, RuleNearLeaf, RulePE:
		// For a rule with slots, some words are not in the hot run.
		u.trust = unwind.TrustUnwindInfo
		return u.stepPE(u.table.At(r.Module()), s, mem, b, f)
	case RuleEnd:
		return false, unwind.EndOfStack
	case RuleBad:
		return false, unwind.BadInfo
	}
	return u.fallback(r, s, mem, b, f)
}

// leavesStack reports whether the caller of a frame whose CFA is not relative to RSP
// is on another stack: see unwind.State.LeavesStack.
func (u *Unwinder) leavesStack(s *unwind.State, sp, ra uint64, mem *memory.Window, b *unwind.Bounds) bool {
	return s.LeavesStack(sp, mem, b) && u.afterCall(ra)
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

// checkRA ends the walk at a zero return address, and at a frame that changes nothing. The function ended
// decides later what a zero means. The same return address at another stack pointer is recursion.
func checkRA(regs *Registers, sp, ra uint64) unwind.Stop {
	if ra == 0 {
		return unwind.NullReturn
	}
	if ra == regs.RIP && sp == regs.GPR[context.RSP] {
		return unwind.NoProgress
	}
	return unwind.StopNone
}

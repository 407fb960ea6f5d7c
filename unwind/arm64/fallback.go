package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// fallback steps if no unwind data covers the address, and returns NoInfo if it cannot. It tries, in this
// order: what the code proves (byCode); following the code, if the bounds allow it; the platform's rule; the
// frame pointer, if the bounds allow guesses. Compiled managed code proves nothing, but a trampoline at a
// page's start has the look-up address of the code before it, which may be managed.
func (u *Unwinder) fallback(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	if !r.Managed() || r.Module() >= 0 || s.Regs.ARM64.PC&(pageSize-1) == 0 {
		callerExact, stop := u.byCode(r, s, mem, b, f)
		if stop != unwind.NoInfo {
			return callerExact, stop
		}
	}
	if (b.Guess || b.Follow) && u.code(r.Module(), s, mem, b, f) {
		return false, unwind.StopNone
	}
	if u.ruled(r.Module(), s, mem, b, f) {
		return false, unwind.StopNone
	}
	if b.Guess && u.framePointer(&s.Regs.ARM64, mem, b) {
		u.trust = unwind.TrustFramePointer
		return false, unwind.StopNone
	}
	return false, unwind.NoInfo
}

// byCode steps by what the code proves: out of a signal trampoline, a linkage table entry, or simple code
// that can be executed forward to its return. NoInfo means that it proves nothing.
func (u *Unwinder) byCode(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	regs := &s.Regs.ARM64
	if m, i := u.moduleOf(regs.PC); inTrampoline(m, regs.PC, mem) {
		f.Kind, f.Module = unwind.KindSignal, int32(i)
		to, ok := sigreturn(regs.Sp, mem)
		if !ok {
			return false, unwind.Unreadable
		}
		return true, u.accept(&to, true, regs, b, f)
	}
	if i := r.Module(); i >= 0 && i < u.table.Len() && isRoot(u.table.At(i), regs) {
		return false, unwind.EndOfStack
	}
	if s.Exact && regs.PC < nullPage && known(regs, regLR) {
		to := *regs
		to.PC = stripPAC(regs.X[regLR])
		to.Known &= nonvolatile
		if !u.afterCall(to.PC, mem) {
			return false, unwind.NoInfo
		}
		return false, u.accept(&to, false, regs, b, f)
	}
	i := r.Module()
	if i < 0 || i >= u.table.Len() {
		return false, unwind.NoInfo
	}
	m := u.table.At(i)
	if pushed, ok := plt0Pushed(m, regs.PC); ok && s.Exact && known(regs, regLR) {
		to := *regs
		to.Sp, to.PC = regs.Sp+pushed, stripPAC(regs.X[regLR])
		to.Known &= nonvolatile
		return false, u.accept(&to, false, regs, b, f)
	}
	to, ok := leave(m, s, mem, r.saved&flagDoubt != 0)
	if !ok || !u.afterCall(to.PC, mem) {
		return false, unwind.NoInfo
	}
	return false, u.accept(&to, false, regs, b, f)
}

// pageSize is the smallest page size. nullPage is the end of the unmapped page at 0: a call through a null
// pointer leads into it, with its return address in x30.
const (
	pageSize = 4096
	nullPage = 4096
)

// moduleOf finds the module of an instruction itself: a handler returns to a trampoline's first instruction,
// whose look-up address is in the code before it.
func (u *Unwinder) moduleOf(pc uint64) (*module.Module, int) {
	if i := u.table.Find(pc); i >= 0 {
		return u.table.At(i), i
	}
	return nil, -1
}

// accept checks progress and bounds and makes the step. signal means that to was interrupted by a signal: it
// may be on another stack, and its pc may be 0 after a call through a null pointer.
func (u *Unwinder) accept(to *Registers, signal bool, regs *Registers, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	if !signal {
		if stop := checkSP(regs.Sp, to.Sp, b); stop != unwind.StopNone {
			return stop
		}
	}
	if stop := checkRA(regs, to.Sp, to.PC); stop != unwind.StopNone &&
		!(signal && stop == unwind.NullReturn) {
		return stop
	}
	u.trust = unwind.TrustLeaf
	f.CFA = to.Sp
	*regs = *to
	return unwind.StopNone
}

// afterCall reports whether a return address follows a call. If the instruction before it cannot be read, any
// address in a module or in managed code passes.
func (u *Unwinder) afterCall(ra uint64, mem *memory.Window) bool {
	m, _ := u.moduleOf(ra - 4)
	w, ok := codeWord(m, ra-4, mem)
	if !ok {
		return u.isCode(ra)
	}
	return nearcall.IsARM64(w)
}

// called is stricter than afterCall: if the instruction cannot be read, only managed code passes, since its
// bytes are in no file.
func (u *Unwinder) called(ra uint64, mem *memory.Window) bool {
	m, _ := u.moduleOf(ra - 4)
	if w, ok := codeWord(m, ra-4, mem); ok {
		return nearcall.IsARM64(w)
	}
	return u.table.IsManaged(unwind.ReturnAddress(ra).Lookup())
}

// framePointer treats x29 as a frame record's address if everything fits: it is aligned, not below SP, inside
// the bounds, and the word above it is an address in a known module or in managed code. Whether the function
// has a frame record is unknown, so the result is doubtful. The record may be anywhere in the frame, so SP is
// a lower bound, f.CFA stays 0, and the other callee-saved registers become unknown.
func (u *Unwinder) framePointer(regs *Registers, mem *memory.Window, b *unwind.Bounds) bool {
	fp := regs.X[regFP]
	if !known(regs, regFP) || fp&7 != 0 || fp < regs.Sp {
		return false
	}
	if checkSP(regs.Sp, fp+16, b) != unwind.StopNone {
		return false
	}
	next, ok := mem.Word(fp)
	lr, ok2 := mem.Word(fp + 8)
	pc := stripPAC(lr)
	if !ok || !ok2 || !u.isCode(pc) {
		return false
	}
	regs.PC, regs.Sp, regs.X[regFP], regs.X[regLR] = pc, fp+16, next, lr
	regs.Known = 1<<regFP | 1<<regLR
	return true
}

// isCode reports whether a return address is aligned and in a known module or in managed code. A cached rule
// answers that faster: guessed frames often repeat.
func (u *Unwinder) isCode(ra uint64) bool {
	at := unwind.ReturnAddress(ra).Lookup()
	if place, ok := u.kept(at); ok {
		r := &u.cache[place&(cacheSize-1)].rule
		return ra != 0 && ra&3 == 0 && (r.Managed() || r.Module() >= 0)
	}
	return ra != 0 && ra&3 == 0 && (u.table.Find(at) >= 0 || u.table.IsManaged(at))
}

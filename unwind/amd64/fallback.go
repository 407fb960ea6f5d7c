package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// fallback steps if no unwind data covers the address. It tries, in this order: a call through a null
// pointer; what the code proves; the frame pointer of code that is known to keep it (its prolog may not have
// run); following the code, if the bounds allow it; any frame pointer, if they allow guesses.
func (u *Unwinder) fallback(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	regs := &s.Regs.AMD64
	if s.Exact && regs.RIP < nullPage {
		to, ok := popped(regs, 0, mem) // the call has pushed its return address, and nothing has run since
		if !ok || !u.afterCall(to.RIP) {
			return false, unwind.NoInfo
		}
		return false, u.accept(&to, false, regs, b, f)
	}
	i := r.Module()
	if i >= 0 {
		callerExact, stop := u.byCode(r, s, mem, b, f)
		if stop != unwind.NoInfo {
			return callerExact, stop
		}
	}
	keeps := i < 0 && r.bits&jitBit != 0 || i >= 0 && u.table.At(i).FramePointers
	if keeps && u.framePointer(regs, mem, b, f) ||
		(b.Guess || b.Follow) && u.code(i, s, mem, b, f) ||
		b.Guess && u.framePointer(regs, mem, b, f) {
		return false, unwind.StopNone
	}
	return false, unwind.NoInfo
}

// byCode steps by what the code proves: out of a signal trampoline, out of a linkage table entry, or out of
// code whose exits all agree. NoInfo means that it proves nothing.
func (u *Unwinder) byCode(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	m, regs := u.table.At(r.Module()), &s.Regs.AMD64
	class, why := u.classOf(r, m, s), unwind.Unreadable
	var to Registers
	ok, signal := false, class == codeTrampoline
	switch class {
	case codeRoot:
		why = unwind.EndOfStack
	case codeTrampoline:
		f.Kind = unwind.KindSignal
		to, ok = sigreturn(regs.GPR[context.RSP], mem)
	case codeOther:
		why = unwind.NoInfo
		to, ok = u.proven(m, s, mem)
	default:
		to, ok = popped(regs, int(class-codeLinkage), mem)
	}
	if !ok {
		return false, why
	}
	return signal, u.accept(&to, signal, regs, b, f)
}

// codeClass classifies the code at an address without unwind data.
type codeClass uint64

const (
	codeOther      codeClass = iota
	codeRoot                 // has no caller
	codeTrampoline           // a signal trampoline
	codeLinkage              // a linkage table entry, plus the number of words it has pushed
)

// classOf classifies the code of a frame, or returns the class that its rule has recorded.
func (u *Unwinder) classOf(r Rule, m *module.Module, s *unwind.State) codeClass {
	if r.Kind() == RuleNoInfo && r.looked(s.Exact) {
		return codeClass(r.index())
	}
	class := classify(m, s.Address())
	if r.Kind() == RuleNoInfo && r.bits&seenBit == 0 {
		bits := uint64(class)<<offsetShift | seenBit
		if s.Exact {
			bits |= exactBit
		}
		u.amend(s.Address(), r, bits)
	}
	return class
}

func classify(m *module.Module, a unwind.Address) codeClass {
	if isRoot(m, a.IP) || !a.Exact && lastCall(m, a.IP) {
		return codeRoot
	}
	if inTrampoline(m, a.IP) {
		return codeTrampoline
	}
	if words, ok := x86.LinkageDepth(m.Bytes, a.IP); ok && a.Exact {
		return codeLinkage + codeClass(words)
	}
	return codeOther
}

// popped returns the caller of code that has pushed some words and no registers.
func popped(regs *Registers, words int, mem *memory.Window) (Registers, bool) {
	to, sp := *regs, regs.GPR[context.RSP]+8*uint64(words)
	ra, ok := mem.Word(sp)
	to.RIP, to.GPR[context.RSP] = ra, sp+8
	to.Known &= nonvolatile
	return to, ok
}

// accept checks progress and bounds and makes the step. signal means that a signal interrupted the caller: it
// may be on another stack, and its ip may be 0 after a call through a null pointer.
func (u *Unwinder) accept(to *Registers, signal bool, regs *Registers, b *unwind.Bounds,
	f *unwind.Frame) unwind.Stop {
	sp := to.GPR[context.RSP]
	if !signal {
		if stop := checkSP(regs.GPR[context.RSP], sp, b); stop != unwind.StopNone {
			return stop
		}
	}
	if stop := checkRA(regs, sp, to.RIP); stop != unwind.StopNone && !(signal && stop == unwind.NullReturn) {
		return stop
	}
	u.trust = unwind.TrustLeaf
	f.CFA = sp
	*regs = *to
	return unwind.StopNone
}

// framePointer treats RBP as a frame pointer if two conditions hold. RBP is aligned, not below the stack
// pointer, and inside the bounds. The word above it is an address in a known module, managed code, or foreign
// JIT code. The result is doubtful, because the function may have no frame pointer. The other callee-saved
// registers become unknown. It returns false, and changes nothing, if a condition fails.
func (u *Unwinder) framePointer(regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	fp, sp := regs.GPR[context.RBP], regs.GPR[context.RSP]
	if !known(regs, context.RBP) || fp&7 != 0 || fp < sp ||
		checkSP(sp, fp+16, b) != unwind.StopNone {
		return false
	}
	next, ok := mem.Word(fp)
	ra, ok2 := mem.Word(fp + 8)
	if !ok || !ok2 || !u.isCode(ra) {
		return false
	}
	f.CFA = fp + 16
	regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP] = ra, fp+16, next
	regs.Known = 1<<context.RSP | 1<<context.RBP
	u.trust = unwind.TrustFramePointer
	return true
}

// isCode reports whether a return address is in a known module, managed code, or foreign JIT code. It also
// makes the rule for the next step.
func (u *Unwinder) isCode(ra uint64) bool {
	return ra != 0 && !u.lookup(unwind.ReturnAddress(ra)).outside()
}

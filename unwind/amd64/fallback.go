package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// fallback steps where no unwind data covers the address: first by what the
// code bytes prove, then, if the bounds allow guessing, by the frame pointer.
func (u *Unwinder) fallback(r Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	if b.Guess {
		if u.framePointer(regs, mem, b, f) {
			u.trust = unwind.TrustFramePointer
			return false, unwind.StopNone
		}
	}
	return false, unwind.NoInfo
}

// framePointer takes RBP for a frame pointer if everything about it fits: it is
// aligned, not below the stack pointer, inside the bounds, and the word above
// it is an address of a known module or of managed code. Whether the function
// has a frame pointer at all it cannot know, hence the doubt; the other
// callee-saved registers are unknown after it.
func (u *Unwinder) framePointer(regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	fp, sp := regs.GPR[context.RBP], regs.GPR[context.RSP]
	if !known(regs, context.RBP) || fp&7 != 0 || fp < sp || fp > fp+16 {
		return false
	}
	if checkSP(sp, fp+16, b) != unwind.StopNone {
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
	return true
}

// isCode reports whether a return address lies in a known module or in managed
// code.
func (u *Unwinder) isCode(ra uint64) bool {
	at := unwind.LookupIP(ra, false)
	return ra != 0 && (u.table.Find(at) >= 0 || u.table.IsManaged(at))
}

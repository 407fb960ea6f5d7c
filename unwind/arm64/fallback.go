package arm64

import (
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// fallback steps where no unwind data covers the address: first by what the
// code bytes prove, then, if the bounds allow guessing, by the frame pointer.
func (u *Unwinder) fallback(r *Rule, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Stop) {
	if b.Guess && u.framePointer(regs, mem, b, f) {
		u.trust = unwind.TrustFramePointer
		return false, unwind.StopNone
	}
	return false, unwind.NoInfo
}

// framePointer takes x29 for a frame record if everything about it fits: it is
// aligned, not below SP, inside the bounds, and the word above it is an address
// of a known module or of managed code. Whether the function has a frame record
// at all it cannot know, hence the doubt; the record may lie anywhere in the
// frame, so SP is the lowest it can be, and the other callee-saved registers
// are unknown.
func (u *Unwinder) framePointer(regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) bool {
	fp := regs.X[regFP]
	if !known(regs, regFP) || fp&7 != 0 || fp < regs.Sp || fp > fp+16 {
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

// isCode reports whether a return address lies in a known module or in managed
// code.
func (u *Unwinder) isCode(ra uint64) bool {
	at := unwind.LookupIP(ra, false)
	return ra != 0 && ra&3 == 0 && (u.table.Find(at) >= 0 || u.table.IsManaged(at))
}

package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Functions of a PE image that its exception directory does not list are leaves, by the platform's rule: the
// return address is on top of the stack. Some functions break the rule: ___chkstk_ms in every program of gcc
// pushes two registers, and system call stubs make calls. So the code has to agree: followed over all its
// branches, every exit must leave the stack pointer at the same place.

// maxProof bounds the instructions of such a function: leaves are short.
const maxProof = 400

// A proof is what the code of a function without unwind data proves.
type proof uint8

const (
	nothingProven proof = iota
	leafProven          // the stack pointer is unchanged at all exits
	// the same, but the code makes a call: code after a call that does not return may be another function's
	leafCalls
	frameProven // every exit finds the return address at the same other place
)

// exit handles an exit: a return, or a jump through an import's address, which leaves a function like a
// return. A return to an address that the code has stored itself is a jump.
func (f *follower) exit(e *emulator) {
	sp := e.regs[context.RSP]
	if sp.kind != knownValue || e.stored(sp.v) || f.returns > 0 && f.found.regs[context.RSP].v != sp.v {
		f.torn = true
		return
	}
	if f.returns == 0 {
		f.found = *e
	}
	f.returns++
}

// proves follows the code at ip to its exits. If mem is nil, regs are symbols.
func (u *Unwinder) proves(m *module.Module, ip uint64, regs *Registers, mem *memory.Window) proof {
	f := &u.follower
	f.left = maxProof
	f.begin(m, ip).enterFrame(regs)
	f.mem, f.prove, f.sp = mem, true, regs.GPR[context.RSP]
	u.follow()
	switch sp := f.found.regs[context.RSP].v; {
	case f.torn || f.returns == 0:
		return nothingProven
	case sp != f.sp && (f.called || sp < f.sp):
		return nothingProven
	case sp != f.sp:
		return frameProven
	case f.called:
		return leafCalls
	}
	return leafProven
}

// maxStraight is how many bytes of a function are read as a straight leaf.
const maxStraight = 64

// straightLeaf is a cheap first test for a leaf: it reports whether code runs straight to a return and does
// not change the stack pointer or the return address. It returns false for any instruction other than a move
// or a computation. Such code needs the slower test, proves.
func straightLeaf(code []byte) bool {
	rest := skipPlain(code)
	return len(rest) > 0 && rest[0] == 0xc3
}

// skipPlain skips instructions that only move and compute, and returns the rest of code. It also stops at an
// instruction that changes the stack pointer or the word at it, and at one that it cannot decode.
func skipPlain(code []byte) []byte {
	for len(code) > 0 && code[0] != 0xc3 {
		in := x86.Decode(code)
		if in.Size == 0 || in.VEX || in.Writes()>>context.RSP&1 != 0 || !in.Plain() ||
			in.Memory && in.Base == context.RSP && in.Disp < 8 {
			break
		}
		code = code[in.Size:]
	}
	return code
}

// proven steps out of System V code without unwind data in which a thread was interrupted. The code must not
// make calls, and all its exits must agree. Code after a call is left to follow, since the called function
// may never return.
func (u *Unwinder) proven(m *module.Module, s *unwind.State, mem *memory.Window) (to Registers, ok bool) {
	regs := &s.Regs.AMD64
	if !s.Exact || !m.SystemV() {
		return to, false
	}
	switch u.proves(m, regs.RIP, regs, mem) {
	case leafProven, frameProven:
		to, ok = u.follower.found.leave(regs, mem, nonvolatile)
	}
	return to, ok && u.afterCall(to.RIP)
}

// silent steps out of code that a PE image's unwind data do not cover. proven is false if only a call before
// the return address supports the leaf rule. A frame that seems to have made a call is proven only in a
// system call: there it was in fact interrupted.
func (u *Unwinder) silent(m *module.Module, s *unwind.State,
	mem *memory.Window) (to Registers, proven, ok bool) {
	regs, exact := &s.Regs.AMD64, s.Exact
	how := u.proves(m, regs.RIP, regs, mem)
	if how == frameProven {
		to, ok = u.follower.found.leave(regs, mem, windowsKept)
		return to, exact, ok && u.afterCall(to.RIP)
	}
	to, ok = popped(regs, 0, mem)
	to.Known = regs.Known & windowsKept
	switch {
	case !ok:
		return to, false, false
	case exact && len(m.Bytes(regs.RIP, 1)) == 0: // an image without its code
		return to, false, u.isCode(to.RIP)
	case how == leafProven && exact:
		return to, true, true
	case how == nothingProven && !exact:
		return to, false, false
	case !exact && behindSystemCall(m, regs.RIP):
		return to, true, u.afterCall(to.RIP)
	}
	return to, exact && how != nothingProven, u.afterCall(to.RIP)
}

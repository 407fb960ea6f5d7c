package unwind

import "github.com/seedwalk/seedwalk/context/memory"

// MaxLeft is the most stack switches of a walk that LeavesStack allows. Programs with segmented stacks
// (rustc's stacker, gcc's -fsplit-stack) have one more segment for each time a stack was too small.
const MaxLeft = 32

// LeavesStack reports whether the caller of the frame s can be on another stack. caller is the caller's stack
// pointer. The other stack may be below the frame's own, or outside the thread's bounds. A function may have
// switched stacks before its call. If it keeps its caller's stack pointer in a register, the unwind data find
// the caller.
//
// The walker checks that the return address follows a call. LeavesStack checks three conditions. The frame
// itself is not a guess. The caller's stack is in the window. The two are on different stacks: one is inside
// the thread's bounds and one outside. If the bounds do not decide, each must be in its own run of memory.
// Below a stack pointer on the same stack are only remains of functions that have returned.
//
// On a hostile stack, each such step could be undone by the next, so MaxLeft bounds their number. All other
// steps raise the stack pointer.
func (s *State) LeavesStack(caller uint64, mem *memory.Window, b *Bounds) bool {
	sp := s.Regs.SP()
	if s.Trust.Doubtful() || s.Left >= MaxLeft {
		return false
	}
	run, ok := mem.Run(caller - 8)
	if !ok {
		return false
	}
	if from, to := b.holds(sp), b.holds(caller); from || to {
		return from != to
	}
	// A stack pointer at the stack's end is in no run. The word below it, where a call pushed its return
	// address, is still in the stack's run.
	at, ok := mem.Run(sp - 8)
	if !ok {
		at, ok = mem.Run(sp)
	}
	return ok && at.Addr != run.Addr
}

// holds reports whether a stack pointer is on the bounded stack or at its end. Unknown bounds hold nothing.
func (b *Bounds) holds(sp uint64) bool { return b.High != 0 && sp >= b.Low && sp <= b.High }

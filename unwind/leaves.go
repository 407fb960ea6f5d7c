package unwind

import "github.com/seedwalk/seedwalk/context/memory"

// MaxLeft is how many stacks a walk leaves as LeavesStack allows. Programs that grow a
// stack in pieces (rustc's stacker, gcc's -fsplit-stack) have one piece more for each
// time it was too small.
const MaxLeft = 32

// LeavesStack reports whether the caller of the frame, at this stack pointer, can be on
// another stack, though that lies below the frame's own or above the thread's bounds: a
// function may have gone over to another stack before it called on. Of one that keeps
// its caller's stack pointer in a register the unwind data then lead back.
//
// That they do is for the walker to know, and that a call stands before the return
// address. Here it counts that the frame itself is no guess, that there is memory, and
// that the two are on different stacks: one within the thread's bounds and one outside;
// where that says nothing, each in a run of memory of its own. Below a stack pointer of
// the same stack are left-overs of functions that have returned.
//
// Each such step could be undone by the next of a hostile stack, hence MaxLeft. Between
// two of them the stack pointer rises.
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
	// Where a call pushed its return address is of the stack, when nothing else is.
	at, ok := mem.Run(sp - 8)
	if !ok {
		at, ok = mem.Run(sp)
	}
	return ok && at.Addr != run.Addr
}

// holds reports whether a stack pointer is of the bounded stack.
func (b *Bounds) holds(sp uint64) bool { return b.High != 0 && sp >= b.Low && sp <= b.High }

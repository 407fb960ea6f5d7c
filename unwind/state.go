package unwind

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// State is the current frame of a walk: its registers, whether its instruction pointer is an interrupted one,
// its trust, and how many stacks the walk has left. Regs is the caller's storage; a step changes it in place.
//
// The walkers' hot steps (stepHot, describe) do not use a State. They have registers and
// exactness as separate arguments, and return the caller's exactness next to the stop. As one State, these
// would stay in memory from frame to frame, and warm walks would take 4 to 20 % longer.
type State struct {
	Regs  *context.Registers
	Exact bool
	Trust Trust
	Left  uint8 // stacks left against the stack's growth: see LeavesStack
}

// Interrupted returns the state of a thread that was stopped with these registers.
func Interrupted(regs *context.Registers) State {
	return State{Regs: regs, Exact: true, Trust: TrustContext}
}

// Address returns the frame's position.
func (s *State) Address() Address { return Address{IP: s.Regs.IP(), Exact: s.Exact} }

// Reached updates the state for a caller whose registers are already in Regs. exact means that the caller was
// interrupted; by is how it was found. If the frame that was left is doubtful, the caller is doubtful too.
func (s *State) Reached(exact bool, by Trust) { s.Exact, s.Trust = exact, s.Trust.Then(by) }

// Result is the result of a walk.
type Result struct {
	N    int  // frames written
	Stop Stop // why it ended
}

// Walker unwinds stacks of one architecture: *amd64.Unwinder, *arm64.Unwinder. It is called once per block of
// frames, never per word of memory: everything below this interface is concrete. Walk and Step allocate
// nothing, take no lock, and make no system call; they are not safe for concurrent use.
//
// With registers of another architecture they return Unsupported and change nothing.
type Walker interface {
	// Arch returns the architecture of its registers.
	Arch() context.Arch
	// Walk steps from s until something ends it and describes the frames in out,
	// leaf first; out[0] is the frame that s describes before the call. After it,
	// s is the frame at which the walk stopped:
	//
	//   - Managed: the frame is managed code and not in out: a seed.
	//   - BufferFull, Limit: the next frame, not in out.
	//   - otherwise: the last frame of out, which could not be left.
	//
	// A frame reached from a doubtful one is as doubtful. A nil b bounds nothing.
	Walk(s *State, mem *memory.Window, b *Bounds, out []Frame) Result
	// Step replaces s by its caller and describes the left frame in f. If the result is not StopNone, s is
	// unchanged and f.CFA is 0. A nil b bounds nothing.
	Step(s *State, mem *memory.Window, b *Bounds, f *Frame) Stop
	// SetTable sets the table for the following steps; nil changes nothing.
	SetTable(t *module.Table)
	// Table returns the current table.
	Table() *module.Table
	// Drop drops the pointers to the memory and the frames of the last walk, which a Walker may keep.
	Drop()
}

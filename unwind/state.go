package unwind

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// State is one frame while a walk stands at it: its registers, whether its
// instruction pointer is an interrupted one, how surely the frame was
// found, and how many stacks the walk has left. Regs is the caller's storage; a step
// changes it in place.
//
// Only inside the walkers' hot steps do registers and exactness go as two arguments
// (stepHot, stepNear, next, describe), and whether the caller was interrupted comes
// back beside the stop: as one State they stay in memory from frame to frame, and
// warm walks took 4 to 20 % longer.
type State struct {
	Regs  *context.Registers
	Exact bool
	Trust Trust
	Left  uint8 // stacks left for others against the stack's growth: see LeavesStack
}

// Interrupted is the state of a thread that was stopped with these registers.
func Interrupted(regs *context.Registers) State {
	return State{Regs: regs, Exact: true, Trust: TrustContext}
}

// Address is where the frame stands.
func (s *State) Address() Address { return Address{IP: s.Regs.IP(), Exact: s.Exact} }

// Reached makes the state that of a caller whose registers are in Regs already:
// exact tells whether it was interrupted, by how it was found. The doubt of the
// frame left stays with it.
func (s *State) Reached(exact bool, by Trust) { s.Exact, s.Trust = exact, s.Trust.Then(by) }

// Result is what a walk found.
type Result struct {
	N    int  // frames written
	Stop Stop // why it ended
}

// Walker unwinds stacks of one architecture: *amd64.Unwinder, *arm64.Unwinder.
// It is asked once per block of frames, never per word of memory: below this
// interface everything is concrete. It allocates nothing, takes no lock and
// makes no system call in Walk and Step; it is not safe for concurrent use.
//
// Registers of another architecture end in Unsupported, unchanged.
type Walker interface {
	// Arch is the architecture whose registers it takes.
	Arch() context.Arch
	// Walk steps from s until something ends it and describes the frames in out,
	// leaf first; out[0] is the frame s stood at. s is then the frame at which
	// the walk stopped:
	//
	//   - Managed: the frame is managed code and not in out: a seed.
	//   - BufferFull, Limit: the next frame, not in out.
	//   - otherwise: the last frame of out, which could not be left.
	//
	// A frame reached from a doubtful one is as doubtful. A nil b bounds nothing.
	Walk(s *State, mem *memory.Window, b *Bounds, out []Frame) Result
	// Step replaces s by its caller and describes the frame it left in f. If the
	// answer is not StopNone, s is as it was and f.CFA is 0. A nil b bounds
	// nothing.
	Step(s *State, mem *memory.Window, b *Bounds, f *Frame) Stop
	// SetTable makes t the table of the following steps; nil changes nothing.
	SetTable(t *module.Table)
	// Table is the table in force.
	Table() *module.Table
}

// Package seed turns the CONTEXT of a suspended thread into the CONTEXT of its
// top-most managed frame: the seed, with a verdict on whether it may be used.
//
// Sources: David Broman, "Profiler stack walking: basics and beyond"; the
// behaviour of .NET Core 2.0, 2.2 and .NET 10 on Windows.
//
// Glossary. A *redirect stub* is where the CLR sends a thread it has stopped in
// managed code, by writing its context; a *dispatcher* is where the kernel
// enters user mode with an exception (KiUserExceptionDispatcher). Nothing called
// either, so that on their first instructions no return address is on the
// stack: they are *specials*, and their addresses are given. A *foreign stack*
// is any but the thread's own: a fibre's, a coroutine's, an alternate signal
// stack.
//
// Strategy: refuse what cannot be walked before the first step; walk unmanaged
// frames from the captured registers until the walk stops at managed code; a
// seed is usable only if no frame above it is doubtful, if every register that a
// function preserves is known, and if its stack pointer and ip can be those of a
// frame. A seed is never adjusted.
//
// Known gaps: the specials' addresses are the caller's to find.
package seed

import "github.com/seedwalk/seedwalk/unwind"

// Verdict says whether there is a seed and whether to trust it.
type Verdict uint8

const (
	NotNeeded    Verdict = iota // the interrupted ip is managed already
	Found                       // the registers are those of the top-most managed frame
	NoManaged                   // the whole stack was walked and holds no managed frame
	Unsafe                      // managed code was reached over a doubtful frame, or its registers make no sense
	Truncated                   // the walk ended before managed code or the stack's end
	StubOnTop                   // the interrupted ip is in a special, or in the CLR's code that is no method
	ForeignStack                // the stack pointer is not on the thread's own stack: nothing was walked
)

var verdictNames = [...]string{"not-needed", "found", "no-managed", "unsafe", "truncated", "stub-on-top", "foreign-stack"}

// VerdictCount is the number of Verdict values.
const VerdictCount = len(verdictNames)

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "verdict?"
}

// Usable reports whether the CLR may be given the registers.
func (v Verdict) Usable() bool { return v == NotNeeded || v == Found }

// Outcome is a verdict with its evidence.
type Outcome struct {
	Verdict Verdict
	Stop    unwind.Stop
	Frames  int  // unmanaged frames written to out
	Loading bool // one of them is of the system's loader
}

// state is what is judged of a frame's registers, whatever their architecture.
type state struct {
	ip, sp  uint64
	missing uint64 // registers a function preserves whose value is not known
}

// rules is what an architecture demands of a state.
type rules struct {
	spAlign, ipAlign uint64 // bytes, powers of two
	ipBits           uint   // of a user-space address
}

// plausible checks what the CLR will dereference: an aligned stack pointer
// inside the stack, an ip that an instruction of user space can have.
func (a *rules) plausible(s state, b *unwind.Bounds) bool {
	return !foreign(s.sp, b) && s.sp&(a.spAlign-1) == 0 && s.sp != 0 && s.ip != 0 && s.ip&(a.ipAlign-1) == 0 && s.ip>>a.ipBits == 0
}

// foreign reports whether sp is outside the stack. Unknown bounds hold all.
func foreign(sp uint64, b *unwind.Bounds) bool {
	return b != nil && b.High != 0 && (sp < b.Low || sp >= b.High)
}

// judge returns the verdict on a walk that has written its frames. It began at
// top and stopped at s.
func (p *Specials) judge(o *Outcome, top state, s *unwind.State, b *unwind.Bounds, frames []unwind.Frame) Verdict {
	a, end := &rulesOf[s.Regs.Arch], stateOf(s.Regs)
	switch {
	case o.Stop == unwind.EndOfStack:
		return NoManaged
	case o.Stop != unwind.Managed:
		return Truncated
	case (top.sp&(a.spAlign-1))|(top.ip&(a.ipAlign-1)) != 0 || !a.plausible(end, b) || s.Trust.Doubtful():
		return Unsafe
	case o.Frames == 0 && p.isStub(end.ip):
		return StubOnTop
	case o.Frames == 0:
		return NotNeeded
	case end.missing != 0 || p.misread(frames, s):
		return Unsafe
	}
	return Found
}

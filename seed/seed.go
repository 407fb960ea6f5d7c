// Package seed turns the CONTEXT of a suspended thread into the CONTEXT of its
// top-most managed frame: the seed, with a verdict on whether it may be used.
//
// Source: David Broman, "Profiler stack walking: basics and beyond".
//
// Strategy: walk unmanaged frames from the captured registers until the walk
// stops at managed code; a seed is sure only if every frame above it was.
//
// Known gaps: redirect stubs and exception dispatch of Windows are not told
// apart yet.
package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// Verdict says whether there is a seed and whether to trust it.
type Verdict uint8

const (
	NotNeeded Verdict = iota // the interrupted ip is managed already
	Found                    // the registers are those of the top-most managed frame
	NoManaged                // the whole stack was walked and holds no managed frame
	Unsafe                   // managed code was reached over a doubtful frame, or its registers make no sense
	Truncated                // the walk ended before managed code or the stack's end
)

var verdictNames = [...]string{"not-needed", "found", "no-managed", "unsafe", "truncated"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "verdict?"
}

// Usable reports whether the CLR may be given the registers.
func (v Verdict) Usable() bool { return v == NotNeeded || v == Found }

// Result is a verdict with its evidence.
type Result struct {
	Verdict Verdict
	Stop    unwind.Stop
	Regs    context.AMD64 // at the frame where the walk stopped
	Exact   bool          // Regs.RIP is an interrupted ip, not a return address
	Frames  int           // unmanaged frames written to out
	Trust   unwind.Trust  // how surely the frame of Regs was found
}

// Find walks from regs, the registers of a thread stopped at an arbitrary
// point. It allocates nothing.
func Find(u *amd64.Unwinder, regs *context.AMD64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) Result {
	const trust = unwind.TrustContext
	r := Result{Regs: *regs}
	r.Frames, r.Exact, r.Stop = u.Walk(&r.Regs, true, trust, mem, b, out)
	if r.Trust = trust; r.Frames > 0 {
		r.Trust = out[r.Frames-1].Trust.Then(u.StepTrust())
	}
	r.Verdict = verdict(&r, b)
	return r
}

func verdict(r *Result, b *unwind.Bounds) Verdict {
	switch {
	case r.Stop == unwind.EndOfStack:
		return NoManaged
	case r.Stop != unwind.Managed:
		return Truncated
	case !plausible(&r.Regs, b) || r.Trust.Doubtful():
		return Unsafe
	case r.Frames == 0:
		return NotNeeded
	}
	return Found
}

// plausible checks what the CLR will dereference: an aligned stack pointer
// inside the stack, a canonical user-space ip.
func plausible(r *context.AMD64, b *unwind.Bounds) bool {
	sp := r.SP()
	inside := b.High == 0 || sp >= b.Low && sp < b.High
	return inside && sp%8 == 0 && sp != 0 && r.RIP != 0 && r.RIP>>47 == 0
}

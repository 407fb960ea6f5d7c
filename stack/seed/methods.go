package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Methods steps over managed code while a thread is suspended. It knows only code that it has seen before: a
// step allocates nothing, takes no lock, and makes no system call. *managed.Tables is one.
type Methods interface {
	// Caller replaces s by its caller. NoInfo means that the code of s is unknown, BadInfo that no call
	// precedes it, another stop that the frame is wrong. If the result is not StopNone, s is undefined.
	Caller(s *unwind.State, mem *memory.Window, b *unwind.Bounds) unwind.Stop
}

// Learner is a Methods that sees code after Caller has missed it.
type Learner interface {
	Methods
	// LearnMissed learns the code that Caller did not know last. It returns false if that is impossible. Call
	// it while nothing is suspended.
	LearnMissed() bool
}

// Learn learns the code for which the last seed was refused. It returns false if there was no such code, or
// the code cannot be learned.
func (x *Witness) Learn() bool {
	l, ok := x.Methods.(Learner)
	missed := x.missed
	x.missed = false
	return missed && ok && l.LearnMissed()
}

// longestChain bounds the managed frames that are walked from a seed, and the walks of a block of unmanaged
// frames.
const longestChain = 64

// chained reports whether the frames from s on return to each other down to the root of the stack, as far as
// their code is known. above are the unmanaged frames above them.
func (x *Witness) chained(s *unwind.State, above []unwind.Frame) bool {
	called := !s.Exact
	if n := len(above); n > 0 && x.p.InStub(above[n-1].IP) {
		called = false // the stub has been entered without a call
	}
	if called && !x.returned(s.Regs.Arch, s.Regs.IP()) {
		return false
	}
	if x.Methods == nil {
		return true
	}
	x.regs.Copy(s.Regs)
	x.at = *s
	x.at.Regs, x.at.Exact = &x.regs, !called
	x.missed = false
	for depth := range longestChain {
		if depth > 0 && !x.hasRecord(&x.regs) {
			return false
		}
		called := !x.at.Exact
		switch stop := x.Methods.Caller(&x.at, x.mem, x.b); {
		case stop == unwind.BadInfo && depth > 0:
			return true // an interrupted frame further down can look like a caller's
		case stop == unwind.NoInfo && x.Strict && !x.Top && called:
			x.missed = true
			return false // the walk is the only witness of this seed so far
		case stop != unwind.StopNone:
			return stop != unwind.BadInfo && !x.breaks(stop)
		case !x.plausible(x.regs.IP(), x.regs.SP()):
			return false
		}
		switch x.returnsTo(x.regs.Arch, x.regs.IP()) {
		case nowhere:
			return false
		case atHook:
			return x.hasRecord(&x.regs)
		case afterCall:
			if stop, ok := x.unmanaged(); !ok || stop != unwind.Managed {
				return ok
			}
		}
	}
	return true
}

// unmanaged walks the next block of unmanaged frames. ok is false if the block cannot be true. A doubtful
// frame proves nothing about those below it, but a sure frame above it must return to a possible address, and
// on ARM64 with a frame pointer.
func (x *Witness) unmanaged() (stop unwind.Stop, ok bool) {
	for range longestChain {
		r := x.w.Walk(&x.at, x.mem, x.b, x.out[:])
		sure := x.out[:r.N]
		for i := range sure {
			if sure[i].Trust.Doubtful() {
				sure = sure[:i]
				break
			}
		}
		if !x.called(x.regs.Arch, sure) {
			return r.Stop, false
		}
		if n := len(sure); n < r.N {
			f := &x.out[n]
			return unwind.Limit, f.Trust != unwind.TrustOutside ||
				x.plausible(f.IP, f.SP) && (x.regs.Arch != context.ArchARM64 || x.canPoint(f.FP, f.SP))
		}
		if !x.plausible(x.regs.IP(), x.regs.SP()) || x.breaks(r.Stop) {
			return r.Stop, false
		}
		if r.Stop != unwind.BufferFull {
			return r.Stop, true
		}
	}
	return unwind.Limit, true
}

// plausible is the same rule as for a seed.
func (x *Witness) plausible(ip, sp uint64) bool {
	return rulesOf[x.regs.Arch].plausible(state{ip: ip, sp: sp}, x.b)
}

// breaks reports whether a stop means that the frames above it are wrong, and not that something is unknown.
func (x *Witness) breaks(stop unwind.Stop) bool {
	switch stop {
	case unwind.Unreadable:
		return x.b != nil && x.b.High != 0 && x.mem.Hot().End() >= x.b.High // the copy is whole
	case unwind.NoProgress, unwind.OutOfStack, unwind.NullReturn:
		return true
	}
	return false
}

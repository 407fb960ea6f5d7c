package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// MaxPlaces is how many ranges Places can hold.
const MaxPlaces = 16

// Places are a few ranges of addresses. The zero Places has none.
type Places struct {
	hull   memory.Range // nearly every address is outside of it
	n      int
	ranges [MaxPlaces]memory.Range
}

// Add adds a range. It reports whether there was room.
func (p *Places) Add(r memory.Range) bool {
	if p.n == MaxPlaces {
		return false
	}
	if p.n == 0 {
		p.hull = r
	}
	p.hull = memory.Range{Start: min(p.hull.Start, r.Start), End: max(p.hull.End, r.End)}
	p.ranges[p.n] = r
	p.n++
	return true
}

func (p *Places) holds(ip uint64) bool { return p.hull.Holds(ip) && p.search(ip) }

func (p *Places) search(ip uint64) bool {
	for i := range p.ranges[:p.n] {
		if p.ranges[i].Holds(ip) {
			return true
		}
	}
	return false
}

// Specials are the places of a process that a walk must know by their address.
// Nil is none. They must not be changed while a walk uses them.
type Specials struct {
	// Redirect holds the parts of the CLR's redirect and hijack stubs before a
	// return address is stored in the stub's frame; from there on their unwind
	// data is true. Package clr/managed finds them.
	Redirect Places
	// Dispatch holds the functions at which the kernel enters user mode:
	// KiUserExceptionDispatcher, KiUserApcDispatcher, KiUserCallbackDispatcher.
	Dispatch Places
	// Loader holds the functions of the system that change its table of images and
	// of functions, under locks for which the CLR's own walk may wait.
	Loader Places
	// IsMethod tells methods from the CLR's other code, IL stubs and precode.
	// It is asked for the topmost ip, if that is managed, while the thread is
	// suspended. Nil takes all managed code for methods, as the CLR's own check
	// of a seed does with IL stubs.
	IsMethod func(ip uint64) bool
}

// entered reports whether ip, where a thread was interrupted, is in code that
// was entered without a call, so that a walk from there would read garbage.
func (s *Specials) entered(ip uint64) bool {
	return s != nil && (s.Redirect.holds(ip) || s.Dispatch.holds(ip))
}

// isStub reports whether the managed code at ip is no method.
func (s *Specials) isStub(ip uint64) bool { return s != nil && s.IsMethod != nil && !s.IsMethod(ip) }

// misread reports whether the walk left a special as if it had been called.
// What is below a dispatcher was interrupted, and true unwind data of it says
// so; a stub that waits for the CLR to tell it the return address has none yet.
// end is the frame below the last.
func (s *Specials) misread(frames []unwind.Frame, end *unwind.State) bool {
	if s == nil {
		return false
	}
	exact := end.Exact
	for i := len(frames) - 1; i >= 0; i-- {
		if !exact && s.entered(frames[i].Lookup()) {
			return true
		}
		exact = frames[i].Exact
	}
	return false
}

// loading reports whether a thread stands in the system's loader: at ip, or below in
// one of the frames of its walk. What is called from the last may be managed code.
func (s *Specials) loading(ip uint64, frames []unwind.Frame) bool {
	if s == nil || s.Loader.n == 0 {
		return false
	}
	for i := range frames {
		if s.Loader.holds(frames[i].Lookup()) {
			return true
		}
	}
	return s.Loader.holds(ip)
}

// walkable is refuse's answer where a walk may begin.
const walkable = Verdict(VerdictCount)

// refuse decides, before the first step, on what cannot be walked.
func (s *Specials) refuse(r *context.Registers, b *unwind.Bounds) Verdict {
	switch {
	case foreign(r.SP(), b):
		return ForeignStack
	case s.entered(r.IP()):
		return StubOnTop
	}
	return walkable
}

// refused is the outcome without a walk.
func refused(v Verdict) Outcome {
	o := Outcome{Verdict: v, Stop: unwind.NoInfo}
	if v == ForeignStack {
		o.Stop = unwind.OutOfStack
	}
	return o
}

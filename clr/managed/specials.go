package managed

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// MaxPlaces is the capacity of Places.
const MaxPlaces = 16

// Places is a small set of address ranges. The zero value is empty.
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

// Specials holds the code of a process that a walk must recognize by address. Nil means
// no such code. Specials must not change while a walk uses them.
type Specials struct {
	// Redirect holds the parts of the CLR's redirect and hijack stubs that run before
	// the stub stores a return address in its frame. After that, the unwind data of
	// the stub is correct. Entered finds these parts.
	Redirect Places
	// Dispatch holds the functions at which the kernel enters user mode:
	// KiUserExceptionDispatcher, KiUserApcDispatcher, KiUserCallbackDispatcher.
	Dispatch Places
	// Loader holds the system functions that change the tables of images and functions.
	// They hold locks that the CLR's own walk may need.
	Loader Places
	// IsMethod distinguishes methods from other code of the CLR: IL stubs and precode.
	// It is called while the thread is suspended: for a managed topmost ip, and for
	// return addresses below a seed. If it is nil, all managed code counts as methods.
	// The CLR's own check of a seed accepts IL stubs in the same way.
	IsMethod func(ip uint64) bool
}

// Entered reports whether ip is in code that was entered without a call. A walk that
// begins there would read garbage.
func (s *Specials) Entered(ip uint64) bool {
	return s != nil && (s.Redirect.holds(ip) || s.Dispatch.holds(ip))
}

// InStub reports whether ip is in one of the CLR's redirect or hijack stubs, at any instruction.
func (s *Specials) InStub(ip uint64) bool {
	if s != nil {
		for i := range s.Redirect.ranges[:s.Redirect.n] {
			if ip-s.Redirect.ranges[i].Start < maxStub {
				return true
			}
		}
	}
	return false
}

// IsStub reports whether the managed code at ip is a stub, not a method.
func (s *Specials) IsStub(ip uint64) bool { return s != nil && s.IsMethod != nil && !s.IsMethod(ip) }

// Misread returns the index of the first frame that the walk treated as a called function
// although it is a special, or -1. isStub tells a stub from a dispatcher. Correct unwind
// data marks the frame below a dispatcher as interrupted. A stub has no return address
// until the CLR provides one. end is the frame below the last frame.
func (s *Specials) Misread(frames []unwind.Frame, end unwind.Address) (i int, isStub bool) {
	if s == nil || s.Redirect.n+s.Dispatch.n == 0 {
		return -1, false
	}
	for i := range frames {
		exact := end.Exact
		if i+1 < len(frames) {
			exact = frames[i+1].Exact
		}
		if ip := frames[i].Lookup(); !exact && s.Entered(ip) {
			return i, s.Redirect.holds(ip)
		}
	}
	return -1, false
}

// Loading reports whether a thread is in the system's loader, at ip or in one of the frames
// below it. The last frame may have called managed code.
func (s *Specials) Loading(ip uint64, frames []unwind.Frame) bool {
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

package outside

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// special is code of Windows that is entered without a call: the runtime's stubs
// before they have stored a return address, which a walk would misread, and where the
// kernel enters user mode. What is below a *dispatcher* was interrupted. Its unwind
// data says so on Windows, by a machine frame; in Wine the interrupted ip stands in
// the place of a return address. The zero special, and nil, hold no code.
type special struct {
	entrances          managed.Entrances
	stubs, dispatchers []memory.Range // few
}

// find looks for such code in a table's images.
func (s *special) find(t *module.Table) {
	s.stubs, s.dispatchers = s.entrances.Of(t)
}

// entered reports whether a thread that was interrupted at ip is in such code.
func (s *special) entered(ip uint64) bool {
	return s != nil && (holds(s.stubs, ip) || holds(s.dispatchers, ip))
}

func holds(ranges []memory.Range, ip uint64) bool {
	for i := range ranges {
		if ranges[i].Holds(ip) {
			return true
		}
	}
	return false
}

// misread is the index of the first frame that a walk left as if it had been called
// and is not, -1 if there is none; stub tells which. below is where the frame below
// the last stands.
func (s *special) misread(frames []unwind.Frame, below unwind.Address) (i int, stub bool) {
	if s == nil || len(s.stubs)+len(s.dispatchers) == 0 {
		return -1, false
	}
	for i := range frames {
		caller := below
		if i+1 < len(frames) {
			caller = frames[i+1].Address()
		}
		if caller.Exact {
			continue
		}
		switch ip := frames[i].Lookup(); {
		case holds(s.stubs, ip):
			return i, true
		case holds(s.dispatchers, ip):
			return i, false
		}
	}
	return -1, false
}

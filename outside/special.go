package outside

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// special is code of Windows that is entered without a call: the runtime's stubs
// before they have stored a return address, and where the kernel enters user mode.
// What a walk reads as their return address is none. The zero special, and nil,
// hold no code.
type special struct {
	entrances managed.Entrances
	ranges    []memory.Range // few
}

// find looks for such code in a table's images.
func (s *special) find(t *module.Table) {
	stubs, dispatchers := s.entrances.Of(t)
	s.ranges = append(stubs, dispatchers...)
}

// entered reports whether ip is in such code.
func (s *special) entered(ip uint64) bool {
	if s == nil {
		return false
	}
	for i := range s.ranges {
		if s.ranges[i].Holds(ip) {
			return true
		}
	}
	return false
}

// misread is the index of the first frame that a walk left as if it had been called
// and is not, -1 if there is none. What is below a dispatcher was interrupted, and
// true unwind data of it says so: exact tells it of the frame below the last.
func (s *special) misread(frames []unwind.Frame, exact bool) int {
	if s == nil || len(s.ranges) == 0 {
		return -1
	}
	for i := range frames {
		below := exact
		if i+1 < len(frames) {
			below = frames[i+1].Exact
		}
		if !below && s.entered(frames[i].Lookup()) {
			return i
		}
	}
	return -1
}

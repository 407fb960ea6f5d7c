package startup

import (
	"sync/atomic"
)

// Starting samples a command from its start until an engine samples it. The zero value samples
// nothing until Begin.
type Starting struct {
	s atomic.Pointer[Sampler]
}

// Begin samples the process pid, if the kernel permits it (Linux).
func (s *Starting) Begin(pid int) {
	if n := newStartup(pid); n != nil {
		s.s.Store(n)
	}
}

// End drops what no engine has taken.
func (s *Starting) End() {
	if n := s.s.Swap(nil); n != nil {
		n.End()
	}
}

// Take returns what samples the process pid, nil if nothing does. The caller ends it.
func (s *Starting) Take(pid int) *Sampler {
	if s == nil {
		return nil
	}
	n := s.s.Load()
	if n == nil || n.pid != pid || !s.s.CompareAndSwap(n, nil) {
		return nil
	}
	return n
}

package startup

import (
	"sync/atomic"
)

// Starting samples a command from its start until an engine takes over. The zero value does nothing until
// Begin.
type Starting struct {
	pid  atomic.Int64 // of the command
	s    atomic.Pointer[Sampler]
	last atomic.Pointer[ended]
}

// ended is a process that has ended, with its processor time.
type ended struct{ pid, nanos int64 }

// Ran returns the processor time of process pid, in nanoseconds, if Wait has seen it end.
func (s *Starting) Ran(pid int) (nanos int64, ok bool) {
	if s == nil {
		return 0, false
	}
	e := s.last.Load()
	if e == nil || e.pid != int64(pid) {
		return 0, false
	}
	return e.nanos, true
}

// Began reports whether pid is the command. It returns true once: later, the process runs another program.
func (s *Starting) Began(pid int) bool { return s != nil && s.pid.CompareAndSwap(int64(pid), 0) }

// Begin samples the process pid, if the kernel permits it (Linux).
func (s *Starting) Begin(pid int) {
	s.pid.Store(int64(pid))
	if n := newStartup(pid); n != nil {
		s.s.Store(n)
	}
}

// End drops the samples if no engine has taken them.
func (s *Starting) End() {
	if n := s.s.Swap(nil); n != nil {
		n.End()
	}
}

// Take returns the sampler of process pid, nil if there is none. The caller must end it.
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

package startup

import (
	"sync"
	"sync/atomic"
)

// Starting samples a command from its start until an engine takes over. The zero value does nothing until
// Begin.
type Starting struct {
	s    atomic.Pointer[Sampler]
	last atomic.Pointer[ended]

	mu    sync.Mutex
	begun map[int]bool // the processes that have an engine, or had one; nil before Begin
}

// maxBegun bounds the processes of one command whose start is accounted for.
const maxBegun = 1 << 20

// ended is a process that has ended, with its CPU time.
type ended struct{ pid, nanos int64 }

// Ran returns the CPU time of process pid, in nanoseconds, if Wait has seen it end.
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

// Began reports whether the recording has process pid from its start: it is the command, or a process that
// the command has started. It returns true once: later, the process runs another program.
func (s *Starting) Began(pid int) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil || s.begun[pid] || len(s.begun) >= maxBegun {
		return false
	}
	s.begun[pid] = true
	return true
}

// Begin samples the process pid, if the kernel permits it (Linux).
func (s *Starting) Begin(pid int) {
	s.mu.Lock()
	s.begun = map[int]bool{}
	s.mu.Unlock()
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

// Take returns the sampler of process pid, or nil. The caller must end it.
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

package contract

import (
	"os"

	"golang.org/x/sys/unix"
)

// Self reads this process's own memory through the kernel, so that an address
// that is not mapped is an error and never a fault.
type Self struct {
	local  [1]unix.Iovec
	remote [1]unix.RemoteIovec
	pid    int
	mem    *os.File // where the system call is forbidden (seccomp)
}

// NewSelf chooses process_vm_readv(2), or /proc/self/mem where that is not
// permitted.
func NewSelf() (*Self, error) {
	s := &Self{pid: os.Getpid()}
	_, err := unix.ProcessVMReadv(s.pid, nil, nil, 0)
	if err == nil {
		return s, nil
	}
	s.mem, err = os.Open("/proc/self/mem")
	return s, err
}

// ReadAt implements memory.Reader. It is not safe for concurrent use.
func (s *Self) ReadAt(p []byte, addr uint64) bool {
	if len(p) == 0 {
		return true
	}
	if s.mem != nil {
		n, err := s.mem.ReadAt(p, int64(addr))
		return err == nil && n == len(p) && int64(addr) >= 0
	}
	s.local[0].Base = &p[0]
	s.local[0].SetLen(len(p))
	s.remote[0].Base, s.remote[0].Len = uintptr(addr), len(p)
	n, err := unix.ProcessVMReadv(s.pid, s.local[:], s.remote[:], 0)
	s.local[0].Base = nil
	return err == nil && n == len(p)
}

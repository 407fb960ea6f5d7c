package sampler

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/unwind"
)

// syscalls recognizes addresses at which a thread enters or leaves the kernel. It reads the code at each
// address once.
type syscalls struct {
	mem  live.Memory
	call []byte // the instruction
	At   map[uint64]bool
}

// maxSyscalls bounds the remembered addresses.
const maxSyscalls = 1 << 12

func NewSyscalls(a context.Arch, mem live.Memory) syscalls {
	call := []byte{0x0f, 0x05} // syscall
	if a == context.ArchARM64 {
		call = []byte{0x01, 0x00, 0x00, 0xd4} // svc #0
	}
	return syscalls{mem: mem, call: call, At: map[uint64]bool{}}
}

// forget clears the results: other code may be mapped.
func (s *syscalls) forget() { clear(s.At) }

// Enters reports whether a system call instruction is directly before ip, or at ip: after a signal the kernel
// moves ip back to restart a call.
func (s *syscalls) Enters(ip uint64) bool {
	known, ok := s.At[ip]
	if ok {
		return known
	}
	if len(s.At) >= maxSyscalls {
		clear(s.At)
	}
	var code [8]byte
	n := len(s.call)
	got := s.mem.ReadSome(code[:2*n], ip-uint64(n))
	enters := got >= n && bytes.Equal(code[:n], s.call) || got == 2*n && bytes.Equal(code[n:2*n], s.call)
	s.At[ip] = enters
	return enters
}

// markKernel flags the leaf of a thread that is in the kernel.
func (e *Base) markKernel(in walk.KernelState, frames []wire.Frame) {
	if in == walk.UserOnly || len(frames) == 0 || frames[0].Kind != unwind.KindNative || !frames[0].Exact() {
		return
	}
	if in == walk.InKernel || e.Syscalls.Enters(frames[0].IP) {
		frames[0].Flags |= wire.FrameKernel
	}
}

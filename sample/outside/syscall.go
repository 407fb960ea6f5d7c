package outside

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/unwind"
)

// kernelState is what is known of where an interrupted thread was.
type kernelState uint8

const (
	userOnly  kernelState = iota // in user code: the clock cannot hit the kernel
	maybeIn                      // in the kernel if the leaf is at a system call
	certainly                    // blocked in the kernel
)

// syscalls recognizes addresses at which a thread enters or leaves the kernel. It reads the
// code at an address once.
type syscalls struct {
	mem  live.Memory
	call []byte // the instruction
	at   map[uint64]bool
}

// maxSyscalls bounds the addresses that are remembered.
const maxSyscalls = 1 << 12

func newSyscalls(a context.Arch, mem live.Memory) syscalls {
	call := []byte{0x0f, 0x05} // syscall
	if a == context.ArchARM64 {
		call = []byte{0x01, 0x00, 0x00, 0xd4} // svc #0
	}
	return syscalls{mem: mem, call: call, at: map[uint64]bool{}}
}

// forget drops what is remembered: other code may be mapped.
func (s *syscalls) forget() { clear(s.at) }

// enters reports whether a system call is directly before ip, or at ip: the kernel sets the
// ip of a call back that it restarts after a signal.
func (s *syscalls) enters(ip uint64) bool {
	known, ok := s.at[ip]
	if ok {
		return known
	}
	if len(s.at) >= maxSyscalls {
		clear(s.at)
	}
	var code [8]byte
	n := len(s.call)
	got := s.mem.ReadSome(code[:2*n], ip-uint64(n))
	enters := got >= n && bytes.Equal(code[:n], s.call) || got == 2*n && bytes.Equal(code[n:2*n], s.call)
	s.at[ip] = enters
	return enters
}

// markKernel flags the leaf of a thread that is in the kernel.
func (e *sampler) markKernel(in kernelState, frames []frame) {
	if in == userOnly || len(frames) == 0 || frames[0].Kind != unwind.KindNative || !frames[0].Exact() {
		return
	}
	if in == certainly || e.syscalls.enters(frames[0].IP) {
		frames[0].Flags |= wire.FrameKernel
	}
}

package paused

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
)

// words is memory of one word, at 0x4000.
type words [4]byte

func (w words) ReadAt(p []byte, addr uint64) bool { return w.ReadSome(p, addr) == len(p) }

func (w words) ReadSome(p []byte, addr uint64) int {
	if addr != 0x4000 {
		return 0
	}
	return copy(p, w[:])
}

// What a thread waits for follows from the number of its system call. On ARM64, where the kernel does not
// report the number, it is known by the instruction. A call of a socket with a time limit ends with EINTR.
func TestReadCall(t *testing.T) {
	const again, eintr = ^uint64(511), ^uint64(3) // results: -ERESTARTSYS, -EINTR
	svc, nop := words{1, 0, 0, 0xd4}, words{0x1f, 0x20, 3, 0xd5}
	amd := func(result uint64, args ...uint64) context.Registers {
		g := context.AMD64{}
		args = append(args, make([]uint64, 5-len(args))...)
		g.GPR[context.RAX] = result
		g.GPR[context.RDI], g.GPR[context.RSI], g.GPR[context.RDX], g.GPR[context.R10], g.GPR[context.R8] = args[0], args[1], args[2], args[3], args[4]
		return context.FromAMD64(g)
	}
	arm := func(pc, number, x0 uint64, args ...uint64) context.Registers {
		g := context.ARM64{PC: pc}
		copy(g.X[1:], args)
		g.X[0], g.X[8] = x0, number
		return context.FromARM64(g)
	}
	for _, c := range []struct {
		name    string
		regs    context.Registers
		mem     words
		call    int64
		block   Block
		limited bool
	}{
		{"no call", amd(5), nop, -1, NotBlocked, false},
		{"read", amd(again, 3, 4, 5, 6), nop, 0, ForInput, false},
		{"recvmsg", amd(again, 3), nop, 47, ForInput, false},
		{"recvmsg with a time limit", amd(eintr, 3), nop, 47, ForInput, true},
		{"recvfrom", amd(again, 3), nop, 45, ForInput, false},
		{"accept4", amd(again, 3), nop, 288, ForInput, false},
		{"msgrcv", amd(again, 3), nop, 70, ForInput, false},
		{"splice", amd(again, 3), nop, 275, ForInput, false},
		{"poll", amd(again, 3, 1, 0xffffffff), nop, 7, ForInput, false},
		{"poll for a second", amd(again, 3, 1, 1000), nop, 7, ForInput, true},
		{"epoll_wait", amd(eintr, 3, 1, 9, 0xffffffff), nop, 232, ForInput, false},
		{"epoll_wait for a second", amd(eintr, 3, 1, 9, 1000), nop, 232, ForInput, true},
		{"select", amd(again, 3), nop, 23, ForInput, false},
		{"select for a second", amd(again, 3, 0, 0, 0, 0x7000), nop, 23, ForInput, true},
		{"futex_waitv", amd(again, 3), nop, 449, ForEvent, false},
		{"pause", amd(again), nop, 34, ForEvent, false},
		{"rt_sigtimedwait", amd(eintr, 3), nop, 128, ForEvent, false},
		{"rt_sigtimedwait for a second", amd(eintr, 3, 0, 0x7000), nop, 128, ForEvent, true},
		{"semop", amd(eintr, 3), nop, 65, ForEvent, false},
		{"clock_nanosleep", amd(again), nop, 230, ForTime, false},
		{"waitid", amd(again), nop, 247, ForChild, false},
		{"sched_yield", amd(0), nop, 24, NotBlocked, false},
		{"ARM64, no call", arm(0x4000, 98, 3), nop, -1, NotBlocked, false},
		{"ARM64, code that cannot be read", arm(0x5000, 98, 3), svc, -1, NotBlocked, false},
		{"ARM64, futex", arm(0x4000, 98, 3), svc, -1, ForEvent, false},
		{"ARM64, futex for a second", arm(0x4000, 98, 3, 0, 0, 0x7000), svc, -1, ForEvent, true},
		{"ARM64, read", arm(0x4000, 63, 3), svc, -1, ForInput, false},
		{"ARM64, recvmsg with a time limit", arm(0x4004, 212, eintr), svc, -1, ForInput, true},
		{"ARM64, epoll_pwait", arm(0x4004, 22, eintr, 1, 9, 0xffffffff), svc, -1, ForInput, false},
		{"ARM64, pause of x86-64", arm(0x4000, 34, 3), svc, -1, ForInput, false},
		{"ARM64, restarted nanosleep", arm(0x4000, 128, 3), svc, -1, ForTime, false},
		{"ARM64, wait4", arm(0x4000, 260, 3), svc, -1, ForChild, false},
		{"neither", context.Registers{}, svc, 98, NotBlocked, false},
	} {
		s := &Process{target: &target.Process{Mem: c.mem}}
		th := Thread{Regs: c.regs}
		if s.ReadCall(&th, live.Stood{Call: c.call}); th.block != c.block || th.limited != c.limited {
			t.Errorf("%s: block %d, limited %v", c.name, th.block, th.limited)
		}
	}
}

package paused

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
)

// Block is what a thread waits for in a system call.
type Block uint8

const (
	NotBlocked Block = iota // in no system call, or in one that does not wait
	ForInput                // files, sockets, polls, messages, devices
	ForEvent                // futexes, semaphores, signals
	ForTime
	ForChild
)

// systemCall is a system call in which a stopped thread waits.
type systemCall struct {
	number  int64     // negative if the thread is in no call, or the call is unknown
	args    [5]uint64 // the first ones
	failed  bool      // the stop has ended it with EINTR
	machine context.Arch
}

// Numbers of system calls on x86-64 and ARM64. The kernel repeats a wait with a time limit as
// restart_syscall, which hides the number of the call but keeps its arguments.
const (
	futexAMD64   = 202
	futexARM64   = 98
	restartAMD64 = 219
	restartARM64 = 128
)

// calls lists the system calls that do not wait for input or output, and those with a time limit. limit is
// the number, from 1, of the argument that points to the time limit. If limit is negative, the argument is
// the time in milliseconds itself, and a negative time means no limit. If limit is 0, the call has no such
// argument.
//
// Sources: Linux, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
var calls = []struct {
	amd64, arm64 int64
	block        Block
	limit        int
}{
	{futexAMD64, futexARM64, ForEvent, 4},
	{449, 449, ForEvent, 4},          // futex_waitv
	{455, 455, ForEvent, 5},          // futex_wait
	{34, -1, ForEvent, 0},            // pause
	{130, 133, ForEvent, 0},          // rt_sigsuspend
	{128, 137, ForEvent, 3},          // rt_sigtimedwait
	{65, 193, ForEvent, 0},           // semop
	{220, 192, ForEvent, 4},          // semtimedop
	{35, 101, ForTime, 0},            // nanosleep
	{230, 115, ForTime, 0},           // clock_nanosleep
	{-1, restartARM64, ForTime, 0},   // there, the kernel restarts only futex and the two above
	{61, 260, ForChild, 0},           // wait4
	{247, 95, ForChild, 0},           // waitid
	{24, 124, NotBlocked, 0},         // sched_yield
	{62, 129, NotBlocked, 0},         // kill
	{200, 130, NotBlocked, 0},        // tkill
	{234, 131, NotBlocked, 0},        // tgkill
	{7, -1, ForInput, -3},            // poll
	{restartAMD64, -1, ForInput, -3}, // poll; the names on the stack show nanosleep
	{271, 73, ForInput, 3},           // ppoll
	{23, -1, ForInput, 5},            // select
	{270, 72, ForInput, 5},           // pselect6
	{232, -1, ForInput, -4},          // epoll_wait
	{281, 22, ForInput, -4},          // epoll_pwait
	{441, 441, ForInput, 4},          // epoll_pwait2
	{243, 183, ForInput, 5},          // mq_timedreceive
	{242, 182, ForInput, 5},          // mq_timedsend
	{299, 243, ForInput, 5},          // recvmmsg
	{208, 4, ForInput, 5},            // io_getevents
	{333, 292, ForInput, 5},          // io_pgetevents
	{426, 426, ForInput, 0},          // io_uring_enter
}

// waits returns what the call waits for, and whether its wait has a time limit. The time limit
// of a socket (SO_RCVTIMEO, SO_SNDTIMEO) is not an argument. The kernel ends such a call with EINTR at a
// stop. Without a limit, it repeats the call (sock_intr_errno in include/net/sock.h).
func (c *systemCall) waits() (block Block, limited bool) {
	for i := range calls {
		k := &calls[i]
		switch {
		case !c.is(k.amd64, k.arm64):
		case k.limit < 0:
			return k.block, int32(c.args[-k.limit-1]) >= 0
		default:
			return k.block, k.limit > 0 && c.args[k.limit-1] != 0
		}
	}
	if c.number < 0 {
		return NotBlocked, false
	}
	return ForInput, c.failed
}

// is reports whether the call has one of these numbers, by the machine. A negative one matches no call.
func (c *systemCall) is(amd64, arm64 int64) bool {
	if c.machine == context.ArchARM64 {
		amd64 = arm64
	}
	return c.number >= 0 && c.number == amd64
}

// The result EINTR, and the instruction svc #0.
const (
	interrupted = -4
	svc         = 0xd4000001
)

// callOf returns the system call in which a stopped thread waits. number is what the kernel reports. On ARM64
// it reports nothing. There, the thread points at the instruction that repeats the call with its arguments,
// or behind it if the result is EINTR (arch/arm64/kernel/signal.c, do_signal).
func (s *Process) callOf(r *context.Registers, number int64) systemCall {
	if r.Arch == context.ArchAMD64 {
		g := &r.AMD64.GPR
		return systemCall{number,
			[5]uint64{g[context.RDI], g[context.RSI], g[context.RDX], g[context.R10], g[context.R8]},
			int64(g[context.RAX]) == interrupted, r.Arch}
	}
	if r.Arch != context.ArchARM64 {
		return systemCall{number: -1}
	}
	var b [4]byte
	x, ip := &r.ARM64.X, r.IP()
	c := systemCall{-1, [5]uint64(x[:5]), int64(x[0]) == interrupted, r.Arch}
	if c.failed {
		ip -= uint64(len(b))
	}
	if s.target.Mem.ReadSome(b[:], ip) == len(b) && binary.LittleEndian.Uint32(b[:]) == svc {
		c.number = int64(x[8])
	}
	return c
}

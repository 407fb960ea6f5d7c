// The sandbox of the helper is a filter of system calls (seccomp(2), Linux 3.17). It allows those that the
// helper needs.

package engine

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call allows one system call. If want is nil, it is always allowed. Otherwise it is allowed if argument arg,
// masked with mask, is one of the values in want.
type call struct {
	nr, arg, mask uint32
	want          []uint32
}

const (
	writing = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	// The second byte of an ioctl's number is its family.
	family       = 0xff00
	familyPerf   = '$' << 8
	familyProcfs = 'f' << 8 // PROCMAP_QUERY
)

// calls returns the system calls that the helper of process pid needs. With writes, it may change files.
func calls(pid int, writes bool) []call {
	own, opened := uint32(os.Getpid()), []uint32{0}
	if writes {
		opened = nil
	}
	all := []call{
		{unix.SYS_PROCESS_VM_READV, 0, ^uint32(0), []uint32{uint32(pid)}},
		{unix.SYS_RT_TGSIGQUEUEINFO, 0, ^uint32(0), []uint32{uint32(pid)}},
		{unix.SYS_TGKILL, 0, ^uint32(0), []uint32{own}}, // Go interrupts its own threads
		{unix.SYS_OPENAT, 2, writing, opened},
		{unix.SYS_IOCTL, 1, family, []uint32{familyPerf, familyProcfs}},
		{unix.SYS_MMAP, 2, unix.PROT_EXEC, []uint32{0}},
		{unix.SYS_MPROTECT, 2, unix.PROT_EXEC, []uint32{0}},
		{unix.SYS_CLONE, 0, unix.CLONE_THREAD, []uint32{unix.CLONE_THREAD}},
		{unix.SYS_PRLIMIT64, 0, ^uint32(0), []uint32{0}},
		{unix.SYS_PRCTL, 0, ^uint32(0), []uint32{unix.PR_SET_TIMERSLACK, unix.PR_SET_VMA}},
	}
	for _, nr := range []uint32{
		// time and threads
		unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_FUTEX, unix.SYS_CLOCK_GETTIME,
		unix.SYS_CLOCK_GETRES, unix.SYS_SCHED_YIELD, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_SETPRIORITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_RESTART_SYSCALL,
		// files
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_CLOSE, unix.SYS_FSTAT,
		unix.SYS_NEWFSTATAT, unix.SYS_LSEEK, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FCNTL,
		unix.SYS_PPOLL, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
		unix.SYS_EVENTFD2, unix.SYS_SHUTDOWN, unix.SYS_PERF_EVENT_OPEN,
		// memory and limits
		unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_GETRLIMIT,
		unix.SYS_GETRANDOM, unix.SYS_GETUID,
	} {
		all = append(all, call{nr: nr})
	}
	return all
}

// Offsets in the kernel's struct seccomp_data. An argument's lower half comes first.
const (
	dataNumber    = 0
	dataArch      = 4
	dataArguments = 16
)

// program returns the filter as instructions of classic BPF. A call that is not listed fails with EPERM.
// clone3 fails with ENOSYS, because its flags are in memory, which a filter cannot read. The C library then
// calls clone.
func program(all []call) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, yes, no int) unix.SockFilter { // how many instructions to skip in either case
		const code = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		return unix.SockFilter{Code: code, K: k, Jt: uint8(yes), Jf: uint8(no)}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	allow, refuse := answer(unix.SECCOMP_RET_ALLOW), answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))
	p := []unix.SockFilter{load(dataArch), equal(arch(), 1, 0), refuse, load(dataNumber),
		equal(unix.SYS_CLONE3, 0, 1), answer(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))}
	for _, c := range all {
		if c.want == nil {
			p = append(p, equal(c.nr, 0, 1), allow)
			continue
		}
		p = append(p, equal(c.nr, 0, 4+len(c.want)), load(dataArguments+8*c.arg),
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
		for i, want := range c.want {
			p = append(p, equal(want, len(c.want)-i, 0))
		}
		p = append(p, refuse, allow)
	}
	return append(p, refuse)
}

func arch() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// sandbox permanently restricts all threads of this process. The helper needs that because it reads the
// memory of a program that may be hostile. Afterwards the process cannot execute programs, start processes,
// make connections, trace, or map code. It can change files only with writes. It can read every file that its
// user can read, but the memory of process pid only, and it can send only to the client. It can send signals
// to process pid, and with a perf event to every process of its user.
func sandbox(pid int, writes bool) error {
	p := program(calls(pid, writes))
	f := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	runtime.LockOSThread() // the first call is about this thread; the second extends it to all
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	other, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if other != 0 {
		return fmt.Errorf("seccomp: thread %d has a filter of its own", other)
	}
	return nil
}

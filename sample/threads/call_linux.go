package threads

import (
	"runtime"
	"slices"
)

// endedBySignals are the numbers of the system calls that a signal handler ends with EINTR although it was
// installed with SA_RESTART, on x86-64 and ARM64; -1 if the machine has no such call. A futex wait with a
// time limit is not in the list: the functions of C libraries that wait so repeat it, except sem_timedwait.
// Nor is epoll_wait, which a stop and SIGCONT also end, so programs repeat it.
//
// Sources: signal(7), "Interruption of system calls and library functions by signal handlers"; Linux,
// arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
var endedBySignals = [][2]int64{
	{35, 101},  // nanosleep
	{230, 115}, // clock_nanosleep
	{219, 128}, // restart_syscall: one of these, continued after a stop
	{34, -1},   // pause
	{130, 133}, // rt_sigsuspend
	{128, 137}, // rt_sigtimedwait
	{7, -1},    // poll
	{271, 73},  // ppoll
	{23, -1},   // select
	{270, 72},  // pselect6
	{69, 189},  // msgsnd
	{70, 188},  // msgrcv
	{65, 193},  // semop
	{220, 192}, // semtimedop
	{208, 4},   // io_getevents
	{333, 292}, // io_pgetevents
	{426, 426}, // io_uring_enter
}

// EndsBySignal reports whether a signal would end the system call with a number with EINTR. It is false for a
// negative number: the thread is in no call.
func EndsBySignal(call int64) bool { return endsBySignal(call, runtime.GOARCH) }

func endsBySignal(call int64, arch string) bool {
	return call >= 0 && slices.ContainsFunc(endedBySignals, func(n [2]int64) bool {
		return n[0] == call && arch == "amd64" || n[1] == call && arch == "arm64"
	})
}

// Sleeps reports whether a signal would end the system call that a thread is in now with EINTR.
func (f *Files) Sleeps(tid uint32) bool {
	b, err := f.Read(tid, "syscall")
	return err == nil && EndsBySignal(parseCall(b))
}

// parseCall returns the number of the system call in the file syscall of a thread, -1 if it is in none.
func parseCall(b []byte) (number int64) {
	const most = 1 << 16
	for i, c := range b {
		if i > 0 && c == ' ' {
			return number
		}
		if c < '0' || c > '9' || number > most {
			break
		}
		number = 10*number + int64(c-'0')
	}
	return -1
}

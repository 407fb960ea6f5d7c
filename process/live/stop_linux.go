package live

import (
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
)

// Time limits of a stop. For a thread in uninterruptible sleep, asleepLimit applies.
const (
	stopLimit   = 5 * time.Second
	asleepLimit = 100 * time.Millisecond
)

// StopEach stops one thread of a process after another, calls look to read it, and resumes it. A thread that
// was stopped before stays stopped. After each thread, also one that could not be stopped, StopEach calls
// then. It sets no option of ptrace, so the kernel resumes all threads if the tool dies.
//
// If the caller started the process and waits for it in another goroutine, that wait may receive the stop
// instead: wait only afterwards.
func StopEach(tids []int, look func(tid int, r *context.Registers, s Stood), then func(Stop)) {
	for len(tids) > 0 {
		onOwnThread(func() {
			for asleep := false; len(tids) > 0 && !asleep; tids = tids[1:] {
				s := stopOne(tids[0], look)
				then(s)
				e, failed := s.Err.(*StopError)
				asleep = failed && e.Why == Asleep // the end of this kernel thread detaches it
			}
		})
	}
}

// onOwnThread runs f on a kernel thread that ends afterwards. Its end detaches everything that f still
// traces. The process's first thread never ends, so it is not used.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// Requests of ptrace(2).
const (
	ptraceDetach    = 17
	ptraceGetRegSet = 0x4204
	ptraceSeize     = 0x4206
	ptraceInterrupt = 0x4207
	noteStatus      = 1 // NT_PRSTATUS
	waitAll         = 0x40000000
)

func ptrace(request, tid int, addr, data uintptr) unix.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
	return e
}

func stopOne(tid int, look func(int, *context.Registers, Stood)) Stop {
	s := Stop{TID: tid}
	if e := ptrace(ptraceSeize, tid, 0, 0); e != 0 {
		s.Err = whyNot(tid, e)
		return s
	}
	if e := ptrace(ptraceInterrupt, tid, 0, 0); e != 0 {
		s.Err = &StopError{tid, Gone, 0}
		return s
	}
	signal, err := awaitStop(tid)
	if err != nil {
		s.Err = err
		return s
	}
	since := time.Now()
	r, stood, err := registersOf(tid)
	if err == nil {
		look(tid, &r, stood)
	}
	ptrace(ptraceDetach, tid, 0, signal)
	s.Held, s.Err = time.Since(since), err
	return s
}

// awaitStop waits until the thread has stopped. If it stopped because a signal is being delivered, that
// signal must be passed to it at the end.
func awaitStop(tid int) (signal uintptr, err error) {
	begin := time.Now()
	for i := 0; ; i++ {
		switch c, e := peek(tid); {
		case e != 0 && e != unix.EINTR, c.code == childExited, c.code == childKilled, c.code == childDumped:
			return 0, &StopError{tid, Gone, 0}
		case c.code != 0:
			if c.status>>8 == 0 {
				return uintptr(c.status & 0x7f), nil
			}
			return 0, nil
		}
		if passed := time.Since(begin); passed > stopLimit ||
			passed > asleepLimit && i%16 == 0 && state(tid) == 'D' {
			return 0, &StopError{tid, Asleep, 0}
		}
		if i < 8 {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		time.Sleep(time.Duration(min(i, 40)) * 5 * time.Microsecond)
	}
}

// Codes of a child's state (sigaction(2)): ended; all others mean stopped.
const (
	childExited = 1
	childKilled = 2
	childDumped = 3
)

// child is the kernel's siginfo_t of SIGCHLD; code 0 if there is no change.
type child struct {
	signo, errno, code, _ int32
	pid, uid, status      int32
	_                     [100]byte
}

// peek reads a thread's state change without consuming it: the end of a process belongs to its parent, which
// may be this process.
func peek(tid int) (c child, e unix.Errno) {
	const any = unix.WEXITED | unix.WSTOPPED | unix.WNOHANG | unix.WNOWAIT | waitAll
	_, _, e = unix.RawSyscall6(unix.SYS_WAITID, unix.P_PID, uintptr(tid),
		uintptr(unsafe.Pointer(&c)), any, 0, 0)
	return c, e
}

// registersOf reads the registers of a stopped thread. A thread of 32-bit code has fewer.
func registersOf(tid int) (r context.Registers, s Stood, err error) {
	var b [512]byte
	n, e := regSet(tid, noteStatus, b[:])
	if e != 0 {
		return r, s, &StopError{tid, Gone, 0}
	}
	if r, err = context.Read(userRegs, b[:n]); err != nil {
		return r, s, &StopError{tid, Foreign, 0}
	}
	return r, stoodOf(tid, b[:n]), nil
}

// regSet reads one of the kernel's register sets of a stopped thread.
func regSet(tid int, note uintptr, b []byte) (n int, e unix.Errno) {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	e = ptrace(ptraceGetRegSet, tid, note, uintptr(unsafe.Pointer(&v)))
	return int(v.Len), e
}

func whyNot(tid int, e unix.Errno) error {
	tracer, _ := strconv.Atoi(statusField(tid, "TracerPid"))
	switch s := state(tid); {
	case e == unix.ENOSYS:
		return &StopError{tid, Untraced, 0}
	case e == unix.ESRCH, s == 'Z', s == 'X', s == 0:
		return &StopError{tid, Gone, 0}
	case tracer != 0:
		return &StopError{tid, Traced, tracer}
	}
	return &StopError{tid, Denied, 0}
}

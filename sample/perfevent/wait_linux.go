package perfevent

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wait waits until one of several descriptors is readable.
type Wait struct {
	poll  []unix.PollFd
	file  *os.File // an epoll(7) that has the descriptors from Long to Quiet
	conn  syscall.RawConn
	added bool
	woken bool
	ready func() bool
	event [1]unix.EpollEvent
}

// NewWait returns a Wait for descriptors, which the caller keeps.
func NewWait(fds ...int) (*Wait, error) {
	all, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, &Error{"epoll_create1", ErrLimit, err}
	}
	w := &Wait{}
	for _, fd := range fds {
		w.poll = append(w.poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	err = unix.SetNonblock(all, true)
	w.file = os.NewFile(uintptr(all), "wait")
	var err2 error
	w.conn, err2 = w.file.SyscallConn()
	if err = errors.Join(err, err2, w.file.SetDeadline(time.Time{})); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Quiet keeps the descriptors from waking Go's poller until the next Long.
func (w *Wait) Quiet() {
	if w.added {
		w.conn.Control(func(all uintptr) { w.control(all, unix.EPOLL_CTL_DEL) })
		w.added = false
	}
}

// Short waits for at most d. The call bypasses Go's scheduler: d must be short.
func (w *Wait) Short(d time.Duration) {
	w.Quiet()
	t := syscall.NsecToTimespec(int64(d))
	syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&w.poll[0])), uintptr(len(w.poll)),
		uintptr(unsafe.Pointer(&t)), 0, 0, 0)
}

// Long waits in Go's poller. If a thread waited long in the kernel, Go's monitor would check it every 20 us
// for a while.
//
// A perf event reports readable once, to the first poll. So Go's poller must not poll it during Short, and
// nothing may poll again after the poller. Readiness that another poll has taken is lost, so Long returns at
// once if ready returns true (nil: it is not asked).
func (w *Wait) Long(ready func() bool) {
	if !w.added {
		w.conn.Control(func(all uintptr) { w.control(all, unix.EPOLL_CTL_ADD) })
		w.added = true
	}
	w.woken, w.ready = false, ready
	w.conn.Read(w.wake)
}

// wake is called before the poller waits, and when it wakes up. Read forgets what the poller has seen before.
func (w *Wait) wake(all uintptr) bool {
	if w.woken {
		return true
	}
	w.woken = true
	n, _, _ := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, all,
		uintptr(unsafe.Pointer(&w.event[0])), 1, 0, 0, 0)
	return int(n) > 0 || w.ready != nil && w.ready()
}

func (w *Wait) control(all uintptr, op int) {
	for i := range w.poll {
		syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, all, uintptr(op), uintptr(w.poll[i].Fd),
			uintptr(unsafe.Pointer(&unix.EpollEvent{Events: unix.EPOLLIN})), 0, 0)
	}
}

// Close ends the Wait.
func (w *Wait) Close() { w.file.Close() }

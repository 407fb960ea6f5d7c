package perfevent

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
)

// Attr selects how a clock samples.
type Attr struct {
	Period        uint64 // nanoseconds of CPU time; the kernel raises it to 10,000
	ExcludeKernel bool   // do not ask for hits in the kernel
	ExcludeUser   bool   // ask for hits in the kernel only
	Regs          bool   // samples hold the user registers
	Stack         int    // bytes of the stack that samples hold, at most MaxStack; 0: none
	Inherit       bool   // new threads (not processes) inherit the event; needs a CPU and Linux 5.13
	EnableOnExec  bool   // count from the thread's next exec on
	Wake          bool   // each sample makes the ring readable, not only a ring that is half full
}

// Event is an open event. It is disabled until Enable, unless EnableOnExec. Closing it, or
// the end of the tool, ends it.
type Event struct {
	fd            int
	excludeKernel bool
	layout        Layout
	lost          bool // the kernel counts lost hits
}

// noLost is set once the kernel has refused to count lost hits: it is older than Linux 6.0.
var noLost atomic.Bool

// OpenClock opens a clock of a thread's CPU time, on one CPU or on any if cpu is -1. A
// clock on any CPU cannot share a ring. If the kernel permits no hits in the kernel, the
// clock excludes them, or is refused if it would have no others. An error is an *Error.
func OpenClock(tid, cpu int, a Attr) (*Event, error) {
	e, err := open(tid, cpu, a)
	if errors.Is(err, ErrRefused) && !a.ExcludeKernel && !a.ExcludeUser {
		a.ExcludeKernel = true
		e, err = open(tid, cpu, a)
	}
	return e, err
}

func open(tid, cpu int, a Attr) (*Event, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: a.Period,
		Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME,
		Bits:        unix.PerfBitDisabled}
	layout := Layout{Arch: context.Host(), Regs: a.Regs, Stack: a.Stack > 0}
	if a.Wake {
		attr.Wakeup = 1
	}
	if a.Regs {
		attr.Sample_type |= unix.PERF_SAMPLE_REGS_USER
		attr.Sample_regs_user = regsMask(layout.Arch)
	}
	if a.Stack > 0 {
		attr.Sample_type |= unix.PERF_SAMPLE_STACK_USER
		attr.Sample_stack_user = uint32(min(a.Stack, MaxStack)) &^ 7
	}
	attr.Bits |= bit(a.ExcludeKernel, unix.PerfBitExcludeKernel|unix.PerfBitExcludeHv) |
		bit(a.Inherit, unix.PerfBitInherit|inheritThread) |
		bit(a.EnableOnExec, unix.PerfBitEnableOnExec) | bit(a.ExcludeUser, unix.PerfBitExcludeUser)
	if !noLost.Load() {
		attr.Read_format = unix.PERF_FORMAT_LOST
	}
	fd, err := openAttr(&attr, tid, cpu)
	if errors.Is(err, unix.EINVAL) && attr.Read_format != 0 {
		attr.Read_format = 0
		if fd, err = openAttr(&attr, tid, cpu); err == nil {
			noLost.Store(true)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Event{fd: fd, excludeKernel: a.ExcludeKernel, layout: layout, lost: attr.Read_format != 0}, nil
}

func bit(on bool, b uint64) uint64 {
	if on {
		return b
	}
	return 0
}

func openAttr(attr *unix.PerfEventAttr, tid, cpu int) (fd int, err error) {
	attr.Size = uint32(unsafe.Sizeof(*attr))
	attr.Clockid = unix.CLOCK_MONOTONIC
	attr.Bits |= unix.PerfBitUseClockID
	fd, err = unix.PerfEventOpen(attr, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return fd, failed("perf_event_open", err)
}

// failed maps an error number to an *Error.
func failed(op string, err error) error {
	switch err {
	case nil:
		return nil
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.ENOENT, unix.EOPNOTSUPP:
		return &Error{op, ErrRefused, err}
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOSPC, unix.EAGAIN:
		return &Error{op, ErrLimit, err}
	case unix.ESRCH:
		return &Error{op, ErrGone, err}
	}
	return &Error{op, nil, err}
}

// FD returns the event's descriptor.
func (e *Event) FD() int { return e.fd }

// Layout returns the layout of the event's samples.
func (e *Event) Layout() Layout { return e.layout }

// ExcludesKernel reports whether hits in the kernel are dropped.
func (e *Event) ExcludesKernel() bool { return e.excludeKernel }

// Signal makes the kernel send tid the signal at each overflow, while the thread runs the interrupted code.
// It needs no ring. The signal must be SIGURG: if the signal queue is full, the kernel replaces a real-time
// signal by SIGIO, which would kill the program. SIGURG is still sent then, without a siginfo, and programs
// ignore it by default.
func (e *Event) Signal(tid int, sig unix.Signal) error {
	if sig != unix.SIGURG {
		return &Error{"signal", nil, unix.EINVAL}
	}
	owner := struct{ kind, tid int32 }{ownerTID, int32(tid)}
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(e.fd), unix.F_SETOWN_EX,
		uintptr(unsafe.Pointer(&owner))); errno != 0 {
		return failed("F_SETOWN_EX", errno)
	}
	if _, err := unix.FcntlInt(uintptr(e.fd), unix.F_SETSIG, int(sig)); err != nil {
		return failed("F_SETSIG", err)
	}
	_, err := unix.FcntlInt(uintptr(e.fd), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
	return failed("F_SETFL", err)
}

// ownerTID is F_OWNER_TID of fcntl.h.
const ownerTID = 0

// inheritThread is inherit_thread of struct perf_event_attr.
const inheritThread = 1 << 35

// Count returns the nanoseconds of CPU time that the thread has used while the event
// was enabled, time in the kernel included. It works after the thread's end. The call does not block, so it
// bypasses Go's scheduler, whose monitor thread it would wake up.
func (e *Event) Count() (ns uint64, err error) {
	v, err := e.read()
	return v[0], err
}

// Lost returns the number of hits for which the ring had no room, 0 if the kernel does not count them. It
// works after the thread's end. The records of the ring say so too, but only once there is room again.
func (e *Event) Lost() uint64 {
	v, _ := e.read()
	return v[1]
}

func (e *Event) read() (v [2]uint64, err error) {
	size := unsafe.Sizeof(v)
	if !e.lost {
		size = unsafe.Sizeof(v[0])
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(e.fd), uintptr(unsafe.Pointer(&v)), size)
	switch {
	case errno != 0:
		return v, failed("read", errno)
	case n != size:
		return [2]uint64{}, failed("read", unix.EIO)
	}
	return v, nil
}

// SetPeriod changes the period. The time since the last overflow is dropped: a whole new
// period begins. The call bypasses Go's scheduler, like Count.
func (e *Event) SetPeriod(ns uint64) error {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(e.fd),
		unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&ns)))
	if errno != 0 {
		return failed("PERF_EVENT_IOC_PERIOD", errno)
	}
	return nil
}

// Enable starts the event.
func (e *Event) Enable() error {
	return failed("PERF_EVENT_IOC_ENABLE", unix.IoctlSetInt(e.fd, unix.PERF_EVENT_IOC_ENABLE, 0))
}

// Disable stops the event; its count remains.
func (e *Event) Disable() error {
	return failed("PERF_EVENT_IOC_DISABLE", unix.IoctlSetInt(e.fd, unix.PERF_EVENT_IOC_DISABLE, 0))
}

// Close ends the event. A ring of its own stays mapped until the ring is closed.
func (e *Event) Close() error { return unix.Close(e.fd) }

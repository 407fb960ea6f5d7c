package alarm

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TimerFile is a kernel timer. Go's poller waits for it as for a connection, so the waiting thread itself
// continues with the goroutine. A Go timer would wake two more threads: a thread that looks for work, and the
// runtime's monitor, which then checks every 20 us for a while. A Go timer that is postponed repeatedly wakes
// both at its old times. The calls here never block, so they do not involve the scheduler.
type TimerFile struct {
	file *os.File
	Conn syscall.RawConn
	took func(fd uintptr) bool
}

// New returns a timer of the kernel's, or one of Go's if the kernel provides none.
func New() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newGoTimer()
	}
	t := &TimerFile{file: os.NewFile(uintptr(fd), "alarm"), took: tookExpiry}
	t.Conn, err = t.file.SyscallConn()
	if err != nil || t.file.SetDeadline(time.Time{}) != nil { // the poller does not support it
		t.file.Close()
		return newGoTimer()
	}
	return t
}

func (t *TimerFile) Set(after time.Duration) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(after, 1)))} // 0 would disarm the timer
	t.Conn.Control(func(fd uintptr) { unix.TimerfdSettime(int(fd), 0, &value, nil) })
}

func (t *TimerFile) Wait() bool { return t.Conn.Read(t.took) == nil }

// Take clears an expiry.
func (t *TimerFile) Take() { t.Conn.Control(func(fd uintptr) { tookExpiry(fd) }) }

// tookExpiry clears an expiry and reports whether there was one since the timer was set.
func tookExpiry(fd uintptr) bool {
	var times uint64
	_, _, e := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&times)), 8)
	return e != unix.EAGAIN
}

func (t *TimerFile) Close() { t.file.Close() }

// MaxThreadSleep is the longest useful time for SleepThread and for other waits that block a thread in the
// kernel. During a longer one, Go's monitor would repeatedly check whether the thread still runs.
const MaxThreadSleep = 12 * time.Millisecond

// SleepThread sleeps without Go's scheduler. This saves about ten system calls per sleep, and a monitor
// that wakes up every 20 us. Other goroutines run on another P, and a garbage collection interrupts the
// sleep with its signal.
func SleepThread(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) {
		t := syscall.NsecToTimespec(int64(d))
		_, _, e := syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
		if e != 0 && e != syscall.EINTR {
			time.Sleep(d)
			return
		}
	}
}

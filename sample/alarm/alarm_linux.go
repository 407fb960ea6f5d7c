package alarm

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TimerFile is an alarm of the kernel's. Go's poller waits for it as for a connection: the
// thread that has waited goes on with the goroutine, and that is all. A timer of Go's wakes
// its monitor besides, which then looks around every 20 us for a while, and a second thread
// that looks for more to do; one that is put off again and again wakes them when it was due
// before. None of the calls here tells the scheduler, since none waits.
type TimerFile struct {
	file *os.File
	Conn syscall.RawConn
	took func(fd uintptr) bool
}

// newAlarm makes one, or a bell where the kernel gives no such timer.
func New() Alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newGoTimer()
	}
	t := &TimerFile{file: os.NewFile(uintptr(fd), "alarm"), took: tookExpiry}
	t.Conn, err = t.file.SyscallConn()
	if err != nil || t.file.SetDeadline(time.Time{}) != nil { // the poller has no part in it
		t.file.Close()
		return newGoTimer()
	}
	return t
}

func (t *TimerFile) Set(after time.Duration) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(after, 1)))} // 0 would be never
	t.Conn.Control(func(fd uintptr) { unix.TimerfdSettime(int(fd), 0, &value, nil) })
}

func (t *TimerFile) Wait() bool { return t.Conn.Read(t.took) == nil }

// Take forgets that the timer has expired.
func (t *TimerFile) Take() { t.Conn.Control(func(fd uintptr) { tookExpiry(fd) }) }

// tookExpiry reports whether the timer has expired since it was set, and forgets it.
func tookExpiry(fd uintptr) bool {
	var times uint64
	_, _, e := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&times)), 8)
	return e != unix.EAGAIN
}

func (t *TimerFile) Close() { t.file.Close() }

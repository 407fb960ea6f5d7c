package outside

import (
	"syscall"
	"time"
	"unsafe"
)

// maxThreadSleep is the longest sleep that is the engine's own: a longer one would have Go's
// monitor ask it again and again whether it still runs.
const maxThreadSleep = 12 * time.Millisecond

// sleepThread sleeps without telling Go's scheduler. The scheduler would give the processor's
// tokens away, put its monitor to sleep, and on waking up look for them and wake that:
// some ten calls of the kernel, and a monitor that then looks around every 20 us. What
// else is to run has another token, and a collection interrupts the sleep by its signal.
func sleepThread(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) {
		t := syscall.NsecToTimespec(int64(d))
		_, _, e := syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
		if e != 0 && e != syscall.EINTR {
			time.Sleep(d)
			return
		}
	}
}

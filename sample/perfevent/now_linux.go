package perfevent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Now returns the time by the clock of the records, CLOCK_MONOTONIC, in nanoseconds.
func Now() uint64 {
	var ts unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
	return uint64(ts.Nano())
}

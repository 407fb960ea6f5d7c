package perfevent

import "golang.org/x/sys/unix"

// Now returns the time by the clock of the records, CLOCK_MONOTONIC, in nanoseconds.
func Now() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

package main

import "golang.org/x/sys/unix"

// clock returns the processor time that a process has used, in seconds.
func clock(pid int) float64 {
	const scheduled = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|scheduled, &t) != nil {
		return 0
	}
	return float64(t.Nano()) / 1e9
}

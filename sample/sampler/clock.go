package sampler

import (
	"fmt"
	"slices"
	"strings"
)

// Clock decides when a running thread is sampled.
type Clock string

const (
	ClockAuto   Clock = "auto"   // ClockPerf if the kernel permits it, otherwise ClockRandom
	ClockPerf   Clock = "perf"   // perf events of each thread's CPU time, by high-resolution timers
	ClockRandom Clock = "random" // random moments chosen by the tool
	ClockTimer  Clock = "timer"  // CPU timers, which expire on the kernel's tick
	// ClockOverrun is ClockTimer with each sample weighted by 1 + the timer's overrun. It gives wrong
	// results; a test uses it to check that it detects them.
	ClockOverrun Clock = "timer-overrun"
)

// Clocks are the clocks that a user may choose.
var Clocks = []Clock{ClockAuto, ClockPerf, ClockRandom, ClockTimer}

// Check returns an error that lists Clocks, unless c is one of them, empty, or ClockOverrun.
func (c Clock) Check() error {
	if c == "" || c == ClockOverrun || slices.Contains(Clocks, c) {
		return nil
	}
	names := strings.ReplaceAll(strings.Trim(fmt.Sprint(Clocks), "[]"), " ", ", ")
	return fmt.Errorf("there is no clock %q; choose one of %s", string(c), names)
}

// ByTool reports whether the tool chooses the moments and asks the threads that run then. All other clocks
// run in the threads.
func (c Clock) ByTool() bool { return c == ClockRandom }

// WithoutSIGURG returns the clock to use if the program takes that signal.
func (c Clock) WithoutSIGURG() Clock {
	if c == ClockPerf {
		return ClockRandom
	}
	return c
}

package sampler

// Clock is what decides when a running thread is sampled.
type Clock string

const (
	ClockAuto   Clock = "auto"   // the first of the next three that the kernel permits
	ClockPerf   Clock = "perf"   // perf events of each thread's processor time, by high-resolution timers
	ClockRandom Clock = "random" // random moments of the tool's
	ClockTimer  Clock = "timer"  // CPU timers, which expire on the kernel's tick
	// ClockOverrun is ClockTimer with each sample weighted by 1 + the timer's overrun. It is
	// wrong, and kept for the test that has to notice that.
	ClockOverrun Clock = "timer-overrun"
)

// Clocks are those that a user may choose.
var Clocks = []Clock{ClockAuto, ClockPerf, ClockRandom, ClockTimer}

// Known reports whether there is such a clock.
func (c Clock) Known() bool {
	switch c {
	case "", ClockAuto, ClockPerf, ClockRandom, ClockTimer, ClockOverrun:
		return true
	}
	return false
}

// WithoutSIGURG is the clock where the program takes that signal.
func (c Clock) WithoutSIGURG() Clock {
	if c == ClockPerf {
		return ClockRandom
	}
	return c
}

package outside

import (
	"math"

	"golang.org/x/sys/unix"
)

// chooseClock is the first clock that works, of those that the user permits.
func (e *Engine) chooseClock() Clock {
	e.perf = perfClock{most: mayOpen(2, math.MaxInt32)}
	switch want := e.cfg.Clock; want {
	case ClockTimer, ClockOverrun:
		return want
	case ClockRandom:
		return want
	case ClockPerf:
		if !e.tryEvents() {
			e.s.Out.Note("the kernel permits no perf events of this process: the tool's random clock is used instead")
			return ClockRandom
		}
		return want
	}
	if e.tryEvents() {
		return ClockPerf
	}
	return ClockRandom
}

// tryEvents reports whether the kernel gives events of the process's threads, and their
// signals arrive.
func (e *Engine) tryEvents() bool {
	if e.legacy != int(unix.SIGURG) || e.t.guest != nil {
		return false
	}
	const never = 1 << 62
	event, err := openEvent(uint32(e.pid), never)
	if err != nil {
		return false
	}
	event.Close()
	if !e.cfg.NoCPU {
		e.kernelTime.open(e.pid, e.period)
	}
	return true
}

// writeClock sends which clock is in use.
func (e *Engine) writeClock() {
	if e.cfg.NoCPU {
		return
	}
	switch w := e.s.Out; e.cpuClock {
	case ClockPerf:
		w.Stats("probe_clock_perf", 1)
		if e.kernelTime.rings == nil {
			w.Stats("probe_clock_user_only", 1)
		}
	case ClockRandom:
		w.Stats("probe_clock_random", 1)
		w.Stats("probe_clock_late_ns", e.random.lateness())
		w.Stats("probe_clock_kept", e.random.kept)
		w.Stats("probe_clock_rejected", e.random.rejected)
	case ClockTimer, ClockOverrun:
		w.Stats("probe_clock_timer", 1)
	}
}

// withoutSIGURG is the clock where the program takes that signal.
func (c Clock) withoutSIGURG() Clock {
	if c == ClockPerf {
		return ClockRandom
	}
	return c
}

// came takes note of a new thread. It is sampled at once: it may end soon.
func (e *Engine) came(t *task) {
	e.fresh = true
	if e.threadTable.listing == 1 && e.startup == nil {
		if c, ok := e.kernel.counters(t); ok {
			t.last, t.base = c, c.cpu
		}
	}
	if e.cpuClock == ClockPerf && e.perf.events < eagerEvents {
		e.arm(t)
	}
}

package outside

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// chooseClock returns the clock that the user has chosen, or perf events if there is no choice. It replaces
// perf events by the random clock if the kernel does not permit them.
func (e *Engine) chooseClock() sampler.Clock {
	e.perf = perfClock{most: threads.MayOpen(2, math.MaxInt32)}
	want := e.Config.Clock
	switch {
	case want != sampler.ClockPerf && want != sampler.ClockAuto && want != "":
		return want
	case e.tryEvents():
		return sampler.ClockPerf
	case want == sampler.ClockPerf:
		e.Stream.Out.Note("the kernel permits no perf events of this process, or too few: the random clock is used instead")
	}
	return sampler.ClockRandom
}

// tryEvents reports whether the kernel opens perf events for the process's threads. If so, and if CPU samples
// are wanted, it also opens the rings of kernel time. It returns false for an emulated program, and if the
// program takes SIGURG and the kernel permits no copies of stacks.
func (e *Engine) tryEvents() bool {
	if e.Target.Guest != nil {
		return false
	}
	event, err := openEvent(uint32(e.PID), never)
	if err != nil {
		return false
	}
	event.Close()
	if !e.Config.NoCPU {
		e.kernelTime.Wake = e.Config.Async
		e.kernelTime.Open(e.PID, e.Period)
	}
	if e.legacy == int(unix.SIGURG) || !e.Config.NoCPU && e.copyAll() {
		return true
	}
	e.kernelTime.Close()
	return false
}

// writeClock sends the name of the clock in use, and its statistics.
func (e *Engine) writeClock() {
	if e.Config.NoCPU {
		return
	}
	w, clock := e.Stream.Out, e.cpuClock
	if clock == sampler.ClockOverrun {
		clock = sampler.ClockTimer
	}
	w.Counter("probe_clock_"+string(clock), 1)
	if clock == sampler.ClockPerf && !e.kernelTime.Kernel {
		w.Counter("probe_clock_user_only", 1)
	}
	if e.stretches.On {
		w.Counter("probe_clock_stretches", 1)
	}
	if e.timers {
		w.Counter("probe_clock_timers", 1)
	}
	if clock.ByTool() {
		w.Counter("probe_clock_late_ns", e.random.late.Bound(0.9))
		w.Counter("probe_clock_kept", e.random.kept)
		w.Counter("probe_clock_rejected", e.random.rejected)
	}
}

// came handles a new thread. Perf events and the random clock begin at once, because the thread may end soon.
// A thread of the first listing has run before. That time does not belong to the recording, unless the
// startup rings sampled it.
func (e *Engine) came(t *threads.Task) {
	e.fresh = true
	e.stretches.Created++
	e.often.Created++
	e.births.Begin(t)
	if e.Table.Listing == 1 && e.startup == nil {
		if c, ok := e.Kernel.Counters(t); ok {
			t.Last, t.Base = c, c.Cpu
		}
	}
	if e.cpuClock.ByTool() || e.cpuClock == sampler.ClockPerf && e.perf.events < eagerEvents {
		e.arm(t)
	}
}

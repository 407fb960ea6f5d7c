package outside

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// perfClock samples threads by perf events.
type perfClock struct {
	events int  // open events
	most   int  // limit of open events
	full   bool // the kernel refused another event
}

const (
	never = 1 << 62 // the period of an event that only counts
	// eagerEvents is the number of threads that get an event before they have run. The event of a sleeping
	// thread costs a descriptor.
	eagerEvents = 512
	// youth is the age, in nanoseconds, from which the next poll ends a thread's youth. For a thread that
	// waits often and briefly, a short period costs far more than the samples do: at each switch the kernel
	// sets the processor's timer twice.
	youth = int64(1e9)
)

// openEvent opens the event of a thread, disabled. The event does not count in the kernel: a signal to a
// thread that is about to sleep would interrupt its system call.
func openEvent(tid uint32, period uint64) (*perfevent.Event, error) {
	event, err := perfevent.OpenClock(int(tid), -1, perfevent.Attr{Period: period, ExcludeKernel: true})
	if err != nil {
		return nil, err
	}
	if err = event.Signal(int(tid), unix.SIGURG); err != nil {
		event.Close()
		return nil, err
	}
	return event, nil
}

// armEvent opens a thread's event, once. It returns false if the thread needs another clock.
func (e *Engine) armEvent(t *threads.Task) bool {
	if t.Event != nil {
		return true
	}
	if t.Eventless || e.perf.events >= e.perf.most || !e.slotOf(t) || !e.file.Near(t.Slot) {
		return false
	}
	phase, period, keep := e.beginning(t, e.Nano(time.Now()))
	if e.kernelTime.All {
		phase, period, keep = threads.Full, never, 0
	}
	event, err := openEvent(t.TID, period)
	if err != nil {
		e.withoutEvent(t, err)
		return errors.Is(err, perfevent.ErrGone)
	}
	if !e.file.SetClock(t.Slot, event.FD(), keep, phase == threads.First) {
		event.Close()
		return false
	}
	e.stopStarted(t.TID)
	e.kernelTime.Add(t, e.kernelTime.All)
	if t.Copied = e.kernelTime.All && t.KernelHits; t.Copied != e.kernelTime.All {
		e.file.ClearClock(t.Slot)
		event.Close()
		return false
	}
	event.Enable()
	t.Event, t.Armed, t.Unarmed, t.Phase, t.First, t.Counted = event, true, 0, phase, period, 0
	if c, ok := e.Kernel.Counters(t); ok {
		t.Read(c)
		t.AtEvent = c.Cpu - min(t.Counted, c.Cpu)
	}
	e.perf.events++
	e.Stats.Armed++
	return true
}

// beginning returns how the event of a thread begins. A thread that is new may end soon. At low rates the
// copies sample its first period, so its youth needs no short period. A thread that ran before the recording,
// or is old, begins at a random place of its period.
func (e *Engine) beginning(t *threads.Task, now int64) (phase threads.Phase, period uint64, keep uint32) {
	phase, whole := threads.Young, t.Period(e.Period)
	switch {
	case t.Base > 0 || now-t.Born > youth:
		phase = threads.First
		period, keep = probe.FirstPeriod(whole, rand.Uint64N)
	case e.births.Late() && t.Birth.Covers(math.MaxUint64):
		period, keep = probe.YoungPeriod(whole/16, whole/8, whole, rand.Uint64N)
	default:
		period, keep = probe.YoungPeriod(probe.LeastYoung, probe.MostYoung, whole, rand.Uint64N)
	}
	if keep == 0 {
		phase = threads.Full
	}
	return phase, period, keep
}

// age moves a thread that is older than youth from Young to First. It moves a thread to Full that has used
// its first period without a sample: the overflow was in the kernel.
func (e *Engine) age(t *threads.Task, now int64) {
	if t.Phase == threads.Full || t.Event == nil || t.Phase == threads.Young && now-t.Born <= youth {
		return
	}
	n, err := t.Event.Count()
	if err != nil || t.Phase == threads.First && n-min(t.AtSwitch, n) < t.First {
		return
	}
	phase, period, keep := threads.Full, t.Period(e.Period), uint32(0)
	if t.Phase == threads.Young {
		phase, period, keep = e.beginning(t, now)
	}
	if t.Event.SetPeriod(period) == nil {
		e.setPhase(t, phase, keep, n)
		t.First = period
	}
}

// setPhase stores the phase that a thread begins when its event has counted n.
func (e *Engine) setPhase(t *threads.Task, phase threads.Phase, keep uint32, n uint64) {
	if t.Slot >= 0 {
		e.file.SetClock(t.Slot, t.Event.FD(), keep, phase == threads.First)
	}
	t.Phase, t.AtSwitch, t.Hits = phase, n, 0
}

// withoutEvent records why a thread got no event.
func (e *Engine) withoutEvent(t *threads.Task, err error) {
	switch {
	case errors.Is(err, perfevent.ErrGone):
	case errors.Is(err, perfevent.ErrLimit):
		if !e.perf.full {
			e.Stream.Out.Note("the limit of open files is reached: further threads are sampled by CPU timers, which miss work that is bound to the kernel's tick")
		}
		e.perf.full, e.perf.most = true, e.perf.events
	default:
		t.Eventless = true
	}
}

// overflowed handles a sample of a thread's event. After its first sample, and when it is no longer young,
// the event gets the full period, so that the thread gets fewer signals.
func (e *Engine) overflowed(t *threads.Task) {
	t.Hits++
	if t.Phase == threads.Full || t.Event == nil {
		return
	}
	n, err := t.Event.Count()
	if err != nil || t.Phase == threads.Young && n < threads.YoungPeriods*uint64(e.Period) ||
		t.Event.SetPeriod(t.Period(e.Period)) != nil {
		return
	}
	e.setPhase(t, threads.Full, 0, n)
}

// closeEvent ends a thread's event.
func (e *Engine) closeEvent(t *threads.Task) {
	if t.Event == nil {
		e.copies(t).Remove(t)
		return
	}
	if t.Slot >= 0 {
		e.file.ClearClock(t.Slot)
	}
	e.kernelTime.Remove(t)
	t.Event.Close()
	t.Event, t.Armed, t.Copied = nil, false, false
	e.perf.events--
}

// PerfEvents returns why the kernel does not permit perf events of the user's own processes, or nil if it
// does.
func PerfEvents() error {
	event, err := openEvent(uint32(unix.Gettid()), 1<<62)
	if err != nil {
		return err
	}
	return event.Close()
}

package outside

import (
	"errors"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// cpuEvent is a perf event of one thread's processor time. Its overflow sends the thread a
// signal. The tool's death closes it.
type cpuEvent interface {
	FD() int
	SetPeriod(nanos uint64) error     // restarts the period
	Count() (nanos uint64, err error) // processor time since it was opened; works after the thread's end
	Close() error
}

// perfClock samples threads by perf events.
type perfClock struct {
	events int  // open
	most   int  // that may be open
	full   bool // the kernel gave no more
}

const (
	// eagerEvents is the number of threads that get an event before they have run: an event
	// of a thread that sleeps costs a descriptor.
	eagerEvents = 512
	// youngPeriods is the processor time, in periods, for which a thread is young.
	youngPeriods = 16
	// The period of a young thread is random between these, nanoseconds: a thread that lives
	// shorter has no sample, and each overflow costs the thread a signal of 2 us.
	leastYoung, mostYoung = 100000, 400000
)

// youngPeriod is the period of a young thread's event, and how many of probe.Thinning
// overflows are samples; 0: all are. It differs between threads, so that samples do not fall
// at the same places of threads that do the same.
func youngPeriod(period uint64, random func(n uint64) uint64) (young uint64, keep uint32) {
	const thinning = probe.Thinning
	young = leastYoung + random(mostYoung-leastYoung)
	keep = uint32(max(young*thinning/period, 1))
	if keep >= thinning/2 {
		return period, 0
	}
	return period * uint64(keep) / thinning, keep
}

// openEvent opens the event of a thread, which is still to be enabled. It has no overflows in the
// kernel: a signal to a thread on its way to sleep would interrupt its system call.
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

// armEvent opens a thread's event, once. False: the thread cannot have one, and is to be
// sampled in another way.
func (e *Engine) armEvent(t *task) bool {
	if t.event != nil {
		return true
	}
	if t.eventless || e.perf.events >= e.perf.most || !e.slotOf(t) || !e.file.Near(t.slot) {
		return false
	}
	period, keep := youngPeriod(uint64(e.period), rand.Uint64N)
	event, err := openEvent(t.tid, period)
	if err != nil {
		e.withoutEvent(t, err)
		return errors.Is(err, perfevent.ErrGone)
	}
	if !e.file.SetClock(t.slot, event.FD(), keep) {
		event.Close()
		return false
	}
	event.Enable()
	if c, ok := e.kernel.counters(t); ok {
		n, _ := event.Count()
		t.last, t.atEvent = c, c.cpu-min(n, c.cpu)
	}
	t.kernelHits = e.kernelTime.add(t.tid)
	t.event, t.armed, t.unarmed, t.young = event, true, 0, keep > 0
	e.perf.events++
	e.stats.armed++
	return true
}

// withoutEvent notes why a thread got no event.
func (e *Engine) withoutEvent(t *task, err error) {
	switch {
	case errors.Is(err, perfevent.ErrGone):
	case errors.Is(err, perfevent.ErrLimit):
		if !e.perf.full {
			e.s.Out.Note("the limit of open files is reached: further threads are sampled by CPU timers, which miss work that is bound to the kernel's tick")
		}
		e.perf.full, e.perf.most = true, e.perf.events
	default:
		t.eventless = true
	}
}

// overflowed takes note of a sample of a thread's event. A thread that is no longer young
// gets the whole period: its signals are fewer then.
func (e *Engine) overflowed(t *task) {
	t.hits++
	if !t.young || t.event == nil {
		return
	}
	n, err := t.event.Count()
	if err != nil || n < youngPeriods*uint64(e.period) || t.event.SetPeriod(uint64(e.period)) != nil {
		return
	}
	if t.slot >= 0 {
		e.file.SetClock(t.slot, t.event.FD(), 0)
	}
	t.young, t.atSwitch, t.hits = false, n, 0
}

// closeEvent ends a thread's event.
func (e *Engine) closeEvent(t *task) {
	if t.event == nil {
		return
	}
	if t.slot >= 0 {
		e.file.ClearClock(t.slot)
	}
	e.kernelTime.remove(t)
	t.event.Close()
	t.event, t.armed = nil, false
	e.perf.events--
}

// PerfEvents reports why the kernel permits no perf events of our own processes, nil if it does.
func PerfEvents() error {
	event, err := openEvent(uint32(unix.Gettid()), 1<<62)
	if err != nil {
		return err
	}
	return event.Close()
}

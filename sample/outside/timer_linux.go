package outside

import (
	"cmp"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// timerPlan is how CPU timers sample at one rate.
type timerPlan struct {
	period int64  // of the timers, nanoseconds of processor time
	keep   uint32 // of probe.Thinning expiries are samples
	each   int64  // nanoseconds of processor time that a sample stands for
}

// shortTimer is the period of timers, nanoseconds: short enough that each tick that meets a
// running thread finds its timer expired, on kernels of up to 1,000 ticks a second.
const shortTimer = int64(1e6)

// planTimers plans for one sample each period, on a kernel with so long ticks. A sample is
// where a thread is at a tick: how much it has used since the last one does not count.
func planTimers(period, tick int64) timerPlan {
	p := timerPlan{period: min(period, shortTimer)}
	expiry := max(p.period, tick)
	if p.each = max(period, expiry); p.each == expiry {
		p.keep = probe.Thinning
		return p
	}
	p.keep = uint32(max(expiry*probe.Thinning/period, 1))
	return p
}

// useTimers has timers sample at the rate that is asked for.
func (e *Engine) useTimers() {
	if e.cfg.Clock == ClockOverrun {
		e.file.SetPeriod(uint64(e.period))
		e.timerEach = e.period
		return
	}
	var tick unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick) != nil {
		tick = unix.NsecToTimespec(slowTick)
	}
	p := planTimers(e.period, tick.Nano())
	e.file.SetPeriod(uint64(p.period))
	e.file.SetTimerKeep(p.keep)
	e.timerEach = p.each
}

// arm has a thread be sampled by the clock, once.
func (e *Engine) arm(t *task) {
	if e.cfg.NoCPU || e.cpuClock == ClockPerf && e.armEvent(t) {
		return
	}
	if e.cpuClock == ClockRandom {
		t.armed, t.unarmed = e.slotOf(t), 0
		return
	}
	if t.last.cpu < youngest {
		return
	}
	if t.slot >= 0 && !e.lacksTimer(t) {
		return
	}
	e.ask(t, probe.OpArm)
}

// lacksTimer reads what a thread with a slot has answered, and reports whether it has to be
// asked for a timer.
func (e *Engine) lacksTimer(t *task) bool {
	armed, err, _ := e.file.Armed(t.slot)
	if armed && t.ignoresSignals {
		e.ask(t, probe.OpDisarm)
		return false
	}
	t.ignoresSignals = false
	if armed {
		if !t.armed {
			e.stats.armed++
			e.name(t) // by now it has its own
		}
		t.armed, t.unarmed = true, 0
		return false
	}
	t.armed = false
	if err == 0 || !e.file.Answered(t.slot) {
		return true // asking notices a signal that another takes
	}
	if !t.refused {
		t.refused = true
		e.stats.refused++
	}
	if !t.asked { // a sample by our clock is better than none
		t.asked = e.ask(t, probe.OpSample) == sent
	}
	return false
}

// What came of asking a thread.
type asked uint8

const (
	sent   asked = iota
	later        // it has not taken the last signal yet
	cannot       // it blocks the signal, or there is no slot
)

// ask sends the signal that makes a thread do something, if it can take it.
func (e *Engine) ask(t *task, op probe.Op) asked {
	if t.thread == 0 && e.mayObjects() {
		e.objects()
	}
	if !e.slotOf(t) {
		return cannot
	}
	sig := e.signal()
	masks, ok := e.kernel.signals(t.tid)
	if relay, left := e.file.Relay(masks.blocked); ok && left { // a fault that became an exception has left it so
		t.left, sig = true, relay
	}
	bit := uint64(1) << (sig - 1)
	switch {
	case sig == 0, ok && masks.blocked&bit != 0:
		e.stats.ignoresSignals++
		return cannot
	case !ok, masks.pending&bit != 0:
		return later
	case sig == e.legacy && !e.file.Answered(t.slot):
		// It was taken, and not by us: Go's runtime, say, that has been loaded since. Or
		// the thread has lost its processor on the way to our handler; others answer then.
		if e.unheard++; e.unheard == maxUnheard && e.file.UseRealTime() {
			e.legacy = 0
			sig = e.real
			e.replace()
			e.s.Out.Note("SIGURG is taken by the program: a real-time signal is used instead")
		}
	}
	if sig != e.legacy && !e.alive() { // it may be another program by now, whose end the signal would be
		return cannot
	}
	switch err := e.file.Ask(t.slot, op, sig); err {
	case nil:
	case unix.EAGAIN: // the target may have no more signals under way
		e.stats.unsent++
		return later
	default:
		return cannot
	}
	e.stats.asked++
	if relay, _ := e.file.Relay(0); sig == relay {
		e.stats.relayed++
	}
	return sent
}

// signal is the one that is sent.
func (e *Engine) signal() int { return cmp.Or(e.legacy, e.real) }

// slotOf gives a thread its slot. False: there is none left.
func (e *Engine) slotOf(t *task) bool {
	if t.slot >= 0 {
		return true
	}
	i, err := e.file.Slot(t.tid)
	if err != nil {
		if err == probe.ErrFull && !t.slotless {
			t.slotless = true
			e.stats.noSlot++
		}
		return false
	}
	t.slot = i
	e.file.SetExtra(i, t.thread, e.file.ExtraRoom())
	return true
}

// replace has the threads whose timers use a signal that another takes make new ones.
func (e *Engine) replace() {
	e.cpuClock = e.cpuClock.withoutSIGURG()
	for _, t := range e.tasks {
		e.closeEvent(t)
		if t.armed {
			t.armed, t.ignoresSignals = false, true
		}
	}
}

// silent notices an armed thread of which no sample comes.
func (e *Engine) silent(t *task, used uint64) {
	most := uint64(maxQuiet)
	if t.left {
		most = fewQuiet
	}
	if t.quiet += used; t.quiet > most*uint64(max(e.period, slowTick)) {
		t.quiet = 0
		e.ask(t, probe.OpSample)
	}
}

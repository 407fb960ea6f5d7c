package outside

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// useTimers sets up timers for the requested rate.
func (e *Engine) useTimers() {
	if e.Config.Clock == sampler.ClockOverrun {
		e.file.SetPeriod(uint64(e.Period))
		e.timerEach = e.Period
		return
	}
	var tick unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick) != nil {
		tick = unix.NsecToTimespec(threads.SlowTick)
	}
	p := probe.PlanTimers(e.Period, tick.Nano())
	e.file.SetPeriod(uint64(p.Period))
	e.file.SetTimerKeep(p.Keep)
	e.timerEach = p.Each
}

// arm gives a thread the clock in use, unless it has one.
func (e *Engine) arm(t *threads.Task) {
	if e.Config.NoCPU {
		return
	}
	if e.changeTimer(t); t.Timed {
		t.Armed, t.Unarmed = true, 0
		return
	}
	if t.Stretched {
		e.armInStretch(t)
		return
	}
	switch {
	case e.cpuClock == sampler.ClockPerf && e.armEvent(t):
		return
	case e.cpuClock.ByTool():
		t.Armed, t.Unarmed = true, 0 // drawOne gives it a slot
		return
	}
	if t.Last.Cpu < youngest || e.cpuClock == sampler.ClockPerf && threads.EndsBySignal(t.Call) {
		return
	}
	if t.Slot >= 0 && !e.lacksTimer(t) {
		return
	}
	e.ask(t, probe.OpArm)
}

// decideTimers decides which threads get CPU timers because they wait very often.
func (e *Engine) decideTimers(now time.Time) {
	before := e.unwatched
	switch {
	case e.cpuClock == sampler.ClockTimer || e.cpuClock == sampler.ClockOverrun:
		return
	case e.signal() == 0 || e.kernelTime.All:
		if e.often.Threads == 0 {
			return
		}
		e.often.Clear(e.Tasks)
	case !e.often.Count(now, e.Tasks, e.Kernel.Waits, e.timerEach):
		return
	}
	e.unwatched = e.often.Threads > 0 && e.often.Few && e.startup == nil
	switch {
	case e.unwatched && e.births.IsOpen(): // its events would slow down each switch
		e.endWatch(now)
	case before && !e.unwatched:
		e.fresh = true // the watch begins again
	}
}

// changeTimer gives a thread that waits very often a CPU timer instead of its other clock, and takes the
// timer away later. If a timer is refused or does not suit the thread, it keeps the other clock.
func (e *Engine) changeTimer(t *threads.Task) {
	if !t.WaitsOften && !t.OwnTimer || e.cpuClock != sampler.ClockPerf && !e.cpuClock.ByTool() {
		return
	}
	armed, err, answered := false, unix.Errno(0), true
	if t.Slot >= 0 {
		armed, err, _ = e.file.Armed(t.Slot)
		answered = e.file.Answered(t.Slot)
	}
	timed := armed && !e.kernelTime.All
	// A signal ends some system calls. With the perf clock, no signal does.
	if ends := e.cpuClock == sampler.ClockPerf && threads.EndsBySignal(t.Call); t.WaitsOften &&
		(ends || err != 0 || t.IgnoresSignals || t.Copied && !t.Stretched) {
		t.BarTimer(time.Now())
	}
	if t.Time(timed, e.Period, e.timerEach); timed {
		e.endOther(t)
	}
	t.IgnoresSignals = t.IgnoresSignals && timed // the program takes the signal of this timer
	t.OwnTimer = armed || !answered
	if t.WaitsOften == armed || t.Drawn.Open || !answered {
		return
	}
	op := probe.OpDisarm
	if t.WaitsOften {
		op = probe.OpArm
	}
	if t.OwnTimer = true; e.ask(t, op) == cannot {
		t.BarTimer(time.Now())
	}
}

// endOther ends the other clock of a thread with a CPU timer.
func (e *Engine) endOther(t *threads.Task) {
	if e.timers = true; t.Stretched {
		e.readKernel()
		e.leaveStretch(t)
		t.Unstretch()
	}
	e.closeEvent(t)
}

// lostTimer reports whether a thread's timer has ended since the last poll.
func (e *Engine) lostTimer(t *threads.Task) bool {
	if !t.Timed {
		return false
	}
	armed, _, _ := e.file.Armed(t.Slot)
	return !armed
}

// lacksTimer reads the answer of a thread with a slot, and reports whether the thread has to be asked for a
// timer.
func (e *Engine) lacksTimer(t *threads.Task) bool {
	armed, err, _ := e.file.Armed(t.Slot)
	if armed && t.IgnoresSignals {
		e.ask(t, probe.OpDisarm)
		return false
	}
	t.IgnoresSignals = false
	if armed {
		if !t.Armed {
			e.Stats.Armed++
			e.name(t) // by now it has set its own name
		}
		t.Armed, t.Unarmed = true, 0
		return false
	}
	t.Armed = false
	if err == 0 || !e.file.Answered(t.Slot) {
		return true // the next request detects that the program takes the signal
	}
	if !t.Refused {
		t.Refused = true
		e.Stats.Refused++
	}
	if !t.Asked { // a sample at our moment is better than none
		t.Asked = e.ask(t, probe.OpSample) == sent
	}
	return false
}

// asked is the outcome of a request to a thread.
type asked uint8

const (
	sent   asked = iota
	later        // the thread has not taken the last signal yet, or the kernel cannot queue one
	cannot       // the thread blocks the signal or has ended, or there is no slot
)

// ask sends the signal that makes a thread carry out op, if the thread can take it.
func (e *Engine) ask(t *threads.Task, op probe.Op) asked {
	if t.Thread == 0 && e.mayObjects() {
		e.objects()
	}
	if !e.slotOf(t) {
		return cannot
	}
	sig := e.signal()
	masks, ok := e.Kernel.Signals(t.TID)
	// blocked by a fault that became an exception
	if relay, left := e.file.Relay(masks.Blocked); ok && left {
		t.Left, sig = true, relay
	}
	if sig == 0 {
		return cannot
	}
	bit := uint64(1) << (sig - 1)
	switch {
	case ok && masks.Blocked&bit != 0:
		t.Block()
		e.Stats.IgnoresSignals++
		return cannot
	case !ok, masks.Pending&bit != 0:
		return later
	case sig == e.signal() && !e.file.Answered(t.Slot):
		// Either another handler took the signal (for example Go's runtime, loaded later), or the thread lost
		// its processor on the way to our handler. In the second case other threads answer.
		switch e.ignored++; {
		case e.ignored < maxIgnored:
		case sig != e.legacy: // the program takes the other signal too
			t.Block()
		case e.leaveSIGURG():
			if sig = e.real; sig == 0 {
				return cannot
			}
		}
	}
	// the process may have called exec, and the signal would kill the new program
	if sig != e.legacy && !e.alive() {
		return cannot
	}
	switch err := e.file.Ask(t.Slot, op, sig); err {
	case nil:
	case unix.EAGAIN: // the target may have reached its limit of pending signals
		e.Stats.Unsent++
		return later
	default:
		return cannot
	}
	e.Stats.Asked++
	if relay, _ := e.file.Relay(0); sig == relay {
		e.Stats.Relayed++
	}
	return sent
}

// signal returns the number of the signal to send.
func (e *Engine) signal() int { return cmp.Or(e.legacy, e.real) }

// slotOf gives a thread a slot. It returns false if none is left.
func (e *Engine) slotOf(t *threads.Task) bool {
	if t.Slot >= 0 {
		return true
	}
	i, err := e.file.Slot(t.TID)
	if err != nil {
		if err == probe.ErrFull && !t.Slotless {
			t.Slotless = true
			e.Stats.NoSlot++
		}
		return false
	}
	t.Slot = i
	e.file.SetExtra(i, t.Thread)
	return true
}

// leaveSIGURG ends the use of SIGURG, which the program takes. It returns false if the kernel makes no copies
// and no real-time signal is free.
func (e *Engine) leaveSIGURG() bool {
	if e.stretches.On {
		e.leaveStretches()
	}
	clock := e.cpuClock
	copies := clock == sampler.ClockPerf && e.copyAll()
	if !e.file.UseRealTime() {
		if !copies {
			return false
		}
		e.real = 0
	}
	if e.legacy = 0; copies {
		e.Stream.Out.Note(takesSignal + "the kernel copies stacks from now on")
		return true
	}
	if e.replaceTimers(); e.cpuClock.ByTool() && clock != e.cpuClock {
		e.random.begin()
	}
	note := takesSignal + "a real-time signal is used from now on"
	if e.cpuClock != clock {
		note += ", and the " + string(e.cpuClock) + " clock"
	}
	e.Stream.Out.Note(note)
	return true
}

const takesSignal = "the program now handles SIGURG and may have received some of seedwalk's signals; "

// replaceTimers ends the use of SIGURG, which the program takes: it closes the events, and marks the
// threads with timers so that they get new ones.
func (e *Engine) replaceTimers() {
	e.cpuClock = e.cpuClock.WithoutSIGURG()
	for _, t := range e.Tasks {
		e.closeEvent(t)
		if t.Armed {
			t.Armed, t.IgnoresSignals = false, true
		}
	}
}

// silent requests a sample from an armed thread that has used much CPU time without one.
func (e *Engine) silent(t *threads.Task, used uint64) {
	if t.Stretched { // no samples between stretches
		return
	}
	most := uint64(maxQuiet)
	unanswered := t.Slot >= 0 && !e.file.Answered(t.Slot)
	if t.Left || unanswered {
		most = fewQuiet
	}
	if t.Quiet += used; t.Quiet > most*uint64(max(e.Period, threads.SlowTick)) && !e.Kernel.Sleeps(t.TID) {
		t.Quiet = 0
		if unanswered && e.legacy > 0 {
			m, ok := e.Kernel.Signals(t.TID)
			if ok && (m.Blocked|m.Pending)>>(e.legacy-1)&1 == 0 {
				e.ignored += maxIgnored/2 - 1 // it has run since it took the signal
			}
		}
		e.ask(t, probe.OpSample)
	}
}

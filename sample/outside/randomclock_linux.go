package outside

import (
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// The random clock is for kernels that do not permit perf events. At random moments the tool checks
// which threads run, and sends each of them the signal for a sample. The time between two moments is
// exponentially distributed, so no work of the program can stay in step with them. A sample represents
// one period; the samples of a thread are scaled to its exact clock later.
//
// Known limits: a thread in state R may be waiting for a processor. A sample is taken about 50 us after its
// moment, which is too late for bursts shorter than half a millisecond. Threads that wait very often have CPU
// timers instead (threads.Waits).

// randomClock is the state of the tool's random clock.
type randomClock struct {
	order    []*threads.Task
	open     int            // unanswered requests
	late     alarm.Lateness // of all moments
	recent   alarm.Lateness // of the last ones
	kept     uint64
	rejected uint64
}

const (
	// mostDrawn is the number of threads that are checked at one moment. If there are more, the tool checks a
	// random subset, and each thread in it represents several.
	mostDrawn = 128
	// latest is how late a moment may be. Later ones are left out if at least half of the last fewMoments are
	// earlier. On a busy machine, the tool gets a processor when a thread enters the kernel: such a moment is
	// not random.
	latest     = 128 * time.Microsecond
	fewMoments = 128
	// leastShare is the least share of a period that a sample represents. The thread may have waited only
	// because the tool took its processor.
	leastShare = 0.25
	// drawSlack is how much longer than the time from the request to the sample, in nanoseconds, a
	// thread may have waited for a processor. It waits while the tool uses its processor.
	drawSlack = 60000
	// drawWait and drawWaits bound the wait for the answers of a moment.
	drawWait  = 60 * time.Microsecond
	drawWaits = 5
	// lostAnswer is how long a request may stay unanswered, nanoseconds. An answer is lost if the ring is
	// full, or if the signal is blocked, refused, or taken by the program.
	lostAnswer = 100000000
	// maxPeriods is how many usual samples one sample may represent.
	maxPeriods = 16
	// waking is the CPU time below which a thread in a system call has only just woken up.
	waking = 10000
	// clockNice is the priority of the tool's thread, where permitted: late moments make the samples worse.
	clockNice = -10
)

// begin raises the priority of the clock's thread, so that it runs soon after each moment.
func (r *randomClock) begin() {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), clockNice)
}

// nextDraw returns the time until the next moment, at most threads.Longest.
func (e *Engine) nextDraw() time.Duration {
	d := rand.ExpFloat64() * float64(e.Period)
	return time.Duration(min(d, float64(threads.Longest)))
}

// drawAll requests samples of the threads that run now, or of a subset if there are many. It does nothing if
// the moment is late. It lists the threads first, so that new ones are not missed. If one has ended, another
// may have taken its place.
func (e *Engine) drawAll(late time.Duration) {
	r := &e.random
	r.late.Add(late)
	r.recent.Add(late)
	r.recent.Fade(fewMoments)
	if late > latest && late > time.Duration(r.recent.Bound(0.5)) {
		e.readRing()
		return
	}
	e.readRing() // answers to earlier questions
	e.List(time.Now(), e.file.Helper())
	if e.drawSince(0) {
		again := time.Now()
		e.Relist()
		e.List(again, e.file.Helper())
		e.drawSince(e.Nano(again))
	}
	for i := 0; r.open > 0 && i < drawWaits; i++ {
		alarm.SleepThread(drawWait)
		e.readRing()
	}
}

// drawSince requests samples of the threads that run and were found at or after a Unix time. It reports
// whether one of them has ended.
func (e *Engine) drawSince(found int64) (ended bool) {
	r := &e.random
	r.order = r.order[:0]
	for _, t := range e.Tasks {
		if t.Armed && !t.Timed && !e.restsLong(t) && t.Born >= found {
			r.order = append(r.order, t)
		}
	}
	all := len(r.order)
	drawn := min(all, mostDrawn)
	for i := range drawn { // in a new random order, because the first threads are asked sooner
		j := i + rand.IntN(all-i)
		r.order[i], r.order[j] = r.order[j], r.order[i]
		if e.drawOne(r.order[i], threads.DrawWeight(all, drawn, rand.IntN)); r.order[i].Ended {
			ended = true
		}
	}
	return ended
}

// restsLong reports whether a thread has used little CPU time and has rested for some time. Such threads are
// not checked, because the number of threads checked at one moment is limited (mostDrawn).
func (e *Engine) restsLong(t *threads.Task) bool {
	return t.Rest && t.Every > int64(threads.Longest) && t.Spent() <= armAfter*uint64(e.Period)
}

// Close forgets the open request to a thread: it was answered, or the answer will not come.
func (r *randomClock) Close(t *threads.Task) {
	if t.Drawn.Open {
		t.Drawn.Open = false
		r.open--
	}
}

// drawOne requests a sample of a thread if it runs.
func (e *Engine) drawOne(t *threads.Task, weight uint64) {
	late := t.Drawn.Open && e.Nano(time.Now())-t.Drawn.Wake > lostAnswer
	answered := t.Slot < 0 || e.file.Answered(t.Slot)
	if t.Drawn.Open && !late || !t.Drawn.Open && !answered || !e.Kernel.Runs(t) {
		return
	}
	if t.Armed = e.slotOf(t); !t.Armed {
		return
	}
	before, ok := e.Kernel.Counters(t)
	if !ok {
		return
	}
	e.random.Close(t)
	if !answered {
		e.ask(t, probe.OpSample) // changes to another signal if the program takes this one
	} else if (e.signal() == e.legacy || e.alive()) && e.file.Ask(t.Slot, probe.OpSample, e.signal()) == nil {
		e.Stats.Asked++
	} else {
		e.Stats.Unsent++
	}
	t.Drawn = threads.Draw{Open: true, Before: before, Wake: e.Nano(time.Now()), Weight: weight}
	e.random.open++
}

// answered reports whether a requested sample is one of CPU time: the thread was on a processor
// at the moment, or got the tool's processor as soon as the tool slept. If so, answered sets the times that
// the sample represents.
func (e *Engine) answered(t *threads.Task, s *sampler.Sample) (keep bool) {
	e.random.Close(t)
	d := &t.Drawn
	after, ok := e.Kernel.Counters(t)
	slack := max(0, s.Time-d.Wake) + drawSlack
	switch {
	case !ok:
		keep = true // the thread has ended, so it ran
	case after.Turns == d.Before.Turns:
		keep = true
	case after.Wait-min(d.Before.Wait, after.Wait) <= uint64(slack):
		keep = after.Cpu-min(d.Before.Cpu, after.Cpu) >= waking || !e.Syscalls.Enters(s.Regs.IP())
	}
	if !keep {
		e.random.rejected++
		return false
	}
	e.random.kept++
	whole, share := uint64(e.Period)*d.Weight, 1.
	if ok {
		share = max(after.RanSince(d.Before), leastShare)
	}
	s.Cpu = max(uint64(share*float64(whole)), 1)
	if e.Config.Client && ok {
		s.Cpu = t.SinceSample(after.Cpu, maxPeriods*whole)
	}
	s.Wall = t.Worked(int64(s.Cpu))
	t.Weighed += s.Cpu
	t.Hits++
	e.Stats.Timed++
	return true
}

package threads

import "time"

// Waits decides which threads get CPU timers instead of perf events or random signals. Both are wrong for
// threads that wait thousands of times a second: at each switch, the kernel stops and restarts the events,
// which takes longer than the thread's work, and signals arrive when it waits again. CPU timers expire at the
// kernel's ticks. Between two ticks such a thread waits several times, so its work is seldom in step with
// them. If it is, the thread gets its other clock back.
type Waits struct {
	Threads int           // with WaitsOften
	Created int           // threads since the last count
	Few     bool          // the process hardly creates threads
	soon    time.Duration // between the first counts
	every   time.Duration // between later ones
	counted time.Time
	counts  int
}

// NewWaits returns Waits for threads with a number of nanoseconds between two polls. Between two counts
// there are several polls. The first counts come soon, because threads have their other clock until then.
func NewWaits(polls int64) Waits {
	several := 4 * time.Duration(polls)
	return Waits{soon: max(100*time.Millisecond, several), every: max(500*time.Millisecond, several)}
}

const (
	// A thread may get a timer if it gets a processor this often in a second, or half as often if it has a
	// timer. Kernels have 100 to 1,000 ticks a second.
	leastTurns = 1000
	// Such threads get timers if they wait at least leastWaits times a second on average, and one of
	// waitShare of their turns ends with a wait, or more: more than half in servers whose clients wait for
	// each answer, a tenth in the runtime's pool, whose threads yield their processors in loops. The work of
	// threads that yield may begin with the tick.
	leastWaits = 1000
	waitShare  = 3
	fewCounts  = 10 // that come soon
	mostNew    = 2  // threads that a process with Few may create in a second
	// A thread is in step with the ticks if its samples represent less than 2/3 or more than 3/2 of its
	// CPU time. enoughTimed is how many samples must be expected: fewer may differ as much by chance.
	// From fewTimed on, it is also in step if its samples represent less than a third.
	enoughTimed = 256
	fewTimed    = 32
	leastTimed  = 10 // expected samples from which on their lack is more than chance
	// barred is how long a thread gets no timer once a timer did not suit it.
	barred = 5 * time.Minute
)

// Count counts how often the tasks have got a processor and how often they have waited since the last call,
// and sets Task.WaitsOften. waitsOf returns how often a thread has waited in all, more than 0. each is the
// CPU time that a timer's sample represents, nanoseconds. Count returns false if it is not due.
func (w *Waits) Count(now time.Time, tasks map[uint32]*Task, waitsOf func(tid uint32) uint64,
	each int64) bool {
	passed, every := now.Sub(w.counted), w.every
	if w.counts < fewCounts {
		every = w.soon
	}
	if passed < every {
		return false
	}
	w.counts++
	w.Few = float64(w.Created) <= mostNew*passed.Seconds()
	w.counted, w.Created = now, 0
	turns, waits, least := uint64(0), uint64(0), leastWaits*passed.Seconds()
	if w.Threads > 0 { // so that threads near the limit do not change their clocks all the time
		least /= 2
	}
	known := uint64(0)
	for _, t := range tasks {
		n, m, ok := t.countTurns(passed, waitsOf)
		if t.inStep(each) {
			t.BarTimer(now)
		}
		if t.WaitsOften = ok && !now.Before(t.barredTill); ok {
			turns, waits, known = turns+n, waits+m, known+1
		}
	}
	w.Threads = 0
	for _, t := range tasks {
		t.WaitsOften = t.WaitsOften && waits*waitShare >= turns && float64(waits) >= least*float64(known)
		if t.WaitsOften {
			w.Threads++
		}
	}
	return true
}

// Clear clears Task.WaitsOften: no thread may get a timer.
func (w *Waits) Clear(tasks map[uint32]*Task) {
	w.Threads = 0
	for _, t := range tasks {
		t.WaitsOften = false
	}
}

// countTurns returns how often the thread has got a processor and has waited since the last count. known is
// false if it gets a processor seldom, or if that is not known yet.
func (t *Task) countTurns(passed time.Duration, waitsOf func(uint32) uint64) (turns, waits uint64,
	known bool) {
	least := leastTurns * passed.Seconds()
	if t.Timed {
		least /= 2
	}
	before, beforeWaits := t.turns, t.waits
	t.turns, t.waits, t.undecided = t.Last.Turns, 0, false
	if turns = t.turns - min(before, t.turns); float64(turns) < least {
		return 0, 0, false
	}
	t.waits, t.undecided = waitsOf(t.TID), beforeWaits == 0
	return turns, t.waits - min(beforeWaits, t.waits), beforeWaits > 0
}

// Time records whether the thread has a CPU timer. It must be called before its event is closed. each is the
// CPU time that a timer's sample represents, nanoseconds.
func (t *Task) Time(timed bool, period, each int64) {
	switch {
	case timed && !t.Timed:
		t.kernelBefore = t.InKernel(t.Spent(), t.Period(period))
		t.timedFrom, t.weighedFrom = t.Spent(), t.Weighed
	case !timed && t.Timed:
		t.betweenTicks = t.BetweenTicks(each, false)
		t.eventFrom, t.Sampled = t.Spent(), max(t.Sampled, t.Last.Cpu)
		t.AtSwitch, t.Hits = 0, 0 // of the new event
	}
	t.Timed = timed
}

// BarTimer keeps the thread from getting a timer for some minutes: the kernel refuses one, or it does not
// suit the thread.
func (t *Task) BarTimer(now time.Time) { t.barredTill, t.WaitsOften = now.Add(barred), false }

// inStep reports whether the work of a thread with a timer is in step with the ticks.
func (t *Task) inStep(each int64) bool {
	spent, weighed := t.sinceTimed()
	if !t.Timed || spent < enoughTimed*uint64(each) {
		return t.Timed && spent >= fewTimed*uint64(each) && weighed*3 < spent
	}
	t.betweenTicks = t.BetweenTicks(each, false)
	t.timedFrom, t.weighedFrom = t.Spent(), t.Weighed
	return weighed*3 < spent*2 || weighed*2 > spent*3
}

// sinceTimed returns the thread's CPU time since it got its CPU timer, or since inStep compared last,
// and what its samples represent of it.
func (t *Task) sinceTimed() (spent, weighed uint64) {
	return t.Spent() - min(t.timedFrom, t.Spent()), t.Weighed - min(t.weighedFrom, t.Weighed)
}

// BetweenTicks returns the CPU time, in nanoseconds, without samples because CPU timers expire only at
// the kernel's ticks, and the thread ran between them. all is set if every thread has a timer.
func (t *Task) BetweenTicks(each int64, all bool) uint64 {
	if !t.Timed && !all {
		return t.betweenTicks
	}
	spent, weighed := t.sinceTimed()
	return t.betweenTicks + missedByTimer(spent, weighed, uint64(each))
}

// missedByTimer returns how much of spent has no samples. Small differences are chance.
func missedByTimer(spent, weighed, each uint64) uint64 {
	few := spent >= leastTimed*each && weighed*3 < spent
	if few || spent >= enoughTimed*each && weighed*3 < spent*2 {
		return spent - weighed
	}
	return 0
}

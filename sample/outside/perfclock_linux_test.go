package outside

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/births"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A young thread gets as many samples per CPU time as any other: the kept share of its overflows equals
// its period divided by the full period.
func TestYoungPeriod(t *testing.T) {
	for _, c := range []struct {
		hertz       uint64
		least, most uint64 // of the young period
	}{
		{1, 244140, 400000}, {10, 73242, 400000}, {99, 97000, 400000}, {997, 99000, 400000},
		{1999, 99000, 250125}, {5000, 99000, 200000}, {10000, 100000, 100000},
	} {
		period := 1000000000 / c.hertz
		for _, r := range []uint64{0, 1, 77777, 150000, probe.MostYoung - probe.LeastYoung - 1} {
			young, keep := probe.YoungPeriod(probe.LeastYoung, probe.MostYoung, period,
				func(n uint64) uint64 { return min(r, n-1) })
			if keep == 0 {
				expect.True(t, young == period && period <= 2*probe.MostYoung+1,
					"%d Hz, %d: all of period %d", c.hertz, r, young)
				continue
			}
			got := young * probe.Thinning
			expect.True(t, got <= period*uint64(keep) && got+probe.Thinning >= period*uint64(keep),
				"%d Hz, %d: %d of %d overflows, each %d ns", c.hertz, r, keep, probe.Thinning, young)
			expect.True(t, young >= c.least && young <= c.most && keep < probe.Thinning,
				"%d Hz, %d: period %d, want %d to %d; %d kept", c.hertz, r, young, c.least, c.most, keep)
		}
	}
}

// The first period of an old thread is uniform over the full period, and the share of the overflows after its
// first sample is the first period divided by the full one, at any rate.
func TestFirstPeriod(t *testing.T) {
	for _, c := range []struct {
		period, random uint64
		first          uint64
		keep           uint32
	}{
		{10101010, 0, 101108, 41}, {10101010, 40, 101108, 41}, {10101010, 41, 103574, 42},
		{10101010, 2047, 5050505, 2048}, {10101010, probe.Thinning - 1, 10098543, probe.Thinning - 1},
		{5e8, 0, 122070, 1}, {1e10, 0, 2441406, 1}, {1e10, 1, 4882812, 2},
		{probe.MostYoung + 1, 0, 100000, 1024},
	} {
		first, keep := probe.FirstPeriod(c.period, func(uint64) uint64 { return c.random })
		expect.True(t, first == c.first && keep == c.keep,
			"%d, %d: period %d, want %d; %d kept, want %d", c.period, c.random, first, c.first, keep, c.keep)
	}
	first, keep := probe.FirstPeriod(probe.MostYoung, nil)
	expect.True(t, first == probe.MostYoung && keep == 0, "a short period: %d, %d kept", first, keep)
}

// A thread that ran before the recording, or is old when it gets its event, has no youth.
func TestBeginning(t *testing.T) {
	now := time.Now().UnixNano()
	for _, c := range []struct {
		name   string
		period int64
		k      threads.Task
		want   threads.Phase
	}{
		{"new", 1e7, threads.Task{Born: now}, threads.Young},
		{"ran before the recording", 1e7, threads.Task{Born: now, Base: 1}, threads.First},
		{"old", 1e7, threads.Task{Born: now - 2*youth}, threads.First},
		{"new, short period", 1e5, threads.Task{Born: now}, threads.Full},
		{"old, short period", 1e5, threads.Task{Born: now - 2*youth}, threads.Full},
	} {
		e := &Engine{Base: sampler.Base{Period: c.period}}
		e.births = births.New(&e.Base, nil, nil, nil)
		got, _, _ := e.beginning(&c.k, now)
		expect.True(t, got == c.want, "%s: %d, want %d", c.name, got, c.want)
	}
}

// Youth ends with age, once. The next sample is at a random place of the full period.
func TestAge(t *testing.T) {
	event := &fakeEvent{count: 300}
	k := &threads.Task{TID: 7, Event: event, Phase: threads.Young, Slot: -1, Born: 1000, Hits: 3}
	e := &Engine{Base: sampler.Base{Period: 1e7}, file: &probe.File{}}
	if e.age(k, 1000+youth); k.Phase != threads.Young || event.period != 0 {
		t.Errorf("at its limit: phase %d, period %d", k.Phase, event.period)
	}
	e.age(k, 1001+youth)
	expect.True(t, k.Phase == threads.First && event.period >= probe.LeastYoung && event.period < 1e7 &&
		k.AtSwitch == 300 && k.Hits == 0,
		"phase %d, period %d, since %d, %d hits", k.Phase, event.period, k.AtSwitch, k.Hits)
	event.period = 1
	e.age(k, 1002+youth)
	expect.Equal(t, event.period, 1, "a second time")
	if e.overflowed(k); k.Phase != threads.Full || event.period != k.Period(1e7) {
		t.Errorf("after its first sample: phase %d, period %d", k.Phase, event.period)
	}
}

// A thread that has used its first period without a sample gets the full one: the overflow was in the kernel.
// Otherwise the next overflow in user code would be a sample in any case, which favors user code.
func TestAgeInKernel(t *testing.T) {
	event := &fakeEvent{count: 5000999}
	k := &threads.Task{Event: event, Phase: threads.First, First: 5000000, AtSwitch: 1000, Slot: -1}
	e := &Engine{Base: sampler.Base{Period: 1e7}, file: &probe.File{}}
	if e.age(k, 1e18); k.Phase != threads.First || event.period != 0 {
		t.Errorf("before its end: phase %d, period %d", k.Phase, event.period)
	}
	event.count++
	if e.age(k, 1e18); k.Phase != threads.Full || event.period != k.Period(1e7) || k.AtSwitch != event.count {
		t.Errorf("at its end: phase %d, period %d", k.Phase, event.period)
	}
}

// fakeEvent is an event that has only a count.
type fakeEvent struct {
	count  uint64
	period uint64
	err    error
}

func (f *fakeEvent) FD() int                  { return 7 }
func (f *fakeEvent) SetPeriod(n uint64) error { f.period = n; return nil }
func (f *fakeEvent) Count() (uint64, error)   { return f.count, f.err }
func (f *fakeEvent) Close() error             { return nil }

// Missing samples of an event are kernel time, once the thread has its full period and enough samples are
// expected. The share refers to all of the thread's time.
func TestInKernel(t *testing.T) {
	for _, c := range []struct {
		name        string
		k           threads.Task
		spent, want uint64
	}{
		{"none missing", threads.Task{Event: &fakeEvent{count: 5100}, AtSwitch: 100, Hits: 50}, 5100, 0},
		{"a fifth missing", threads.Task{Event: &fakeEvent{count: 5100}, AtSwitch: 100, Hits: 40},
			6000, 1200},
		{"time that the event does not count", threads.Task{Event: &fakeEvent{count: 5100}, AtSwitch: 100,
			Hits: 40, Last: threads.Counters{Cpu: 7000}, AtEvent: 1000, Counted: 5000}, 6000, 2000},
		{"more than expected", threads.Task{Event: &fakeEvent{count: 5100},
			AtSwitch: 100, Hits: 60}, 5100, 0},
		{"all missing", threads.Task{Event: &fakeEvent{count: 5100}, AtSwitch: 100}, 5100, 5100},
		{"too few expected", threads.Task{Event: &fakeEvent{count: 1600}, AtSwitch: 100, Hits: 1}, 1600, 0},
		{"young", threads.Task{Event: &fakeEvent{count: 5100}, Phase: threads.Young}, 5100, 0},
		{"before its first sample",
			threads.Task{Event: &fakeEvent{count: 5100}, Phase: threads.First}, 5100, 0},
		{"no count", threads.Task{Event: &fakeEvent{count: 5100, err: errors.New("gone")}}, 5100, 0},
		{"no event", threads.Task{}, 5100, 0},
	} {
		expect.Equal(t, c.k.InKernel(c.spent, 100), c.want, "%s: of %d", c.name, c.spent)
	}
}

// Missing samples are kernel time also if kernel time is sampled: the kernel has no interrupts while it
// switches threads. Samples in the kernel are not missing.
func TestNotLocated(t *testing.T) {
	e, _, _, _ := asking(t)
	e.Period = 1e6
	k := &threads.Task{TID: 9, Slot: -1, Armed: true, KernelHits: true, KernelEvery: 1}
	p := k.Period(e.Period)
	k.Event, k.Hits, k.Weighed = &fakeEvent{count: 100 * p}, 70, 80*p
	k.Last.Cpu, k.Counted = 100*p, 100*p
	e.Tasks[9] = k
	for range 10 {
		e.inKernel(copyOf(9))
	}
	must.Equal(t, k.Hits, 80)
	before := *k
	k.KernelEvery = 8
	r := copyOf(9)
	r.Kernel = true
	e.inKernel(r)
	expect.True(t, k.Hits == before.Hits+8 && k.Weighed == before.Weighed+8e6 && k.KernelTime == 8e6,
		"a sample that represents eight periods: %+v", *k)
	k.Hits = 80
	k.Weighed, e.Ending = 80*p, true // so the runtime's tables need not be proven
	e.account(k, false)
	u := sentUsage(t, e, 9)
	expect.True(t, u.CPUNanos == 100*p && u.KernelNanos == 20*p, "%+v", u)
}

// No event counts what a thread with a timer has used since the last poll. If its process has ended, it gets
// the rest of the process's time.
func TestEndWithoutEvent(t *testing.T) {
	for _, c := range []struct {
		name string
		gone bool // the process has ended, not only the thread
		k    threads.Task
		want uint64
	}{
		{"with the process", true, threads.Task{Timed: true}, 180},
		{"before the process", false, threads.Task{Timed: true}, 100},
		{"an event has counted nothing more", true, threads.Task{Event: &fakeEvent{}}, 100},
	} {
		e, _, p, _ := asking(t)
		p.other, e.Ending, e.ranSince, e.accounted = c.gone, true, 1180, 1000
		k := &c.k
		k.TID, k.Slot, k.Armed, e.Tasks = 9, -1, true, map[uint32]*threads.Task{9: k}
		k.Read(threads.Counters{Cpu: 50})
		k.Read(threads.Counters{Cpu: 100})
		e.account(k, true)
		expect.Equal(t, sentUsage(t, e, 9).CPUNanos, c.want, c.name)
	}
}

// The time that a CPU timer did not sample has its own cause, and only the rest is shown by the samples.
func TestBetweenTicks(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock sampler.Clock
		k     threads.Task
		want  uint64
	}{
		{"a timer", sampler.ClockPerf, threads.Task{Timed: true, Weighed: 10e6}, 90e6},
		{"a timer with enough samples", sampler.ClockPerf, threads.Task{Timed: true, Weighed: 40e6}, 0},
		{"a timer whose signal is blocked", sampler.ClockPerf,
			threads.Task{Timed: true, Weighed: 10e6, Blocks: true}, 0},
		{"timers of all threads", sampler.ClockTimer, threads.Task{Weighed: 10e6}, 90e6},
		{"the random clock", sampler.ClockRandom, threads.Task{Weighed: 10e6}, 0},
	} {
		e, _, _, _ := asking(t)
		e.Period, e.timerEach, e.cpuClock, e.Ending = 1e6, 4e6, c.clock, true
		k := &c.k
		k.TID, k.Slot, k.Armed, e.Tasks = 9, -1, true, map[uint32]*threads.Task{9: k}
		k.Read(threads.Counters{Cpu: 100e6})
		e.account(k, false)
		expect.Equal(t, sentBy(t, e, 9, wire.CauseTicks), c.want, c.name)
	}
}

// sentBy returns the CPU time that was sent of a thread with a cause.
func sentBy(t *testing.T, e *Engine, tid uint64, cause uint8) (nanos uint64) {
	t.Helper()
	for r := wire.NewReader(bytes.NewReader(e.Stream.Out.Bytes())); ; {
		m, err := r.Next()
		if err != nil {
			return nanos
		}
		if u, ok := m.(*wire.Usage); ok && u.TID == tid && u.Cause == cause {
			nanos += u.CPUNanos
		}
	}
}

// sentUsage returns the CPU time that was sent of a thread.
func sentUsage(t *testing.T, e *Engine, tid uint64) (u wire.Usage) {
	t.Helper()
	for r := wire.NewReader(bytes.NewReader(e.Stream.Out.Bytes())); ; {
		m := must.Get(r.Next())(t)
		if found, ok := m.(*wire.Usage); ok && found.TID == tid {
			return *found
		}
	}
}

// A thread's CPU time is that of its last schedstat and, if it has ended, what its event has counted
// since, minus the time before the recording.
func TestSpent(t *testing.T) {
	for _, c := range []struct {
		name string
		k    threads.Task
		want uint64 // after its end
	}{
		{"no event", threads.Task{Last: threads.Counters{Cpu: 500}, Base: 100}, 400},
		{"an event that has seen more",
			threads.Task{Last: threads.Counters{Cpu: 500}, Base: 100, Counted: 600,
				Event: &fakeEvent{count: 900}}, 700},
		{"an event that also counts the hypervisor's time",
			threads.Task{Last: threads.Counters{Cpu: 500}, Base: 100, AtEvent: 300, Counted: 900,
				Event: &fakeEvent{count: 901}}, 401},
		{"an event without a count",
			threads.Task{Last: threads.Counters{Cpu: 500}, Base: 100,
				Event: &fakeEvent{count: 900, err: errors.New("gone")}}, 400},
		{"nothing since", threads.Task{Last: threads.Counters{Cpu: 50}, Base: 100}, 0},
	} {
		expect.Equal(t, c.k.SpentToEnd(), c.want, c.name)
		expect.True(t, c.k.Spent() <= 400, "%s", c.name)
	}
}

// A thread that has used many periods gets the full period, and the count of its hits restarts.
func TestNoLongerYoung(t *testing.T) {
	event := &fakeEvent{}
	k := &threads.Task{Event: event, Phase: threads.Young, Slot: 0}
	e := &Engine{Base: sampler.Base{Period: 1000}, file: &probe.File{}}
	event.count = threads.YoungPeriods*1000 - 1
	if e.overflowed(k); k.Phase != threads.Young || event.period != 0 || k.Hits != 1 {
		t.Errorf("phase %v, period %d, hits %d", k.Phase, event.period, k.Hits)
	}
	k.Slot = -1
	event.count++
	e.overflowed(k)
	expect.True(t, k.Phase == threads.Full && event.period == k.Period(1000) && k.Hits == 0 &&
		k.AtSwitch == event.count, "phase %v, period %d, hits %d", k.Phase, event.period, k.Hits)
}

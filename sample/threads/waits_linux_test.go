package threads

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Threads that wait very often get timers, and threads that only yield their processors do not. A thread
// whose work is in step with the ticks loses its timer.
func TestWaits(t *testing.T) {
	const each = int64(1e6)
	const every = 500 * time.Millisecond
	w := NewWaits(125e6)
	waits := map[uint32]uint64{1: 7, 2: 7, 3: 7}
	client, server, rare := &Task{TID: 1}, &Task{TID: 2}, &Task{TID: 3}
	tasks := map[uint32]*Task{1: client, 2: server, 3: rare}
	now := time.Now()
	add := func(k *Task, turns, waited uint64, cpu, weighed time.Duration) {
		k.Last.Turns += turns
		k.Last.Cpu += uint64(cpu)
		k.Weighed += uint64(weighed)
		waits[k.TID] += waited
	}
	const ms = time.Millisecond
	for i, c := range []struct {
		name           string
		turns, waited  uint64 // of the client
		sturns, swaits uint64 // of the server
		weighed        time.Duration
		want           bool
	}{
		{"the first count", 5000, 5000, 5000, 200, 0, false},
		{"waits that are not known before", 5000, 5000, 5000, 200, 0, false},
		{"often", 5000, 5000, 5000, 200, 0, true},
		{"seldom for a thread with a timer", 260, 260, 260, 250, 280 * ms, true},
		{"too seldom", 240, 240, 240, 240, 300 * ms, false},
		{"they yield", 5000, 1000, 5000, 2000, 300 * ms, false},
		{"they still do", 5000, 1000, 5000, 2000, 300 * ms, false},
		{"they wait seldom", 501, 480, 501, 480, 300 * ms, false},
		{"often again", 5000, 5000, 5000, 200, 300 * ms, true},
		{"about as many samples as expected", 5000, 5000, 5000, 200, 210 * ms, true},
		{"in step with the ticks", 5000, 5000, 5000, 200, 20 * ms, false},
		{"it is remembered", 5000, 5000, 5000, 200, 300 * ms, false},
	} {
		add(client, c.turns, c.waited, 300*ms, c.weighed)
		add(server, c.sturns, c.swaits, 300*ms, c.weighed)
		add(rare, 400, 400, 100*ms, 100*ms)
		now = now.Add(every)
		expect.True(t, w.Count(now, tasks, func(tid uint32) uint64 { return waits[tid] }, each),
			"%d, %s: not due", i, c.name)
		expect.True(t, client.WaitsOften == c.want && server.WaitsOften == c.want && !rare.WaitsOften &&
			(w.Threads == 2) == c.want, "%d, %s: %v %v %v, %d threads", i, c.name, client.WaitsOften,
			server.WaitsOften, rare.WaitsOften, w.Threads)
		for _, k := range tasks {
			k.Time(k.WaitsOften, 1e6, 1e6)
		}
		expect.True(t, !w.Count(now.Add(every/2), tasks, nil, each), "%d, %s: due too soon", i, c.name)
	}
}

// A process that creates threads is watched.
func TestWaitsFew(t *testing.T) {
	const every = 500 * time.Millisecond
	w := NewWaits(125e6)
	now := time.Now()
	for _, c := range []struct {
		created int
		few     bool
	}{{0, true}, {2, false}, {1, true}, {1, true}} {
		w.Created, now = c.created, now.Add(every)
		w.Count(now, nil, nil, 1)
		expect.True(t, w.Few == c.few && w.Created == 0, "%+v: %+v", c, w)
	}
}

// The kernel counts waits and not yields.
func TestWaitsOfThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := OpenFiles(os.Getpid())
	defer f.Close(nil)
	tid := uint32(unix.Gettid())
	before := f.Waits(tid)
	for range 50 {
		unix.Nanosleep(&unix.Timespec{Nsec: 100_000}, nil)
		for range 10 {
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
	n := f.Waits(tid) - before
	expect.True(t, before > 0 && n >= 45 && n < 250, "%d waits of 50, beside 500 yields", n)
	expect.Equal(t, f.Waits(1<<30), 0, "a thread that does not exist")
}

// The time in the kernel of a thread that had a timer for some time is that of the times with an event: the
// samples of a timer include the kernel.
func TestInKernelWithTimer(t *testing.T) {
	const period = 1000
	event := &countingEvent{}
	k := &Task{Event: event}
	own := k.Period(period)
	run := func(cpu, hits uint64) {
		k.Last.Cpu += cpu * own
		if k.Event != nil {
			event.count += cpu * own
			k.Counted = event.count
		}
		k.Hits += hits
	}
	run(100, 80) // a fifth in the kernel
	k.Time(true, period, period)
	k.Event = nil
	run(500, 0)
	expect.Equal(t, k.InKernel(k.Spent(), own)/own, 20, "with a timer")
	k.Time(false, period, period)
	*event = countingEvent{}
	k.Event, k.AtEvent, k.Counted = event, k.Last.Cpu, 0
	run(100, 50)
	expect.Equal(t, k.InKernel(k.Spent(), own)/own, 70, "with an event again")
}

// countingEvent is an event that has counted something.
type countingEvent struct{ count uint64 }

func (*countingEvent) FD() int                  { return 7 }
func (*countingEvent) SetPeriod(uint64) error   { return nil }
func (c *countingEvent) Count() (uint64, error) { return c.count, nil }
func (*countingEvent) Close() error             { return nil }

// A thread at random places between the ticks keeps its timer for long. One that is barred gets a timer again
// after some minutes.
func TestWaitsByChance(t *testing.T) {
	const every, each = 500 * time.Millisecond, uint64(10e6) // 100 samples a second
	k, r := &Task{TID: 1}, rand.New(rand.NewPCG(1, 2))
	w, now, waited := NewWaits(125e6), time.Now(), uint64(1)
	count := func() {
		k.Last.Turns += 2000
		waited += 2000
		k.Last.Cpu += uint64(every)
		for range 2 * uint64(every) / each {
			if r.IntN(2) == 0 {
				k.Weighed += each
			}
		}
		now = now.Add(every)
		w.Count(now, map[uint32]*Task{1: k}, func(uint32) uint64 { return waited }, int64(each))
		k.Time(k.WaitsOften, 1e6, 1e6)
	}
	for range 3 {
		count()
	}
	for i := range 20000 {
		count()
		must.True(t, k.Timed, "count %d: it lost its timer", i)
	}
	k.BarTimer(now)
	for n := 1; ; n++ {
		if count(); k.Timed {
			expect.Equal(t, time.Duration(n)*every, barred, "time without a timer")
			break
		}
	}
}

// The first counts come soon, unless threads are polled rarely.
func TestNewWaits(t *testing.T) {
	for _, c := range []struct{ polls, first, later time.Duration }{
		{time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond},
		{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond},
		{time.Second, 4 * time.Second, 4 * time.Second},
	} {
		w, now := NewWaits(int64(c.polls)), time.Now()
		w.Count(now, nil, nil, 1)
		for i := range fewCounts + 2 {
			every := c.first
			if i >= fewCounts-1 {
				every = c.later
			}
			expect.True(t, !w.Count(now.Add(every-1), nil, nil, 1), "%v, %d: too soon", c.polls, i)
			now = now.Add(every)
			expect.True(t, w.Count(now, nil, nil, 1), "%v, %d: not due", c.polls, i)
		}
	}
}

// A thread with a timer is in step with the ticks if its samples represent much less or much more than its
// CPU time. A thread with hardly any samples is recognized early.
func TestInStep(t *testing.T) {
	const each = 4_000_000
	for _, c := range []struct {
		name           string
		spent, weighed uint64 // in expected samples
		want           bool
	}{
		{"too soon", 31, 0, false}, {"none soon", 32, 0, true}, {"a third", 48, 16, false},
		{"less than a third", 48, 15, true}, {"half", 255, 128, false}, {"half of many", 256, 128, true},
		{"two thirds of many", 258, 172, false}, {"too many", 256, 385, true}, {"all", 300, 300, false},
	} {
		k := Task{Timed: true, Weighed: c.weighed * each}
		k.Last.Cpu = c.spent * each
		expect.Equal(t, k.inStep(each), c.want, c.name)
	}
}

// The time that timers did not sample adds up over windows and timers. A difference that may be chance is not
// part of it.
func TestBetweenTicks(t *testing.T) {
	const each = int64(4e6)
	k := &Task{}
	run := func(spent, weighed uint64) { // in expected samples
		k.Last.Cpu += spent * uint64(each)
		k.Weighed += weighed * uint64(each)
	}
	want := func(what string, all bool, n uint64) {
		t.Helper()
		expect.Equal(t, k.BetweenTicks(each, all)/uint64(each), n, what)
	}
	run(100, 0)
	want("without a timer", false, 0)
	want("where all threads have timers", true, 100)
	k.Time(true, 1e6, each)
	run(9, 0)
	want("too few to tell", false, 0)
	run(21, 9)
	want("less than a third", false, 21)
	run(0, 1)
	want("a third", false, 0)
	run(270, 100)
	want("less than two thirds of many", false, 190)
	expect.True(t, k.inStep(each), "in step")
	run(300, 250)
	expect.True(t, !k.inStep(each), "not in step")
	want("the next window", false, 190)
	run(40, 2)
	k.Time(false, 1e6, each)
	run(500, 0)
	want("after the timer", false, 228)
	k.Time(true, 1e6, each)
	run(20, 0)
	want("with another timer", false, 248)
}

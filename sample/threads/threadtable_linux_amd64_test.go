package threads

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/threadprog"
)

func threadTableOf(t *testing.T, pid int) (r *Table, came, gone *[]uint32) {
	t.Helper()
	made := NewTable(pid)
	r, came, gone = &made, new([]uint32), new([]uint32)
	t.Cleanup(func() { r.Kernel.Close(r.Tasks) })
	r.Came = func(k *Task) { *came = append(*came, k.TID) }
	r.Gone = func(k *Task) { *gone = append(*gone, k.TID) }
	r.Name = func(k *Task) { k.Name = r.Kernel.Comm(k.TID) }
	return r, came, gone
}

// Sleeping threads cost system calls. This test counts them over three minutes of rounds with a simulated
// clock. A thread gets a few polls until its stack is known, and then one poll a minute. Each round reads
// the process's clock once, ten times a second. There are no listings, because no thread has run.
func TestSleepersAreCheap(t *testing.T) {
	const threads, period, second = 200, int64(10 * time.Millisecond), int64(time.Second)
	pid, _ := threadprog.Start(t, "sleepers", threads)
	threadprog.Settle(t, pid, threads)
	r, came, gone := threadTableOf(t, pid)
	begin := time.Now()
	polls, rests := 0, 0
	round := func(now int64) {
		r.Watch(begin.UnixNano() + now)
		r.List(begin.Add(time.Duration(now)), 0)
		r.Polls(begin.UnixNano()+now, func(k *Task) {
			s, ok := r.Look(k, begin.UnixNano()+now, period)
			polls++
			expect.True(t, ok, "thread %d has ended", k.TID)
			if k.Rest = true; s.Rested { // as after a stack has been walked
				rests++
			}
		})
	}
	at := int64(0)
	calls := func(until int64) (n uint64) {
		for n = r.Kernel.Calls; at < until; at += int64(100 * time.Millisecond) {
			round(at)
		}
		return r.Kernel.Calls - n
	}
	first := calls(10 * second)
	quiet := calls(50 * second)
	rest := calls(170 * second)
	all := uint64(len(*came))
	expect.True(t, all == threads+1 && len(*gone) == 0 && r.Listing == 1,
		"%d threads have come, %d gone, %d listings", all, len(*gone), r.Listing)
	expect.Equal(t, polls, rests+int(all), "polls, %d of threads that rested", rests)
	expect.Figures(t, first <= 10*all+100 && quiet <= 400 && rest >= 1200+2*all && rest <= 1200+2*all*3+50,
		"%d threads: %d calls of the kernel in ten seconds, %d in the next forty, %d in two minutes more",
		all, first, quiet, rest)
}

// A thread that rests runs for a moment, and rests again. The next poll finds that it has run. The thread's
// old stack gets the time until the last reading that showed the process idle. The new stack gets the rest
// of the time since the last poll. No time is lost.
func TestRanBetween(t *testing.T) {
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("watched %v", watched), func(t *testing.T) { ranBetween(t, watched) })
	}
}

func ranBetween(t *testing.T, watched bool) {
	const step = int64(100 * time.Millisecond)
	pid, run := threadprog.Echo(t)
	r, _, _ := threadTableOf(t, pid)
	now := time.Now().UnixNano()
	begin := now
	r.List(time.Now(), 0)
	k := r.Tasks[uint32(pid)]
	must.True(t, k != nil, "not listed")
	k.Polled = begin
	var accounted int64
	var last *since
	polls := func(steps int) (n int) {
		for range steps {
			if now += step; watched {
				r.Watch(now)
			}
			r.Polls(now, func(k *Task) {
				n++
				s, ok := r.Look(k, now, int64(10*time.Millisecond))
				must.True(t, ok, "it has ended")
				last, accounted = &s, accounted+s.Passed+s.Stood
			})
		}
		return n
	}
	polls(2)
	must.True(t, last != nil && !last.Rested, "rests before its stack is known")
	for i := range 8 {
		k.Rest = true // its stack has been read
		polls(3)
		must.True(t, k.Rest, "%d: does not rest", i)
		n := polls(200)
		expect.True(t, watched == (n == 0), "%d: %d polls in twenty seconds", i, n)
		rested, delayed := k.Polled, r.Delayed
		run()
		threadprog.Settle(t, pid, 0)
		for last = nil; last == nil; {
			polls(1)
		}
		expect.True(t, !last.Rested && !k.Rest && k.Every == int64(10*time.Millisecond),
			"%d: rests though it has run, next after %d ns", i, k.Every)
		if watched && (last.Passed > 2*step || last.Passed < step || last.Stood != now-rested-last.Passed) {
			t.Errorf("%d: %d ms of its old stack, %d ms of the next", i, last.Stood/1e6, last.Passed/1e6)
		}
		running := *last
		old, all := last.Leave(Blocked), running.Leave(Running)
		// A thread that waits for a processor is not blocked. On a loaded machine it may wait all the time.
		ready := int64(r.Delayed - delayed + last.Used)
		expect.True(t, (old != 0 || ready >= last.Passed) && all/2 == old && last.Passed >= old &&
			running.Passed <= step/2+ready,
			"%d: %d of %d ms to its old stack, %d if it runs", i, old/1e6, (last.Passed+old)/1e6, all/1e6)
		if !watched && last.Stood != 0 {
			t.Errorf("%d: %d ms of its old stack, without a poll in between", i, last.Stood/1e6)
		}
		expect.True(t, k.Polled == now && accounted == now-begin,
			"%d: %d of %d ms accounted for", i, accounted/1e6, (now-begin)/1e6)
	}
}

// A thread that has run since its poll has an unknown stack. So it is polled when due, even if the process
// has been idle since the run.
func TestIdleAfterRun(t *testing.T) {
	const step = int64(100 * time.Millisecond)
	pid, run := threadprog.Echo(t)
	r, _, _ := threadTableOf(t, pid)
	now := time.Now().UnixNano()
	r.List(time.Now(), 0)
	k := r.Tasks[uint32(pid)]
	round := func() (polled, rested bool) {
		now += step
		r.Watch(now)
		r.Polls(now, func(k *Task) {
			s, _ := r.Look(k, now, int64(10*time.Millisecond))
			polled, rested = true, s.Rested
		})
		return polled, rested
	}
	for k.Due < now+4*step { // polls become rarer while another thread runs
		round()
		k.Rest = true
		r.Clock.IdleSpan, r.Clock.Idle, r.Due = &IdleSpan{}, false, 0
	}
	run()
	threadprog.Settle(t, pid, 0)
	for i := range 60 {
		if polled, rested := round(); polled {
			expect.True(t, !rested, "rests though it has run")
			return
		} else if i == 50 {
			t.Fatal("it is not polled any more")
		}
	}
}

// stolenEvent is an event whose count has an hour that the thread did not run: a hypervisor took it.
type stolenEvent struct{ cpuEvent }

func (stolenEvent) Count() (uint64, error) { return uint64(time.Hour), nil }

// When a thread has ended, its time is what its own clock was when it was last read. The event's count before
// that is not used, because it includes time that a hypervisor took.
func TestStolenTime(t *testing.T) {
	pid, _ := threadprog.Echo(t)
	r, _, _ := threadTableOf(t, pid)
	r.List(time.Now(), 0)
	k := r.Tasks[uint32(pid)]
	k.Event = stolenEvent{}
	s, ok := r.Look(k, time.Now().UnixNano(), int64(10*time.Millisecond))
	must.True(t, ok && s.Counters.Cpu > 0, "%+v", s)
	must.Equal(t, k.SpentToEnd(), s.Counters.Cpu)
}

// If the number of threads is the same, only the process's clock shows that they have changed: threads start
// and end only while one runs.
func TestListed(t *testing.T) {
	pid, run := threadprog.Echo(t)
	r, came, gone := threadTableOf(t, pid)
	now := time.Now()
	list := func(later time.Duration) (listings uint64) {
		was := r.Listing
		now = now.Add(later)
		r.List(now, 0)
		return r.Listing - was
	}
	must.True(t, list(0) == 1 && slices.Equal(*came, []uint32{uint32(pid)}), "%v", *came)
	other := &Task{TID: 1 << 30, Stat: -1, Place: -1}
	delete(r.Tasks, uint32(pid)) // as if another thread was there before
	r.Tasks[other.TID] = other
	for range 2 {
		expect.Equal(t, list(2*ListEvery), 0, "listed although no thread has run")
	}
	run()
	threadprog.Settle(t, pid, 0)
	r.Due = math.MaxInt64
	expect.Equal(t, list(ListEvery/2), 0, "listed soon again")
	expect.True(t, list(ListEvery) == 1 && len(*came) == 2 && slices.Equal(*gone, []uint32{other.TID}) &&
		len(r.Tasks) == 1, "came %v, gone %v, %d tasks", *came, *gone, len(r.Tasks))
	expect.Equal(t, r.Due, 0, "no poll of a new thread")
	r.Relist()
	expect.Equal(t, list(0), 1, "not listed though a thread has ended")
}

func TestTogether(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct{ due, every, want int64 }{
		{1001 * ms, 20 * ms, 1040 * ms}, {1040 * ms, 20 * ms, 1040 * ms}, {1041 * ms, 320 * ms, 1080 * ms},
		{4001 * ms, 4000 * ms, 4500 * ms}, {2001 * ms, 640 * ms, 2080 * ms},
	} {
		expect.Equal(t, together(c.due, c.every), c.want, "%d, %d", c.due/ms, c.every/ms)
	}
}

// A directory's entries have names of any length and kind. A malformed entry ends the list.
func TestEntries(t *testing.T) {
	entry := func(name string) []byte {
		b := make([]byte, (19+len(name)+1+7)&^7)
		binary.NativeEndian.PutUint16(b[16:], uint16(len(b)))
		copy(b[19:], name)
		return b
	}
	short := entry("7")
	binary.NativeEndian.PutUint16(short[16:], 19)
	long := entry("7")
	binary.NativeEndian.PutUint16(long[16:], 200)
	for _, c := range []struct {
		name string
		b    []byte
		want []uint32
		ok   bool
	}{
		{"usual", slices.Concat(entry("."), entry(".."), entry("1"), entry("4194304")),
			[]uint32{1, 4194304}, true},
		{"none", nil, nil, true},
		{"other names", slices.Concat(entry("a1"), entry("1a"), entry(""), entry("12345678901"), entry("9")),
			[]uint32{9}, true},
		{"no size", slices.Concat(entry("1"), make([]byte, 24)), []uint32{1}, false},
		{"too short", short, nil, false},
		{"too long", long, nil, false},
		{"a piece behind", append(entry("3"), 1, 2), []uint32{3}, false},
		{"no end", append(entry("3")[:20], '4'), nil, false},
	} {
		var got []uint32
		ok := entries(c.b, func(n uint32) { got = append(got, n) })
		expect.True(t, ok == c.ok && slices.Equal(got, c.want), "%s: %v, %v", c.name, got, ok)
	}
}

// A living thread that a listing lacks stays, so that its CPU time does not count twice. A thread that
// has ended goes.
func TestMissingInList(t *testing.T) {
	pid, _ := threadprog.Start(t, "sleepers", 4)
	threadprog.Settle(t, pid, 4)
	r, came, gone := threadTableOf(t, pid)
	r.List(time.Now(), 0)
	const never = 1 << 30 // above the kernel's limit of thread numbers
	r.Add(never, 0)
	must.Equal(t, len(*came), 6)
	r.Listing++
	r.Add(uint32(pid), 0) // the others are missing
	r.Drop(0)
	expect.True(t, len(r.Tasks) == 5 && len(r.Order) == 5 && slices.Equal(*gone, []uint32{never}) &&
		r.links == 0, "%d threads stay, %d in order, gone %v", len(r.Tasks), len(r.Order), *gone)
	r.Listing++ // the probe's helper thread lives, but was listed before its number was known
	if r.Drop(uint32(pid)); len(r.Tasks) != 4 || (*gone)[1] != uint32(pid) {
		t.Errorf("the helper stays: %d threads, gone %v", len(r.Tasks), *gone)
	}
}

// What a process has used beyond its threads' known times belongs to the threads whose end no event counts.
func TestShareRest(t *testing.T) {
	for _, c := range []struct {
		name string
		all  uint64
		want [5]uint64 // with a timer, between stretches, with an event, without a clock, already sent
	}{
		{"a rest", 480, [5]uint64{160, 120, 100, 100, 100}},
		{"the end of the process", 1000, [5]uint64{220, 140, 100, 100, 100}},
		{"none", 400, [5]uint64{100, 100, 100, 100, 100}},
		{"the clock was read before the threads", 390, [5]uint64{100, 100, 100, 100, 100}},
	} {
		table := Table{Tasks: map[uint32]*Task{1: {Timed: true}, 2: {Stretched: true},
			3: {Event: noCount{}}, 4: {}, 5: {Timed: true, Accounted: true}}}
		for tid, recent := range map[uint32]uint64{1: 60, 2: 20, 3: 50, 4: 50, 5: 70} {
			table.Tasks[tid].Read(Counters{Cpu: 100 - recent})
			table.Tasks[tid].Read(Counters{Cpu: 100})
		}
		for range 2 {
			table.ShareRest(c.all)
		}
		for i, want := range c.want {
			expect.Equal(t, table.Tasks[uint32(i+1)].SpentToEnd(), want, "%s: thread %d", c.name, i+1)
		}
	}
}

type noCount struct{ cpuEvent }

func (noCount) Count() (uint64, error) { return 0, nil }

// A new thread may have the number of one that has ended since the last listing. It has a Task of its own.
func TestReusedNumber(t *testing.T) {
	r, came, gone := threadTableOf(t, os.Getpid())
	unix.Close(r.Kernel.Dir)
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "77"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "77", "schedstat"), []byte("1 0 1"), 0o600))
	r.Kernel.Dir = must.Get(unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
	now := time.Now()
	list := func() {
		now = now.Add(2 * ListEvery)
		r.List(now, 0)
	}
	list()
	old := r.Tasks[77]
	must.True(t, old != nil && old.Stat >= 0, "%+v", old)
	unix.Close(old.Stat) // from here on, its file cannot be read, as after its end
	old.Stat = must.Get(unix.Dup(r.Kernel.Dir))(t)
	_, ok := r.Look(old, now.UnixNano(), 1e6)
	must.True(t, !ok, "it has not ended")
	list()
	list()
	expect.True(t, slices.Equal(*came, []uint32{77, 77}) && slices.Equal(*gone, []uint32{77}) &&
		r.Tasks[77] != nil && r.Tasks[77] != old && len(r.Order) == 1, "came %v, gone %v, %d in order", *came,
		*gone, len(r.Order))
	list()
	expect.Equal(t, len(*gone), 1, "it goes once")
}

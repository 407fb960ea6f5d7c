package outside

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func threadTableOf(t *testing.T, pid int) (r *threadTable, came, gone *[]uint32) {
	t.Helper()
	made := newThreadTable(pid)
	r, came, gone = &made, new([]uint32), new([]uint32)
	t.Cleanup(func() { r.kernel.close(r.tasks) })
	r.came = func(k *task) { *came = append(*came, k.tid) }
	r.gone = func(k *task) { *gone = append(*gone, k.tid) }
	r.name = func(k *task) { k.name = r.kernel.comm(k.tid) }
	return r, came, gone
}

// What threads that sleep cost is calls of the kernel, here counted over three minutes of
// rounds, of which only the clock is not real: some looks at each thread in the beginning,
// until its stack is known, then one a minute; and one at the process's clock in each round,
// ten a second. No listing: nobody has run.
func TestSleepersAreCheap(t *testing.T) {
	const threads, period, second = 200, int64(10 * time.Millisecond), int64(time.Second)
	pid, _ := startThreads(t, "sleepers", threads)
	settle(t, pid, threads)
	r, came, gone := threadTableOf(t, pid)
	begin := time.Now()
	visits, rests := 0, 0
	round := func(now int64) {
		r.watch(begin.UnixNano() + now)
		r.list(begin.Add(time.Duration(now)), 0)
		r.visits(begin.UnixNano()+now, func(k *task) {
			s, ok := r.look(k, begin.UnixNano()+now, period)
			if visits++; !ok {
				t.Errorf("thread %d has ended", k.tid)
			}
			if k.rest = true; s.rested { // as with a stack that has been walked
				rests++
			}
		})
	}
	at := int64(0)
	calls := func(until int64) (n uint64) {
		for n = r.kernel.calls; at < until; at += int64(maxIdleSleep) {
			round(at)
		}
		return r.kernel.calls - n
	}
	first := calls(10 * second)
	quiet := calls(50 * second)
	rest := calls(170 * second)
	all := uint64(len(*came))
	if all != threads+1 || len(*gone) != 0 || r.listing != 1 {
		t.Errorf("%d threads have come, %d gone, %d listings", all, len(*gone), r.listing)
	}
	if visits != rests+int(all) {
		t.Errorf("%d visits, %d of threads that rested", visits, rests)
	}
	t.Logf("%d threads: %d calls of the kernel in ten seconds, %d in the next forty, %d in two minutes more", all, first, quiet, rest)
	if first > 10*all+100 || quiet > 400 || rest < 1200+2*all || rest > 1200+2*all*3+50 {
		t.Errorf("%d calls, %d, %d for %d threads", first, quiet, rest, all)
	}
}

// settle waits until no thread of a process runs any more.
func settle(t *testing.T, pid, threads int) {
	t.Helper()
	f := newTaskFiles(pid)
	defer f.close(nil)
	for range 600 {
		before, ok := f.ran()
		if !ok {
			t.Skip("SKIPPED-CHECK: the kernel does not tell the processor time of another process")
		}
		time.Sleep(50 * time.Millisecond)
		blockedAll, n := true, 0
		f.list(func(tid uint32) {
			w, _, _ := f.where(tid)
			n++
			blockedAll = blockedAll && w == blocked
		})
		if after, _ := f.ran(); after == before && n > threads && blockedAll {
			return
		}
	}
	t.Skip("SKIPPED-CHECK: the program does not come to rest")
}

// echo is a process of one thread that runs when it is told to.
func echo(t *testing.T) (pid int, run func()) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED-CHECK: no cat")
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewReader(out)
	run = func() {
		t.Helper()
		io.WriteString(in, "x\n")
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	run()
	settle(t, cmd.Process.Pid, 0)
	return cmd.Process.Pid, run
}

// A thread that has run since its last visit does not rest, however long it has before
// and however soon it sleeps again: what it did then is not its old stack's. That stack gets
// the time until the process's clock was last seen standing for sure, whether the thread was
// visited meanwhile or not, and the new one the rest: none is lost.
func TestRanBetween(t *testing.T) {
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("watched %v", watched), func(t *testing.T) { ranBetween(t, watched) })
	}
}

func ranBetween(t *testing.T, watched bool) {
	const step = int64(100 * time.Millisecond)
	pid, run := echo(t)
	r, _, _ := threadTableOf(t, pid)
	now := time.Now().UnixNano()
	begin := now
	r.list(time.Now(), 0)
	k := r.tasks[uint32(pid)]
	if k == nil {
		t.Fatal("not listed")
	}
	k.visited = begin
	var accounted int64
	var last *since
	visits := func(steps int) (n int) {
		for range steps {
			if now += step; watched {
				r.watch(now)
			}
			r.visits(now, func(k *task) {
				n++
				s, ok := r.look(k, now, int64(10*time.Millisecond))
				if !ok {
					t.Fatal("it has ended")
				}
				last, accounted = &s, accounted+s.passed+s.stood
			})
		}
		return n
	}
	if visits(2); last == nil || last.rested {
		t.Fatal("rests before its stack is known")
	}
	for i := range 8 {
		k.rest = true // its stack has been read
		if visits(3); !k.rest {
			t.Fatalf("%d: does not rest", i)
		}
		if n := visits(200); watched != (n == 0) {
			t.Errorf("%d: %d visits in twenty seconds", i, n)
		}
		rested := k.visited
		run()
		settle(t, pid, 0)
		for last = nil; last == nil; {
			visits(1)
		}
		if last.rested || k.rest || k.every != int64(10*time.Millisecond) {
			t.Errorf("%d: rests though it has run, next after %d ns", i, k.every)
		}
		if watched && (last.passed > 2*step || last.passed < step || last.stood != now-rested-last.passed) {
			t.Errorf("%d: %d ms of its old stack, %d ms of the next", i, last.stood/1e6, last.passed/1e6)
		}
		if !watched && last.stood != 0 {
			t.Errorf("%d: %d ms of its old stack though nobody has looked", i, last.stood/1e6)
		}
		if k.visited != now || accounted != now-begin {
			t.Errorf("%d: %d of %d ms accounted for", i, accounted/1e6, (now-begin)/1e6)
		}
	}
}

// A thread that has run since it was visited is looked at when that is due though the process
// has been idle since: its current stack is not known.
func TestIdleAfterRun(t *testing.T) {
	const step = int64(100 * time.Millisecond)
	pid, run := echo(t)
	r, _, _ := threadTableOf(t, pid)
	now := time.Now().UnixNano()
	r.list(time.Now(), 0)
	k := r.tasks[uint32(pid)]
	round := func() (visited, rested bool) {
		now += step
		r.watch(now)
		r.visits(now, func(k *task) {
			s, _ := r.look(k, now, int64(10*time.Millisecond))
			visited, rested = true, s.rested
		})
		return visited, rested
	}
	for k.due < now+4*step { // visits are rarer by and by, while another thread runs
		round()
		k.rest = true
		r.clock.lull, r.clock.idle, r.due = &idleSpan{}, false, 0
	}
	run()
	settle(t, pid, 0)
	for i := range 60 {
		if visited, rested := round(); visited {
			if rested {
				t.Error("rests though it has run")
			}
			return
		} else if i == 50 {
			t.Fatal("it is not visited any more")
		}
	}
}

// Where threads are as many as before, only the process's clock tells that they are not
// the same: no thread comes or ends unless one runs.
func TestListed(t *testing.T) {
	pid, run := echo(t)
	r, came, gone := threadTableOf(t, pid)
	now := time.Now()
	list := func(later time.Duration) (listings uint64) {
		was := r.listing
		now = now.Add(later)
		r.list(now, 0)
		return r.listing - was
	}
	if list(0) != 1 || !slices.Equal(*came, []uint32{uint32(pid)}) {
		t.Fatalf("%v", *came)
	}
	other := &task{tid: 1 << 30, stat: -1, place: -1}
	delete(r.tasks, uint32(pid)) // as if there had been another in its place
	r.tasks[other.tid] = other
	for range 2 {
		if list(2*listEvery) != 0 {
			t.Error("listed though nobody has run")
		}
	}
	run()
	settle(t, pid, 0)
	r.due = math.MaxInt64
	if list(listEvery/2) != 0 {
		t.Error("listed soon again")
	}
	if list(listEvery) != 1 || len(*came) != 2 || !slices.Equal(*gone, []uint32{other.tid}) || len(r.tasks) != 1 {
		t.Errorf("came %v, gone %v, %d tasks", *came, *gone, len(r.tasks))
	}
	if r.due != 0 {
		t.Error("no visit to a new thread")
	}
	if r.again(); list(0) != 1 {
		t.Error("not listed though a thread has ended")
	}
}

func TestTogether(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct{ due, every, want int64 }{
		{1001 * ms, 20 * ms, 1040 * ms}, {1040 * ms, 20 * ms, 1040 * ms}, {1041 * ms, 320 * ms, 1080 * ms},
		{4001 * ms, 4000 * ms, 4500 * ms}, {2001 * ms, 640 * ms, 2080 * ms},
	} {
		if got := together(c.due, c.every); got != c.want {
			t.Errorf("%d, %d: %d, want %d", c.due/ms, c.every/ms, got/ms, c.want/ms)
		}
	}
}

// The next visit is a step or nearly two away, at an instant that others have too.
func TestAfterVain(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name         string
		period, vain int64
		step         int64
	}{
		{"1,000 Hz, once", ms, 1, 2 * ms}, {"1,000 Hz, more often", ms, 2, 4 * ms}, {"10,000 Hz", ms / 10, 2, 4 * ms},
		{"100 Hz, once", 10 * ms, 1, 20 * ms}, {"100 Hz, more often", 10 * ms, 2, 40 * ms},
		{"30 Hz", 33 * ms, 2, 33 * ms}, {"a sample in ten seconds", 10_000 * ms, 2, 10_000 * ms},
	} {
		for _, visited := range []int64{1_000_000*ms + 1, 1_000_000*ms + c.step - 1, 999_999_937} {
			got := afterVain(visited, c.period, int(c.vain))
			if got%c.step != 0 || got-visited < c.step || got-visited >= 2*c.step {
				t.Errorf("%s: %d ns after %d", c.name, got-visited, visited)
			}
		}
	}
}

// A directory's entries are names of any length and kind, and hostile ones end it.
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
		{"usual", slices.Concat(entry("."), entry(".."), entry("1"), entry("4194304")), []uint32{1, 4194304}, true},
		{"none", nil, nil, true},
		{"other names", slices.Concat(entry("a1"), entry("1a"), entry(""), entry("12345678901"), entry("9")), []uint32{9}, true},
		{"no size", slices.Concat(entry("1"), make([]byte, 24)), []uint32{1}, false},
		{"too short", short, nil, false},
		{"too long", long, nil, false},
		{"a piece behind", append(entry("3"), 1, 2), []uint32{3}, false},
		{"no end", append(entry("3")[:20], '4'), nil, false},
	} {
		var got []uint32
		if ok := entries(c.b, func(n uint32) { got = append(got, n) }); ok != c.ok || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.name, got, ok)
		}
	}
}

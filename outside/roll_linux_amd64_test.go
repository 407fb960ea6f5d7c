package outside

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func rollOf(t *testing.T, pid int) (r *roll, came, gone *[]uint32) {
	t.Helper()
	made := newRoll(pid)
	r, came, gone = &made, new([]uint32), new([]uint32)
	t.Cleanup(func() { r.kernel.close(r.tasks) })
	r.came = func(k *task) { *came = append(*came, k.tid) }
	r.gone = func(k *task) { *gone = append(*gone, k.tid) }
	r.name = func(k *task) { k.name = r.kernel.comm(k.tid) }
	return r, came, gone
}

// What threads that sleep cost is calls of the kernel, here counted over a minute of
// rounds, of which only the clock is not real: of each thread a look every four seconds
// once it has rested for a while, and a few in all before. No listing: nobody has run.
func TestSleepersAreCheap(t *testing.T) {
	const threads, period, minute = 200, int64(10 * time.Millisecond), int64(time.Minute)
	pid, _ := startThreads(t, "sleepers", threads)
	settle(t, pid, threads)
	r, came, gone := rollOf(t, pid)
	begin := time.Now()
	visits, rests, rounds := 0, 0, 0
	round := func(now int64) {
		rounds++
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
	for at < minute/2 {
		round(at)
		at += int64(longest)
	}
	early, lists := r.kernel.calls, r.listing
	rounds = 0
	for at < minute {
		round(at)
		at += int64(longest)
	}
	if len(*came) != threads+1 || len(*gone) != 0 || lists != 1 || r.listing != lists {
		t.Errorf("%d threads have come, %d gone, %d listings and %d", len(*came), len(*gone), lists, r.listing)
	}
	if visits != rests+len(*came) {
		t.Errorf("%d visits, %d of threads that rested", visits, rests)
	}
	calls := r.kernel.calls - early
	each := float64(calls-uint64(rounds)) / float64(len(*came)) // a round asks how many there are
	t.Logf("%.1f calls of the kernel for each thread in its first half minute, %.2f in the second, %d rounds", float64(early)/float64(len(*came)), each, rounds)
	if early > 30*uint64(len(*came)) || each > 30/4+1.5 {
		t.Errorf("%d and %d calls for %d threads in %d rounds", early, calls, len(*came), rounds)
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
// and however soon it sleeps again: what it did then is not its old stack's.
func TestRanBetween(t *testing.T) {
	pid, run := echo(t)
	r, _, _ := rollOf(t, pid)
	r.list(time.Now(), 0)
	k := r.tasks[uint32(pid)]
	if k == nil {
		t.Fatal("not listed")
	}
	now := time.Now().UnixNano()
	look := func() bool {
		now += int64(time.Second)
		s, ok := r.look(k, now, int64(10*time.Millisecond))
		if !ok {
			t.Fatal("it has ended")
		}
		return s.rested
	}
	if look() {
		t.Error("rests before its stack is known")
	}
	for i := range 8 {
		k.rest = true // its stack has been read
		for range 2 {
			if !look() {
				t.Errorf("%d: does not rest", i)
			}
		}
		if k.every < int64(40*time.Millisecond) {
			t.Errorf("%d: next after %d ns", i, k.every)
		}
		run()
		settle(t, pid, 0)
		if look() || k.rest || k.every != int64(10*time.Millisecond) {
			t.Errorf("%d: rests though it has run, next after %d ns", i, k.every)
		}
	}
}

// Where threads are as many as before, only the process's clock tells that they are not
// the same: no thread comes or ends unless one runs.
func TestListed(t *testing.T) {
	pid, run := echo(t)
	r, came, gone := rollOf(t, pid)
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

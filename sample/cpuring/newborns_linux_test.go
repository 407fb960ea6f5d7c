package cpuring

import (
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// spun keeps the compiler from removing the loops.
var spun atomic.Uint32

//go:noinline
func early(rounds int) {
	x := uint32(rounds)
	for range rounds {
		x = x*1664525 + 1013904223
	}
	spun.Store(x)
}

//go:noinline
func later(rounds int) {
	x := uint32(rounds)
	for range rounds {
		x = x*1664525 + 1013904223
	}
	spun.Store(x)
}

// threadTime is the thread's CPU time, nanoseconds.
func threadTime() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return ts.Nano()
}

// roundsOf returns how many rounds take a millisecond.
func roundsOf() int {
	const rounds = 1000000
	least := int64(math.MaxInt64)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 5 {
		began := threadTime()
		early(rounds)
		least = min(least, threadTime()-began)
	}
	return int(rounds * ms / least)
}

// live runs a thread that ends at once. It returns how much of the thread's first period of CPU time
// was in early, and how much in later.
func live(rounds int) (inEarly, inLater float64) {
	done := make(chan [3]int64)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		var at [3]int64
		at[0] = threadTime()
		early(rounds * 3 / 10)
		at[1] = threadTime()
		later(rounds * 12 / 10)
		at[2] = threadTime()
		done <- at
	}()
	at := <-done
	for i := range at {
		at[i] = min(at[i], ms)
	}
	return float64(at[1]-at[0]) / ms, float64(at[2]-at[1]) / ms
}

// Threads that live for 1.5 periods have hits in their first period, in each part as many as the part's
// length requires.
func TestNewborns(t *testing.T) {
	watch, err := perfevent.OpenWatch(perfevent.CPUs(), threads(t)...)
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skip("SKIPPED-CHECK: the kernel permits no perf events here, so they were not tried: ", err)
	}
	must.Do(t, err)
	defer watch.Close()
	n := must.Get(NewNewborns(os.Getpid(), ms))(t)
	defer n.Close()
	n.live = math.MaxUint64 // on a busy machine copies would be closed before they are hit
	born, covered, uncovered := map[uint32]bool{}, 0, 0
	births := func() {
		watch.Read(func(r *perfevent.Record) {
			if r.Type == perfevent.Fork && int(r.PID) == os.Getpid() {
				if born[r.TID] = n.Born(r).Covers(r.Time); born[r.TID] {
					covered++
				} else {
					uncovered++
				}
			}
		})
		n.Renew()
	}
	hits, inEarly := 0, 0
	take := func(r *perfevent.Record) {
		regs, ok := r.Registers(context.Host())
		must.True(t, ok && born[r.TID], "a hit of thread %d, registers %v", r.TID, ok)
		name := runtime.FuncForPC(uintptr(regs.IP())).Name()
		if strings.HasSuffix(name, ".early") {
			hits, inEarly = hits+1, inEarly+1
		} else if strings.HasSuffix(name, ".later") {
			hits++
		}
	}
	rounds := roundsOf()
	const lives = 400
	var expected, later float64
	for range lives {
		a, b := live(rounds)
		expected, later = expected+a, later+b
		births()
		n.Read(births, take)
	}
	share, truth := float64(inEarly)/float64(hits), expected/(expected+later)
	t.Logf("%d threads had copies, %d had none; %d hits, %.1f %% in the first part, which is %.1f %%; lost %d", covered, uncovered, hits, 100*share, 100*truth, n.Lost())
	if want := (expected + later) * float64(covered) / lives; covered < lives*9/10 ||
		float64(hits) < want/2 || float64(hits) > want*1.25 {
		t.Errorf("%d hits, want %.0f; %d of %d threads have copies", hits, want, covered, lives)
	}
	expect.True(t, math.Abs(share-truth) <= 0.03+4.5*math.Sqrt(truth*(1-truth)/float64(hits)),
		"%.1f %% of the hits are in %.1f %% of the first period", 100*share, 100*truth)
}

// threads returns the threads of this process.
func threads(t *testing.T) (tids []int) {
	t.Helper()
	entries := must.Get(os.ReadDir("/proc/self/task"))(t)
	for _, e := range entries {
		tid := 0
		for _, c := range e.Name() {
			tid = 10*tid + int(c-'0')
		}
		tids = append(tids, tid)
	}
	return tids
}

// A thread's copies count once on each CPU, until they are closed, and while the thread has no clock of its
// own.
func TestBirth(t *testing.T) {
	var none *Birth
	expect.True(t, !none.Covers(1) && !none.first(0), "a thread without copies is covered")
	n := &Newborns{live: copiesLive, births: map[uint32]*Birth{}, closed: map[uint32]*Birth{},
		creators: map[uint32]*creator{}, pid: 1}
	c := &creator{opened: 100, tids: []uint32{7}}
	b := &Birth{by: c}
	n.births[7], n.creators[6] = b, c
	for i, want := range []bool{true, false} {
		expect.True(t, b.first(3) == want, "hit %d on a CPU counts: %v", i, !want)
	}
	expect.True(t, b.first(2) && b.Covers(math.MaxUint64), "the copy of another CPU does not count")
	kid := n.Born(&perfevent.Record{TID: 8, Parent: 7, Time: 200})
	expect.True(t, kid != nil && kid.by == c && c.last == 200, "a thread of a thread with copies: %+v", kid)
	expect.True(t, n.Born(&perfevent.Record{TID: 9, Parent: 6, Time: 99}) == nil,
		"a thread is older than the clocks of its creator, and has copies")
	if n.lose(5); b.first(5) || !b.first(4) {
		t.Error("a hit after lost ones counts, or a CPU that lost none has no hits")
	}
	n.forget(8)
	expect.True(t, !n.births[8].first(0), "a forgotten thread is hit")
	for _, step := range []struct {
		now  uint64
		ends bool
	}{{100 + copiesLive - 1, false}, {100 + copiesLive, true}} {
		n.turn(step.now)
		if ended := c.ended != 0; ended != step.ends || (n.births[7] == nil) != step.ends {
			t.Errorf("at %d: ended %v, %d births", step.now, ended, len(n.births))
		}
	}
	expect.True(t, !b.Covers(c.ended) && b.Covers(c.ended-1),
		"copies cover what is after their end")
	n.turn(c.ended + copiesLive - 1)
	expect.True(t, n.BirthOf(7) == b && n.BirthOf(8) == kid, "births of copies closed before are lost")
	n.Born(&perfevent.Record{TID: 8, Time: 300})
	expect.True(t, n.BirthOf(8) == nil, "a new thread has the birth of an ended one with its number")
	n.turn(c.ended + copiesLive)
	expect.True(t, n.BirthOf(7) == nil, "a birth is kept for ever")
}

// The time in the kernel includes what a thread's closed clocks have counted.
func TestInKernelBefore(t *testing.T) {
	s := &Sampler{userOnly: true, threads: map[uint32]*thread{7: {before: Totals{InKernel: 5}}}}
	expect.Equal(t, s.InKernel(7), 5)
	expect.Equal(t, s.InKernel(8), 0, "an unknown thread")
}

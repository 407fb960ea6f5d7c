package sched

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// steps builds actors with independent plain steps.
func steps(counts ...int) func(w *World) {
	return func(w *World) {
		for i, n := range counts {
			w.Go(string(rune('A'+i)), func(a *Actor) {
				for range n {
					a.Yield("step")
				}
			})
		}
	}
}

// multinomial is the number of interleavings of independent sequences.
func multinomial(counts ...int) int {
	r, n := 1, 0
	for _, c := range counts {
		for i := 1; i <= c; i++ {
			n++
			r = r * n / i
		}
	}
	return r
}

func TestExploreCountsInterleavings(t *testing.T) {
	for _, counts := range [][]int{{0}, {1}, {0, 3}, {1, 1}, {2, 3}, {5, 4},
		{2, 2, 2}, {3, 1, 4}, {1, 1, 1, 1}} {
		for _, split := range []int{-1, 0, 1, 5} {
			for workers := 1; workers <= 3; workers++ {
				r := Explore(ExploreOptions{Workers: workers, Split: split}, steps(counts...))
				if want := multinomial(counts...); r.Interleavings != want || r.Done != want || !r.Exhausted {
					t.Errorf("%v split %d workers %d: %+v, want %d", counts, split, workers, r, want)
				}
			}
		}
	}
}

// opposite is two actors that take two locks in opposite order.
func opposite(w *World) {
	x, y := &Lock{Name: "x"}, &Lock{Name: "y"}
	both := func(first, second *Lock) func(*Actor) {
		return func(a *Actor) {
			a.Lock(first)
			a.Lock(second)
			a.Unlock(second)
			a.Unlock(first)
		}
	}
	w.Go("A", both(x, y))
	w.Go("B", both(y, x))
}

func TestOppositeLocks(t *testing.T) {
	r := Explore(ExploreOptions{}, opposite)
	// Deadlock: both first locks before either second, AB or BA. Else one gets
	// its second lock first. A takes x and y, then B cannot move until A has
	// unlocked y; then B can take y before A unlocks x or after: 2 ways; and
	// the same for B first.
	expect.True(t, r.Deadlocks == 2 && r.Done == 4 && r.Interleavings == 6 && r.Exhausted, "%+v", r)
	must.True(t, r.First != nil && r.First.Outcome == Deadlock && r.First.Graph != nil, "first: %+v", r.First)
}

func TestReplayOfFirst(t *testing.T) {
	r := Explore(ExploreOptions{StopAtFirst: true}, opposite)
	w := New(Replay(r.First.Choices), Options{Trace: true})
	opposite(w)
	again := w.Run()
	expect.True(t, cmptest.Diff(*r.First, again) == "", "replay differs:\n%+v\n%+v", again, *r.First)
}

// preemptions counts, by brute force over all orders, the sequences of two
// independent actors with at most bound switches away from one unfinished.
func preemptions(n, m, bound int) int {
	var count func(left [2]int, current, used int) int
	count = func(left [2]int, current, used int) int {
		if used > bound {
			return 0
		}
		if left == [2]int{} {
			return 1
		}
		sum := 0
		for next := range left {
			if left[next] == 0 {
				continue
			}
			cost := 0
			if current >= 0 && next != current && left[current] > 0 {
				cost = 1
			}
			l := left
			l[next]--
			sum += count(l, next, used+cost)
		}
		return sum
	}
	return count([2]int{n, m}, -1, 0)
}

func TestPreemptionBound(t *testing.T) {
	for bound := 0; bound <= 6; bound++ {
		opt := ExploreOptions{Options: Options{Preemptions: bound}}
		if bound == 0 {
			opt.Preemptions = NoPreemption
		}
		r := Explore(opt, steps(4, 3))
		expect.Equal(t, r.Interleavings, preemptions(4, 3, bound), "bound %d", bound)
	}
	if r := Explore(ExploreOptions{Options: Options{Preemptions: NoPreemption}},
		opposite); r.Deadlocks != 0 || r.Done != 2 {
		t.Errorf("no preemption: %+v", r)
	}
	r := Explore(ExploreOptions{Options: Options{Preemptions: 1}}, opposite)
	expect.True(t, r.Deadlocks == 2, "one preemption: %+v", r)
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		stack      bool
		body       func(a *Actor)
	}{
		{"fault", "A: no stack at 7", false, func(a *Actor) { a.Fault("no stack at %d", 7) }},
		{"panic", "A: panic: boom", true, func(a *Actor) { a.Yield("x"); panic("boom") }},
		{"index", "A: panic: runtime error: index out of range [3] with length 0", true,
			func(a *Actor) { var s []int; _ = s[a.Choose(1, "")+3] }},
		{"unlock", "A: unlocks l, which it does not own", false,
			func(a *Actor) { a.Unlock(&Lock{Name: "l"}) }},
		{"choose", `A: Choose(0, "none")`, false, func(a *Actor) { a.Choose(0, "none") }},
		{"condition", "A: panic: bad condition", true,
			func(a *Actor) { a.WaitUntil("c", func() bool { panic("bad condition") }) }},
		{"call in condition", "A: panic: sched: a call on A, which is not running", true, func(a *Actor) {
			a.WaitUntil("c", func() bool { a.Yield("no"); return true })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(Replay(nil), Options{})
			w.Go("A", c.body)
			r := w.Run()
			expect.True(t, r.Outcome == Fault && r.Fault == c.want && (r.Stack != "") == c.stack,
				"%v %q, stack %d bytes", r.Outcome, r.Fault, len(r.Stack))
		})
	}
}

func TestBadChoices(t *testing.T) {
	for _, c := range []int{-1, 2, 1 << 40} {
		w := New(Replay([]int{c}), Options{})
		steps(1, 1)(w)
		r := w.Run()
		expect.True(t, r.Outcome == Fault, "choice %d: %v", c, r.Outcome)
	}
}

func TestAtEnd(t *testing.T) {
	w := New(Replay(nil), Options{})
	w.AtEnd = func() string { return "unbalanced" }
	steps(1)(w)
	r := w.Run()
	expect.True(t, r.Outcome == Fault && r.Fault == "unbalanced", "%+v", r)
}

func TestNotDeterministic(t *testing.T) {
	for _, split := range []int{-1, 3} {
		n := 0
		r := Explore(ExploreOptions{Split: split}, func(w *World) {
			n++
			steps([]int{2, 2, 2}[:2+n%2]...)(w)
		})
		expect.True(t, r.Faults == 1 && r.First != nil &&
			strings.Contains(r.First.Fault, "not deterministic") && !r.Exhausted, "split %d: %+v", split, r)
	}
}

func TestStepLimit(t *testing.T) {
	w := New(Random(1), Options{MaxSteps: 100})
	w.Go("A", func(a *Actor) {
		for {
			a.Yield("round")
		}
	})
	r := w.Run()
	expect.True(t, r.Outcome == StepLimit && r.Steps == 100, "%v after %d", r.Outcome, r.Steps)
}

func TestGoDuringRun(t *testing.T) {
	r := Explore(ExploreOptions{}, func(w *World) {
		w.Go("parent", func(a *Actor) {
			a.Yield("before")
			child := w.Go("child", func(c *Actor) { c.Yield("one"); c.Yield("two") })
			a.Yield("beside")
			a.Join(child)
		})
	})
	if r.Interleavings != 3 || r.Done != 3 { // "beside" before, between or after the child's two
		t.Errorf("%+v", r)
	}
}

// busy is a larger random world with everything in it.
func busy(w *World) {
	locks := []*Lock{{Name: "a"}, {Name: "b", Recursive: true}}
	app := w.Go("app", func(a *Actor) {
		for i := range 5 {
			a.Lock(locks[i%2])
			a.Yield("work %d", i)
			a.Unlock(locks[i%2])
		}
	})
	w.Go("sampler", func(a *Actor) {
		for range 3 {
			if a.Choose(2, "signal?") == 1 {
				a.Signal(app, func(h *Actor) { h.Yield("handler") })
			}
			if _, err := a.SuspendThread(app); err != nil {
				return
			}
			if a.Stop(app) == nil && a.TryLock(locks[0]) {
				a.Unlock(locks[0])
			}
			a.ResumeThread(app)
		}
	})
	w.Go("daemon", func(a *Actor) {
		a.Daemon()
		for {
			a.Yield("tick")
		}
	})
}

func TestRandomIsDeterministic(t *testing.T) {
	run := func(n uint64) Result {
		w := New(Random(n), Options{Trace: true})
		busy(w)
		return w.Run()
	}
	hashes := map[uint64]bool{}
	for n := range uint64(200) {
		a, b := run(n), run(n)
		must.True(t, a.Timeline() == b.Timeline() && cmptest.Diff(b, a) == "", "run %d differs", n)
		must.True(t, a.Outcome == Done, "run %d: %v\n%s", n, a.Outcome, a.Timeline())
		w := New(Replay(a.Choices), Options{Trace: true})
		busy(w)
		must.True(t, cmptest.Diff(a, w.Run()) == "", "run %d: replay differs", n)
		w = New(Random(n), Options{})
		busy(w)
		r := w.Run()
		must.True(t, r.Hash == a.Hash && r.Steps == a.Steps, "run %d: without a trace it is another run", n)
		hashes[a.Hash] = true
	}
	expect.True(t, len(hashes) >= 190, "200 numbers give %d runs", len(hashes))
}

// TestRandomPinned holds the stream itself: numbers in bug reports must mean
// the same in later versions.
func TestRandomPinned(t *testing.T) {
	got := ""
	ch := Random(42)
	for range 16 {
		got += fmt.Sprint(ch.Choose(10))
	}
	expect.Equal(t, got, splitMix(42, 16, 10))
	if r := Random(0).(*random); r.Choose(1<<62) != 0xe220a8397b1dcdaf>>2 { // the published first output for 0
		t.Error("not SplitMix64")
	}
}

func splitMix(x uint64, n, of int) (s string) {
	for range n {
		x += 0x9e3779b97f4a7c15
		z := (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		z ^= z >> 31
		s += fmt.Sprint(int(float64(z>>11) / (1 << 53) * float64(of)))
	}
	return s
}

func TestNoLeak(t *testing.T) {
	before := runtime.NumGoroutine()
	deferred := 0
	for range 50 {
		Explore(ExploreOptions{MaxRuns: 20, Workers: 2, Options: Options{MaxSteps: 6}}, opposite)
		w := New(Random(3), Options{MaxSteps: 9})
		l := &Lock{Name: "l"}
		for range 3 {
			w.Go("x", func(a *Actor) {
				defer func() { deferred++ }()
				defer a.Unlock(l) // a point on the way out must not hang
				a.Lock(l)
				for {
					a.Yield("round")
				}
			})
		}
		w.Run()
		New(Random(1), Options{}).Go("never run", func(*Actor) {})
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		must.True(t, i != 100, "%d goroutines, %d before", runtime.NumGoroutine(), before)
		time.Sleep(10 * time.Millisecond)
	}
	expect.Equal(t, deferred, 150, "deferred calls ran")
}

func TestStopAtFirstIsTheSameForAllWorkers(t *testing.T) {
	for _, build := range []func(*World){racers(true, nil), opposite, heapLock, mutual} {
		one := Explore(ExploreOptions{StopAtFirst: true}, build)
		two := Explore(ExploreOptions{StopAtFirst: true, Workers: 2}, build)
		expect.True(t, cmptest.Diff(two, one) == "" && one.First != nil, "%+v\n%+v", one, two)
	}
}

func TestGoexit(t *testing.T) {
	before := runtime.NumGoroutine()
	over := make(chan bool)
	go func() {
		defer close(over)
		w := New(Replay(nil), Options{})
		w.Go("A", func(a *Actor) { a.Yield("x"); runtime.Goexit() })
		w.Go("B", func(a *Actor) { a.Yield("x"); a.Yield("y") })
		w.Run()
		t.Error("Run returned")
	}()
	<-over
	for i := 0; runtime.NumGoroutine() > before; i++ {
		must.True(t, i != 100, "%d goroutines, %d before", runtime.NumGoroutine(), before)
		time.Sleep(10 * time.Millisecond)
	}
}

func TestMaxRuns(t *testing.T) {
	r := Explore(ExploreOptions{MaxRuns: 100}, steps(5, 5, 5))
	expect.True(t, r.Interleavings != 0 && r.Interleavings <= 130 && !r.Exhausted, "%+v", r)
}

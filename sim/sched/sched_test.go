package sched

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
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
	for _, counts := range [][]int{{0}, {1}, {0, 3}, {1, 1}, {2, 3}, {5, 4}, {2, 2, 2}, {3, 1, 4}, {1, 1, 1, 1}} {
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
	if r.Deadlocks != 2 || r.Done != 4 || r.Interleavings != 6 || !r.Exhausted {
		t.Errorf("%+v", r)
	}
	if r.First == nil || r.First.Outcome != Deadlock || r.First.Graph == nil {
		t.Fatalf("first: %+v", r.First)
	}
}

func TestReplayOfFirst(t *testing.T) {
	r := Explore(ExploreOptions{StopAtFirst: true}, opposite)
	w := New(Replay(r.First.Choices), Options{Trace: true})
	opposite(w)
	if again := w.Run(); !reflect.DeepEqual(again, *r.First) {
		t.Errorf("replay differs:\n%+v\n%+v", again, *r.First)
	}
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
		if want := preemptions(4, 3, bound); r.Interleavings != want {
			t.Errorf("bound %d: %d, want %d", bound, r.Interleavings, want)
		}
	}
	if r := Explore(ExploreOptions{Options: Options{Preemptions: NoPreemption}}, opposite); r.Deadlocks != 0 || r.Done != 2 {
		t.Errorf("no preemption: %+v", r)
	}
	if r := Explore(ExploreOptions{Options: Options{Preemptions: 1}}, opposite); r.Deadlocks != 2 {
		t.Errorf("one preemption: %+v", r)
	}
}

func TestMutualSuspension(t *testing.T) {
	for _, stop := range []bool{false, true} {
		build := func(w *World) {
			var a, b *Actor
			sampler := func(other **Actor) func(*Actor) {
				return func(me *Actor) {
					if _, err := me.SuspendThread(*other); err != nil {
						return
					}
					if stop && me.Stop(*other) != nil {
						return
					}
					me.ResumeThread(*other)
				}
			}
			a = w.Go("A", sampler(&b))
			b = w.Go("B", sampler(&a))
		}
		r := Explore(ExploreOptions{}, build)
		if r.Deadlocks == 0 || r.Done == 0 || r.Faults+r.StepLimits != 0 {
			t.Fatalf("stop %v: %+v", stop, r)
		}
		if c := r.First.Graph.CycleNames(); len(c) != 2 {
			t.Errorf("stop %v: cycle %v", stop, c)
		}
	}
}

func TestSelfSuspension(t *testing.T) {
	helper := func(resume bool) func(w *World) {
		return func(w *World) {
			a := w.Go("A", func(a *Actor) {
				if prev, err := a.SuspendThread(a); prev != 0 || err != nil {
					a.Fault("suspend: %d, %v", prev, err)
				}
			})
			w.Go("B", func(b *Actor) {
				b.WaitUntil("A to stand", a.Stopped, a)
				if resume {
					b.ResumeThread(a)
				}
			})
		}
	}
	if r := Explore(ExploreOptions{}, helper(true)); r.Done != r.Interleavings || r.Done == 0 {
		t.Errorf("resumed: %+v", r)
	}
	if r := Explore(ExploreOptions{}, helper(false)); r.Deadlocks != r.Interleavings || r.Deadlocks == 0 {
		t.Errorf("not resumed: %+v", r)
	}
}

// TestSuspendIsAsynchronous counts the steps that a target takes between
// Suspend and Stop, and after Stop, over all interleavings.
func TestSuspendIsAsynchronous(t *testing.T) {
	between, after := map[int]bool{}, 0
	r := Explore(ExploreOptions{}, func(w *World) {
		n := 0
		target := w.Go("target", func(a *Actor) {
			for range 3 {
				a.Yield("work")
				n++
			}
		})
		w.Go("sampler", func(a *Actor) {
			if _, err := a.SuspendThread(target); err != nil {
				return
			}
			atSuspend := n
			if a.Stop(target) != nil {
				return
			}
			atStop := n
			between[atStop-atSuspend] = true
			a.Yield("walk")
			a.Yield("walk")
			after = max(after, n-atStop)
			a.ResumeThread(target)
		})
	})
	// A target with three steps can take at most two and still stand: the
	// third ends it.
	if want := map[int]bool{0: true, 1: true, 2: true}; !reflect.DeepEqual(between, want) || after != 0 {
		t.Errorf("steps between suspend and stop: %v, after stop: %d", between, after)
	}
	if r.Done != r.Interleavings || !r.Exhausted {
		t.Errorf("%+v", r)
	}
}

// TestKernelStops: nobody reads the context, so only the kernel's own moment
// can make the deadlock with the lock of the suspended.
func TestKernelStops(t *testing.T) {
	r := Explore(ExploreOptions{}, func(w *World) {
		heap := &Lock{Name: "heap"}
		app := w.Go("app", func(a *Actor) {
			a.Lock(heap)
			a.Unlock(heap)
		})
		w.Go("sampler", func(a *Actor) {
			if _, err := a.SuspendThread(app); err != nil {
				return
			}
			a.Lock(heap)
			a.Unlock(heap)
			a.ResumeThread(app)
		})
	})
	if r.Deadlocks == 0 || r.Done == 0 {
		t.Errorf("%+v", r)
	}
}

func TestPartialDeadlock(t *testing.T) {
	build := func(rescue bool) func(*World) {
		return func(w *World) {
			l := &Lock{Name: "clr"}
			app := w.Go("app", func(a *Actor) { a.Lock(l); a.Yield("in clr"); a.Unlock(l) })
			sampler := w.Go("sampler", func(a *Actor) {
				if _, err := a.SuspendThread(app); err != nil || a.Stop(app) != nil {
					return
				}
				a.Lock(l)
				a.Unlock(l)
				a.ResumeThread(app)
			})
			w.Go("ticker", func(a *Actor) {
				a.Daemon()
				if rescue {
					a.Watchdog()
				}
				for {
					a.Rebase(0)
					a.Yield("tick")
					if rescue && !sampler.Ended() && app.Stopped() && l.Owner() == app {
						a.ResumeThread(app)
					}
				}
			})
		}
	}
	opt := ExploreOptions{Prune: PruneObserved}
	r := Explore(opt, build(false))
	if r.Deadlocks == 0 || r.Done == 0 || r.StepLimits != 0 || !r.Exhausted {
		t.Fatalf("no watchdog: %+v", r)
	}
	if got := strings.Join(r.First.Graph.CycleNames(), " "); !strings.Contains(got, "sampler") || !strings.Contains(got, "app") {
		t.Errorf("cycle %q", got)
	}
	if r = Explore(opt, build(true)); r.Deadlocks != 0 || r.Done == 0 || !r.Exhausted {
		t.Errorf("watchdog: %+v", r)
	}
}

func TestSignals(t *testing.T) {
	ran := map[string]bool{}
	r := Explore(ExploreOptions{}, func(w *World) {
		l := &Lock{Name: "l", Recursive: false}
		at := "start"
		target := w.Go("target", func(a *Actor) {
			a.Lock(l)
			at = "locked"
			a.Unlock(l)
			at = "end"
		})
		w.Go("sender", func(a *Actor) {
			a.Lock(l)
			a.Signal(target, func(h *Actor) {
				if h != target {
					h.Fault("handler on %s", h.Name())
				}
				ran[at] = true
				h.Yield("handler")
			})
			a.Unlock(l)
		})
	})
	if want := map[string]bool{"start": true, "locked": true}; !reflect.DeepEqual(ran, want) {
		t.Errorf("handler ran at %v", ran)
	}
	if r.Done != r.Interleavings {
		t.Errorf("%+v", r)
	}
}

// TestSignalHandlerDeadlock: a handler that takes a lock of the interrupted.
func TestSignalHandlerDeadlock(t *testing.T) {
	r := Explore(ExploreOptions{}, func(w *World) {
		heap := &Lock{Name: "heap"}
		app := w.Go("app", func(a *Actor) { a.Lock(heap); a.Unlock(heap) })
		w.Go("sender", func(a *Actor) {
			a.Signal(app, func(h *Actor) { h.Lock(heap); h.Unlock(heap) })
		})
	})
	if r.Deadlocks == 0 || r.Done == 0 {
		t.Fatalf("%+v", r)
	}
	if c := r.First.Graph.CycleNames(); !reflect.DeepEqual(c, []string{"app", "heap"}) {
		t.Errorf("cycle %v", c)
	}
}

// TestSignalToOneself: handled before the call returns, and what was
// interrupted stands where it stood.
func TestSignalToOneself(t *testing.T) {
	w := New(Replay(nil), Options{})
	w.Go("A", func(a *Actor) {
		log := ""
		a.Signal(a, func(h *Actor) {
			h.Signal(h, func(h *Actor) { log += "2" })
			h.Yield("a point in the handler")
			log += "1"
		})
		log += "."
		for range 3 { // the second waits for the first to return
			a.Yield("chance")
		}
		if log != "1.2" && log != "1." {
			a.Fault("order %q", log)
		}
	})
	if r := w.Run(); r.Outcome != Done {
		t.Error(r.Fault)
	}
}

// TestHandlersDoNotNest: two pending signals run one after the other.
func TestHandlersDoNotNest(t *testing.T) {
	r := Explore(ExploreOptions{}, func(w *World) {
		in := 0
		app := w.Go("app", func(a *Actor) { a.Yield("work"); a.Yield("work") })
		w.Go("sender", func(a *Actor) {
			for range 2 {
				a.Signal(app, func(h *Actor) {
					if in++; in > 1 {
						h.Fault("nested")
					}
					h.Yield("in handler")
					in--
				})
			}
		})
	})
	if r.Done != r.Interleavings || r.Done == 0 {
		t.Errorf("%+v", r)
	}
}

// TestBusyDaemonHidesNoKernelStop: a daemon that can always move must not keep
// the kernel from stopping the owner of the lock.
func TestBusyDaemonHidesNoKernelStop(t *testing.T) {
	r := Explore(ExploreOptions{Prune: PruneObserved}, func(w *World) {
		heap := &Lock{Name: "heap"}
		app := w.Go("app", func(a *Actor) { a.Lock(heap); a.Unlock(heap) })
		w.Go("sampler", func(a *Actor) {
			if _, err := a.SuspendThread(app); err == nil {
				a.Lock(heap)
				a.Unlock(heap)
				a.ResumeThread(app)
			}
		})
		w.Go("ticker", func(a *Actor) {
			a.Daemon()
			for {
				a.Rebase(0)
				a.Yield("tick")
			}
		})
	})
	if r.Deadlocks == 0 || !r.Exhausted {
		t.Errorf("%+v", r)
	}
}

func TestNoSignalWhileSuspended(t *testing.T) {
	r := Explore(ExploreOptions{}, func(w *World) {
		standing := false
		app := w.Go("app", func(a *Actor) { a.Yield("work"); a.Yield("work") })
		w.Go("sampler", func(a *Actor) {
			a.Signal(app, func(h *Actor) {
				if standing {
					h.Fault("ran while suspended")
				}
				h.Yield("in handler")
				if standing {
					h.Fault("went on while suspended")
				}
			})
			if _, err := a.SuspendThread(app); err != nil || a.Stop(app) != nil {
				return
			}
			standing = true
			a.Yield("walk")
			standing = false
			a.ResumeThread(app)
		})
	})
	if r.Done != r.Interleavings || r.Done == 0 {
		t.Errorf("%+v", r)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string
		stack      bool
		body       func(a *Actor)
	}{
		{"fault", "A: no stack at 7", false, func(a *Actor) { a.Fault("no stack at %d", 7) }},
		{"panic", "A: panic: boom", true, func(a *Actor) { a.Yield("x"); panic("boom") }},
		{"index", "A: panic: runtime error: index out of range [3] with length 0", true, func(a *Actor) { var s []int; _ = s[a.Choose(1, "")+3] }},
		{"unlock", "A: unlocks l, which it does not own", false, func(a *Actor) { a.Unlock(&Lock{Name: "l"}) }},
		{"choose", `A: Choose(0, "none")`, false, func(a *Actor) { a.Choose(0, "none") }},
		{"condition", "A: panic: bad condition", true, func(a *Actor) { a.WaitUntil("c", func() bool { panic("bad condition") }) }},
		{"call in condition", "A: panic: sched: a call on A, which is not running", true, func(a *Actor) {
			a.WaitUntil("c", func() bool { a.Yield("no"); return true })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(Replay(nil), Options{})
			w.Go("A", c.body)
			r := w.Run()
			if r.Outcome != Fault || r.Fault != c.want || (r.Stack != "") != c.stack {
				t.Errorf("%v %q, stack %d bytes", r.Outcome, r.Fault, len(r.Stack))
			}
		})
	}
}

func TestBadChoices(t *testing.T) {
	for _, c := range []int{-1, 2, 1 << 40} {
		w := New(Replay([]int{c}), Options{})
		steps(1, 1)(w)
		if r := w.Run(); r.Outcome != Fault {
			t.Errorf("choice %d: %v", c, r.Outcome)
		}
	}
}

func TestAtEnd(t *testing.T) {
	w := New(Replay(nil), Options{})
	w.AtEnd = func() string { return "unbalanced" }
	steps(1)(w)
	if r := w.Run(); r.Outcome != Fault || r.Fault != "unbalanced" {
		t.Errorf("%+v", r)
	}
}

func TestNotDeterministic(t *testing.T) {
	for _, split := range []int{-1, 3} {
		n := 0
		r := Explore(ExploreOptions{Split: split}, func(w *World) {
			n++
			steps([]int{2, 2, 2}[:2+n%2]...)(w)
		})
		if r.Faults != 1 || r.First == nil || !strings.Contains(r.First.Fault, "not deterministic") || r.Exhausted {
			t.Errorf("split %d: %+v", split, r)
		}
	}
}

func TestStepLimit(t *testing.T) {
	w := New(Random(1), Options{MaxSteps: 100})
	w.Go("A", func(a *Actor) {
		for {
			a.Yield("round")
		}
	})
	if r := w.Run(); r.Outcome != StepLimit || r.Steps != 100 {
		t.Errorf("%v after %d", r.Outcome, r.Steps)
	}
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
		if a.Timeline() != b.Timeline() || !reflect.DeepEqual(a, b) {
			t.Fatalf("run %d differs", n)
		}
		if a.Outcome != Done {
			t.Fatalf("run %d: %v\n%s", n, a.Outcome, a.Timeline())
		}
		w := New(Replay(a.Choices), Options{Trace: true})
		busy(w)
		if r := w.Run(); !reflect.DeepEqual(r, a) {
			t.Fatalf("run %d: replay differs", n)
		}
		w = New(Random(n), Options{})
		busy(w)
		if r := w.Run(); r.Hash != a.Hash || r.Steps != a.Steps {
			t.Fatalf("run %d: without a trace it is another run", n)
		}
		hashes[a.Hash] = true
	}
	if len(hashes) < 190 {
		t.Errorf("200 numbers give %d runs", len(hashes))
	}
}

// TestRandomPinned holds the stream itself: numbers in bug reports must mean
// the same in later versions.
func TestRandomPinned(t *testing.T) {
	got := ""
	ch := Random(42)
	for range 16 {
		got += fmt.Sprint(ch.Choose(10))
	}
	if want := splitMix(42, 16, 10); got != want {
		t.Errorf("%s, want %s", got, want)
	}
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
		if i == 100 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if deferred != 150 {
		t.Errorf("%d of 150 deferred calls ran", deferred)
	}
}

// racers is a world of shared variables, locks, choices and suspension; what
// actors read they Observe, or not, for PruneSeen.
func racers(observe bool, ends map[uint64]bool) func(w *World) {
	return func(w *World) {
		var shared, done uint64
		w.AtEnd = func() string {
			if ends != nil {
				ends[shared] = true
			}
			return ""
		}
		l, m := &Lock{Name: "l"}, &Lock{Name: "m"}
		w.Hash = func() uint64 { return shared<<8 | done }
		add := func(first, second *Lock, by uint64) func(a *Actor) {
			return func(a *Actor) {
				a.Yield("read")
				read := shared
				if observe {
					a.Observe(read)
				}
				if a.Choose(2, "how") == 1 {
					a.Lock(first)
					a.Lock(second)
					a.Unlock(second)
					a.Unlock(first)
				}
				a.Yield("write")
				shared = read + by
				done++
			}
		}
		x := w.Go("x", add(l, m, 1))
		w.Go("y", add(m, l, 2))
		w.Go("z", func(a *Actor) {
			if _, err := a.SuspendThread(x); err == nil {
				a.Stop(x)
				a.Yield("look")
				a.ResumeThread(x)
			}
			a.WaitUntil("both", func() bool { return done == 2 })
			if shared == 2 {
				a.Fault("x was lost")
			}
		})
	}
}

func TestPruneGivesTheSameVerdict(t *testing.T) {
	ends := map[uint64]bool{}
	all := Explore(ExploreOptions{}, racers(true, ends))
	if all.Deadlocks == 0 || all.Faults == 0 || all.Done == 0 || !all.Exhausted {
		t.Fatalf("%+v", all)
	}
	t.Logf("none: %d runs", all.Interleavings)
	for name, opt := range map[string]ExploreOptions{
		"observed": {Prune: PruneObserved}, "seen": {Prune: PruneSeen},
		"observed, split": {Prune: PruneObserved, Split: 2, Workers: 2},
	} {
		var found map[uint64]bool
		if opt.Workers < 2 {
			found = map[uint64]bool{}
		}
		r := Explore(opt, racers(opt.Prune == PruneObserved, found))
		if found != nil && !reflect.DeepEqual(found, ends) {
			t.Errorf("%s: ends in %v, without pruning %v", name, found, ends)
		}
		if r.Deadlocks == 0 || r.Faults == 0 || r.Done == 0 || !r.Exhausted || r.Interleavings >= all.Interleavings {
			t.Errorf("%s: %+v", name, r)
		}
		t.Logf("%s: %d runs, %d pruned, %d states", name, r.Interleavings, r.Pruned, r.States)
		r.First = nil
		opt.Workers = 3 - max(opt.Workers, 1)
		again := Explore(opt, racers(opt.Prune == PruneObserved, nil))
		if again.First = nil; again != r {
			t.Errorf("%s: other workers: %+v, %+v", name, r, again)
		}
	}
}

// TestPruneWithoutFailures: where nothing is wrong, pruning finds nothing, and
// k independent actors with n steps have (n+1)^k states at most.
func TestPruneStates(t *testing.T) {
	r := Explore(ExploreOptions{Prune: PruneObserved}, steps(4, 4, 4))
	// States with a choice: all but those where at most one actor is left,
	// which are the 3*4+1 points on the far edges.
	if want := 5*5*5 - 13; r.States != want || r.Done != r.Interleavings || !r.Exhausted {
		t.Errorf("%+v, want %d states", r, want)
	}
}

func TestStopAtFirstIsTheSameForAllWorkers(t *testing.T) {
	for _, build := range []func(*World){racers(true, nil), opposite, heapLock, mutual} {
		one := Explore(ExploreOptions{StopAtFirst: true}, build)
		two := Explore(ExploreOptions{StopAtFirst: true, Workers: 2}, build)
		if !reflect.DeepEqual(one, two) || one.First == nil {
			t.Errorf("%+v\n%+v", one, two)
		}
	}
}

// TestPruneTellsSignalsApart: the order of two pending handlers, and whose
// child an actor is, are in no counter; only histories know.
func TestPruneTellsSignalsApart(t *testing.T) {
	var all map[string]bool
	for _, prune := range []Prune{PruneNone, PruneObserved, PruneSeen} {
		last := map[string]bool{}
		r := Explore(ExploreOptions{Prune: prune}, func(w *World) {
			var log string
			w.AtEnd = func() string { last[log] = true; return "" }
			sent := 0
			w.Hash = func() uint64 { return mix(hashString(log), uint64(sent)) }
			app := w.Go("app", func(a *Actor) { a.WaitUntil("sent", func() bool { return sent == 2 }); a.Yield("end") })
			for _, n := range []string{"x", "y"} {
				w.Go(n, func(a *Actor) {
					a.Signal(app, func(h *Actor) { log += n })
					sent++
					w.Go("child", func(c *Actor) { c.Yield("write"); log += "." + n })
				})
			}
		})
		if prune == PruneNone {
			all = last
		}
		if !reflect.DeepEqual(last, all) || len(all) < 24 || r.Deadlocks+r.Faults > 0 || !r.Exhausted {
			t.Errorf("prune %d: %d ends, %d without: %+v", prune, len(last), len(all), r)
		}
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
		if i == 100 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestMaxRuns(t *testing.T) {
	r := Explore(ExploreOptions{MaxRuns: 100}, steps(5, 5, 5))
	if r.Interleavings == 0 || r.Interleavings > 130 || r.Exhausted {
		t.Errorf("%+v", r)
	}
}

// TestNestedSuspension: the count must reach 0 before the target moves, and a
// suspension nobody takes back is a deadlock.
func TestNestedSuspension(t *testing.T) {
	for resumes := range 4 {
		r := Explore(ExploreOptions{}, func(w *World) {
			moved := 0
			app := w.Go("app", func(a *Actor) { a.Yield("work"); moved++ })
			w.Go("sampler", func(a *Actor) {
				for want := range 2 {
					if prev, err := a.SuspendThread(app); err == nil && prev != want {
						a.Fault("previous count %d", prev)
					}
				}
				if err := a.Stop(app); err != nil {
					if err != ErrEnded || !app.Ended() {
						a.Fault("stop: %v", err)
					}
					return
				}
				for i := range resumes {
					before := moved
					prev, err := a.ResumeThread(app)
					if i < 2 && (err != nil || prev != 2-i || moved != before) {
						a.Fault("resume %d: %d, %v", i, prev, err)
					}
				}
			})
		})
		if (r.Deadlocks > 0) != (resumes < 2) || r.Faults > 0 || r.Done == 0 {
			t.Errorf("%d resumes: %+v\n%v", resumes, r, r.First)
		}
	}
}

func TestSuspendErrors(t *testing.T) {
	w := New(Replay(nil), Options{})
	gone := w.Go("gone", func(*Actor) {})
	w.Go("A", func(a *Actor) {
		if prev, err := a.SuspendThread(gone); prev != -1 || err != ErrEnded {
			a.Fault("suspend: %d, %v", prev, err)
		}
		if prev, err := a.ResumeThread(gone); prev != -1 || err != ErrEnded {
			a.Fault("resume: %d, %v", prev, err)
		}
		if a.Stop(gone) != ErrEnded || a.Signal(gone, nil) || a.Stop(a) != ErrNotSuspended {
			a.Fault("stop or signal")
		}
		b := w.Go("B", func(b *Actor) { b.Yield("x") })
		b.Daemon()
		a.Yield("B begins")
		for range 127 {
			a.SuspendThread(b)
		}
		if _, err := a.SuspendThread(b); !b.Ended() && err != ErrSuspendLimit {
			a.Fault("limit: %v", err)
		}
	})
	if r := w.Run(); r.Outcome != Done {
		t.Error(r.Fault)
	}
}

func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(*World)
	}{
		{"steps", steps(4, 4, 4)},
		{"locks", threeLocks},
	} {
		b.Run(c.name, func(b *testing.B) {
			runs, start := 0, time.Now()
			for b.Loop() {
				runs += Explore(ExploreOptions{}, c.build).Interleavings
			}
			b.ReportMetric(float64(runs)/time.Since(start).Seconds(), "runs/s")
		})
	}
}

// threeLocks is three actors with four points each.
func threeLocks(w *World) {
	l := &Lock{Name: "l"}
	for _, n := range [...]string{"A", "B", "C"} {
		w.Go(n, func(a *Actor) {
			a.Yield("before")
			a.Lock(l)
			a.Unlock(l)
			a.Yield("after")
		})
	}
}

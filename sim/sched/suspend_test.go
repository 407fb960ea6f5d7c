package sched

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

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
		must.True(t, r.Deadlocks != 0 && r.Done != 0 && r.Faults+r.StepLimits == 0, "stop %v: %+v", stop, r)
		c := r.First.Graph.CycleNames()
		expect.True(t, len(c) == 2, "stop %v: cycle %v", stop, c)
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
	r := Explore(ExploreOptions{}, helper(true))
	expect.True(t, r.Done == r.Interleavings && r.Done != 0, "resumed: %+v", r)
	r = Explore(ExploreOptions{}, helper(false))
	expect.True(t, r.Deadlocks == r.Interleavings && r.Deadlocks != 0, "not resumed: %+v", r)
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
	if want := map[int]bool{0: true, 1: true, 2: true}; cmptest.Diff(want, between) != "" || after != 0 {
		t.Errorf("steps between suspend and stop: %v, after stop: %d", between, after)
	}
	expect.True(t, r.Done == r.Interleavings && r.Exhausted, "%+v", r)
}

// TestKernelStops: the context is not read, so only the kernel's own moment
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
	expect.True(t, r.Deadlocks != 0 && r.Done != 0, "%+v", r)
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
	must.True(t, r.Deadlocks != 0 && r.Done != 0 && r.StepLimits == 0 && r.Exhausted, "no watchdog: %+v", r)
	got := strings.Join(r.First.Graph.CycleNames(), " ")
	expect.True(t, strings.Contains(got, "sampler") && strings.Contains(got, "app"), "cycle %q", got)
	r = Explore(opt, build(true))
	expect.True(t, r.Deadlocks == 0 && r.Done != 0 && r.Exhausted, "watchdog: %+v", r)
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
	expect.True(t, r.Deadlocks != 0 && r.Exhausted, "%+v", r)
}

// TestNestedSuspension: the count must reach 0 before the target moves, and a
// suspension that is not undone is a deadlock.
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
		expect.True(t, (r.Deadlocks > 0) == (resumes < 2) && r.Faults <= 0 && r.Done != 0,
			"%d resumes: %+v\n%v", resumes, r, r.First)
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
	r := w.Run()
	expect.True(t, r.Outcome == Done, "%v", r.Fault)
}

package sched

import (
	"reflect"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

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
	must.True(t, all.Deadlocks != 0 && all.Faults != 0 && all.Done != 0 && all.Exhausted, "%+v", all)
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
		if found != nil && cmptest.Diff(ends, found) != "" {
			t.Errorf("%s: ends in %v, without pruning %v", name, found, ends)
		}
		expect.True(t, r.Deadlocks != 0 && r.Faults != 0 && r.Done != 0 && r.Exhausted &&
			r.Interleavings < all.Interleavings, "%s: %+v", name, r)
		t.Logf("%s: %d runs, %d pruned, %d states", name, r.Interleavings, r.Pruned, r.States)
		r.First = nil
		opt.Workers = 3 - max(opt.Workers, 1)
		again := Explore(opt, racers(opt.Prune == PruneObserved, nil))
		again.First = nil
		expect.True(t, reflect.DeepEqual(again, r), "%s: other workers: %+v, %+v", name, r, again)
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
			app := w.Go("app", func(a *Actor) {
				a.WaitUntil("sent",
					func() bool { return sent == 2 })
				a.Yield("end")
			})
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
		expect.True(t, cmptest.Diff(all, last) == "" && len(all) >= 24 && r.Deadlocks+r.Faults == 0 &&
			r.Exhausted, "prune %d: %d ends, %d without: %+v", prune, len(last), len(all), r)
	}
}

// An actor that keeps what it has read of another's local state must declare that. Then the counts of the cut
// exploration are those of all runs.
func TestReads(t *testing.T) {
	explore := func(prune Prune, declared bool) Report {
		return Explore(ExploreOptions{Prune: prune}, func(w *World) {
			secret := 0
			b := w.Go("b", func(a *Actor) {
				secret = a.Choose(2, "secret")
				a.Yield("show")
				secret = 0
				a.Rebase(1)
				a.Yield("end")
			})
			w.Go("a", func(a *Actor) {
				a.Yield("look")
				got := secret
				if declared {
					a.Reads(b)
				}
				a.Join(b)
				a.Yield("judge")
				w.Judge(uint64(got))
			})
			w.Go("c", func(a *Actor) { a.Join(b) }) // so that the schedule has a choice after b's end
		})
	}
	all, cut := explore(PruneNone, true), explore(PruneObserved, true)
	expect.Equal(t, all.Orders.All, float64(all.Interleavings), "runs")
	expect.Equal(t, cut.Orders, all.Orders, "orders")
	expect.Equal(t, len(cut.Results), len(all.Results), "results")
	cut = explore(PruneObserved, false)
	expect.True(t, len(cut.Results) < len(all.Results), "a value that was not declared is not lost: %+v", cut)
}

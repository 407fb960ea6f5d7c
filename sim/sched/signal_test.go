package sched

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

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
	expect.True(t, cmptest.Diff(map[string]bool{"start": true, "locked": true}, ran) == "",
		"handler ran at %v", ran)
	expect.Equal(t, r.Done, r.Interleavings, r)
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
	must.True(t, r.Deadlocks != 0 && r.Done != 0, "%+v", r)
	c := r.First.Graph.CycleNames()
	expect.True(t, cmptest.Diff([]string{"app", "heap"}, c) == "", "cycle %v", c)
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
	r := w.Run()
	expect.True(t, r.Outcome == Done, "%v", r.Fault)
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
	expect.True(t, r.Done == r.Interleavings && r.Done != 0, "%+v", r)
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
	expect.True(t, r.Done == r.Interleavings && r.Done != 0, "%+v", r)
}

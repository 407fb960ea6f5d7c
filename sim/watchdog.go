package sim

import "github.com/seedwalk/seedwalk/sim/sched"

// watch is the state that the sampler and the watchdog share, as in the product's
// profiler/host/watchdog_windows.c. The sampler sets asking before it calls the CLR. The
// watchdog sets taken before it resumes the thread.
type watch struct {
	asking  *Thread // the thread that the CLR walks now; nil: none
	taken   bool    // the watchdog has taken asking
	busy    bool    // the watchdog is about to resume the thread
	rescued bool    // the watchdog has ended the sampler's suspension
}

func (w *watch) begin(t *Thread) { w.asking = t }

// end reports whether the thread ran while it was walked. The sampler waits while the
// watchdog is busy, so that no thread is resumed twice.
func (w *watch) end(a *sched.Actor) (broken bool) {
	if broken = w.taken; broken {
		a.WaitUntil("the watchdog", func() bool { return !w.busy })
	}
	w.asking, w.taken, w.rescued = nil, false, broken
	return broken
}

// Watchdog starts the profiler's watchdog. The real watchdog has a time limit. This one
// acts only on a wait that would never end: the CLR waits for a lock that the suspended
// thread owns.
func (h *Host) Watchdog() {
	h.w.S.Go("watchdog", func(a *sched.Actor) {
		a.Watchdog()
		a.Daemon()
		for {
			a.WaitUntil("a thread to be held too long", h.tooLong)
			t := h.watch.asking.A
			h.watch.taken, h.watch.busy = true, true
			for t.Suspends() > 0 {
				a.ResumeThread(t)
			}
			h.Counts.Rescues++
			h.watch.busy = false
		}
	})
}

func (h *Host) tooLong() bool {
	l := h.w.CLR.Inverted
	return h.watch.asking != nil && l != nil && l.Owner() == h.watch.asking.A && l.Owner().Stopped()
}

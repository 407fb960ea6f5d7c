package sim

import "github.com/seedwalk/seedwalk/sim/sched"

// watch is what the sampler and the watchdog share: the words of the product's
// profiler/host/watchdog_windows.c. The sampler says whom it asks the CLR about; the
// watchdog takes that word from it before it resumes the thread.
type watch struct {
	asking  *Thread // whom the CLR is asked about, nil = nobody
	taken   bool    // by the watchdog
	busy    bool    // it is about to resume the thread
	rescued bool    // the sampler's suspension has been taken back
}

func (w *watch) begin(t *Thread) { w.asking = t }

// end reports whether the thread ran on while it was walked. While the watchdog is
// busy the sampler waits: nobody is resumed twice.
func (w *watch) end(a *sched.Actor) (broken bool) {
	if broken = w.taken; broken {
		a.WaitUntil("the watchdog", func() bool { return !w.busy })
	}
	w.asking, w.taken, w.rescued = nil, false, broken
	return broken
}

// Watchdog starts the profiler's watchdog. How long is too long is the real one's
// business: here nothing is too long but what would never end, a wait of the CLR's
// for a lock that the thread it looks at owns.
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

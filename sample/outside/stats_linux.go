package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// write sends the totals.
func (e *Engine) write() {
	s, p, w := &e.Stats, e.file.Stats(), e.Stream.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.Rounds}, {"probe_visits", s.Polls},
		{"probe_rests", s.Rests}, {"probe_timed", s.Timed}, {"probe_copied", s.Copied},
		{"probe_overruns", s.Overruns}, {"probe_outside", s.Outside},
		{"probe_changed", s.Changed}, {"probe_asked", s.Asked},
		{"probe_unsent", s.Unsent}, {"probe_deaf", s.IgnoresSignals}, {"probe_relayed", s.Relayed},
		{"probe_timer_refused", s.Refused}, {"probe_no_slot", s.NoSlot},
		{"probe_hidden", s.Hidden}, {"probe_unproven", s.Unproven}, {"probe_pending", s.Held},
		{"probe_late", s.Late}, {"probe_uncopied", s.Uncopied}, {"probe_unreadable", s.Unreadable},
		{"probe_foreign", s.Foreign}, {"probe_patched", s.Patched}, {"probe_cut", s.Cut},
		{"probe_both", s.Both}, {"probe_returns", e.Walker.Returns},
		{"probe_unbegun", e.Walker.SkippedHandlers},
		{"probe_signals", p.Signals}, {"probe_dropped", p.Dropped},
		{"probe_strangers", p.Strangers}, {"probe_timers", p.Timers}, {"probe_stopped", p.Stopped},
		{"probe_stuck", e.file.Stuck},
		{"probe_unnamed", e.Stream.Unnamed}, {"probe_busy_ns", s.Busy}, {"probe_armed", s.Armed},
		{"probe_calls", e.Kernel.Calls}, {"probe_delayed_ns", e.Delayed},
	} {
		w.Counter(c.key, c.value)
	}
	if e.Async != nil {
		for i, n := range e.Async.Stats {
			w.Counter("probe_"+sampler.AsyncReasons[i], n)
		}
	}
	e.writeClock()
	e.writeReads()
	e.events.WriteTotals()
	var n []uint64
	unsampled, young := uint64(0), e.Nano(time.Now().Add(-threads.ListEvery))
	for _, t := range e.Tasks {
		switch {
		case t.Samples > 0:
			n = append(n, t.Samples)
		case !t.Ended && t.Born < young && !e.Config.NoWall: // sleepers have no samples then
			unsampled++
		}
	}
	w.Counter("probe_unsampled", unsampled)
	s.Write(w, n)
}

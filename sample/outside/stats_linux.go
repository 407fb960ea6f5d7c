package outside

import "time"

// write sends the totals.
func (e *Engine) write() {
	s, p, w := &e.stats, e.file.Stats(), e.s.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.rounds}, {"probe_visits", s.visits}, {"probe_rests", s.rests}, {"probe_timed", s.timed},
		{"probe_overruns", s.overruns}, {"probe_outside", s.outside}, {"probe_changed", s.changed}, {"probe_asked", s.asked},
		{"probe_unsent", s.unsent}, {"probe_deaf", s.ignoresSignals}, {"probe_relayed", s.relayed}, {"probe_timer_refused", s.refused}, {"probe_no_slot", s.noSlot},
		{"probe_hidden", s.hidden}, {"probe_unproven", s.unproven}, {"probe_pending", s.held}, {"probe_late", s.late}, {"probe_uncopied", s.uncopied}, {"probe_unreadable", s.unreadable},
		{"probe_foreign", s.foreign}, {"probe_patched", s.patched}, {"probe_cut", s.cut}, {"probe_both", s.both}, {"probe_returns", e.w.returns}, {"probe_unbegun", e.w.skippedHandlers}, {"probe_signals", p.Signals}, {"probe_dropped", p.Dropped},
		{"probe_strangers", p.Strangers}, {"probe_timers", p.Timers}, {"probe_stopped", p.Stopped}, {"probe_stuck", e.file.Stuck},
		{"probe_unnamed", e.s.unnamed}, {"probe_busy_ns", s.busy}, {"probe_armed", s.armed}, {"probe_calls", e.kernel.calls},
	} {
		w.Stats(c.key, c.value)
	}
	e.writeClock()
	e.writeReads()
	e.writeEvents()
	var n []uint64
	unsampled, young := uint64(0), time.Now().Add(-listEvery).UnixNano()
	for _, t := range e.tasks {
		switch {
		case t.samples > 0:
			n = append(n, t.samples)
		case !t.ended && t.born < young && !e.cfg.NoWall: // without wall time a thread that sleeps has none
			unsampled++
		}
	}
	w.Stats("probe_unsampled", unsampled)
	s.write(w, n)
}

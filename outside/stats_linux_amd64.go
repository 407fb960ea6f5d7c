package outside

import (
	"sort"

	"github.com/seedwalk/seedwalk/wire"
)

// stats are the counters of a recording.
type stats struct {
	rounds, visits, rests      uint64
	timed, overruns            uint64 // samples of processor time
	outside, changed           uint64 // samples of blocked threads; those that ran meanwhile
	asked, unsent, deaf        uint64 // signals
	refused, noSlot, hidden    uint64 // threads without a timer, without a slot, whose files are not shown
	unproven, late, unreadable uint64 // samples not walked
	foreign, patched, cut      uint64
	handler                    wire.Histogram
	busy, armed                uint64   // nanoseconds of processor time of armed threads; such threads
	perThread                  []uint64 // samples of threads that have ended
}

func (s *stats) ended(t *task) {
	if t.samples > 0 && len(s.perThread) < 1<<16 {
		s.perThread = append(s.perThread, t.samples)
	}
}

// write sends the totals.
func (e *Engine) write() {
	s, p, w := &e.stats, e.file.Stats(), e.s.out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.rounds}, {"probe_visits", s.visits}, {"probe_rests", s.rests}, {"probe_timed", s.timed},
		{"probe_overruns", s.overruns}, {"probe_outside", s.outside}, {"probe_changed", s.changed}, {"probe_asked", s.asked},
		{"probe_unsent", s.unsent}, {"probe_deaf", s.deaf}, {"probe_timer_refused", s.refused}, {"probe_no_slot", s.noSlot},
		{"probe_hidden", s.hidden}, {"probe_unproven", s.unproven}, {"probe_late", s.late}, {"probe_unreadable", s.unreadable},
		{"probe_foreign", s.foreign}, {"probe_patched", s.patched}, {"probe_cut", s.cut}, {"probe_signals", p.Signals}, {"probe_dropped", p.Dropped},
		{"probe_strangers", p.Strangers}, {"probe_timers", p.Timers}, {"probe_stopped", p.Stopped}, {"probe_stuck", e.file.Stuck},
		{"probe_unnamed", e.s.unnamed}, {"probe_busy_ns", s.busy}, {"probe_armed", s.armed},
	} {
		w.Stats(c.key, c.value)
	}
	s.handler.Write(w, "probe_handler_ns")
	e.writeEvents()
	n := append([]uint64(nil), s.perThread...)
	for _, t := range e.tasks {
		if t.samples > 0 {
			n = append(n, t.samples)
		}
	}
	sort.Slice(n, func(i, j int) bool { return n[i] < n[j] })
	if len(n) > 0 {
		w.Stats("probe_thread_min", n[0])
		w.Stats("probe_thread_median", n[len(n)/2])
		w.Stats("probe_thread_max", n[len(n)-1])
	}
}

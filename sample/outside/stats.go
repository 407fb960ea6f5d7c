package outside

import (
	"sort"

	"github.com/seedwalk/seedwalk/report/wire"
)

// stats are the counters of a recording.
type stats struct {
	rounds, visits, rests         uint64
	timed, overruns               uint64 // samples of processor time
	outside, changed              uint64 // samples of blocked threads; those that ran meanwhile
	asked, unsent, ignoresSignals uint64 // signals
	relayed                       uint64 // of those asked: by the runtime's own signal
	refused, noSlot, hidden       uint64 // threads without a timer, without a slot, whose files are not shown
	unproven                      uint64 // samples that end at code of a runtime that could not be read
	held                          uint64 // samples that were walked later
	late, unreadable              uint64 // samples not walked
	uncopied                      uint64 // of rings: the kernel has not copied all of the stack
	foreign, patched, cut         uint64
	both                          uint64 // on an alternate stack, and the thread's own below it
	handler                       wire.Histogram
	busy, armed                   uint64   // nanoseconds of processor time of armed threads; such threads
	perThread                     []uint64 // samples of threads that have ended
}

func (s *stats) ended(samples uint64) {
	if samples > 0 && len(s.perThread) < 1<<16 {
		s.perThread = append(s.perThread, samples)
	}
}

// write sends the spread of samples over threads; alive are the counts of those
// that have not ended.
func (s *stats) write(w *wire.Writer, alive []uint64) {
	s.handler.Write(w, "probe_handler_ns")
	n := append(alive, s.perThread...)
	sort.Slice(n, func(i, j int) bool { return n[i] < n[j] })
	if len(n) > 0 {
		w.Stats("probe_thread_min", n[0])
		w.Stats("probe_thread_median", n[len(n)/2])
		w.Stats("probe_thread_max", n[len(n)-1])
	}
}

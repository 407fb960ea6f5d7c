package sampler

import (
	"slices"

	"github.com/seedwalk/seedwalk/report/wire"
)

// stats are the counters of a recording.
type stats struct {
	Rounds, Polls, Rests          uint64
	Timed, Overruns               uint64 // samples of CPU time
	Copied                        uint64 // of Timed: the kernel has copied the stack
	Outside, Changed              uint64 // samples of blocked threads; threads that ran meanwhile
	Asked, Unsent, IgnoresSignals uint64 // signals
	Relayed                       uint64 // the part of Asked sent with the runtime's own signal
	Refused, NoSlot, Hidden       uint64 // threads without a timer, without a slot, with unreadable files
	Unproven                      uint64 // samples that end in code of an unreadable runtime
	Held                          uint64 // samples that were walked later
	Late, Unreadable              uint64 // samples lost: the process has ended, the stack cannot be read
	Uncopied                      uint64 // from rings: the kernel has not copied all of the stack
	Foreign, Patched, Cut         uint64
	RestsRead, RestsSkipped       uint64 // stacks with callers beyond the copy, or no time to read them
	Both                          uint64 // on an alternate stack, with the thread's own stack below it
	Handler                       wire.Histogram
	Busy, Armed                   uint64   // CPU time of armed threads, nanoseconds; their number
	perThread                     []uint64 // samples of ended threads
}

func (s *stats) Ended(samples uint64) {
	if samples > 0 && len(s.perThread) < 1<<16 {
		s.perThread = append(s.perThread, samples)
	}
}

// Write sends the distribution of samples over threads, and the number of rests; alive are the counts of live
// threads.
func (s *stats) Write(w *wire.Writer, alive []uint64) {
	s.Handler.Write(w, "probe_handler_ns")
	w.Counter("probe_callers_read", s.RestsRead)
	w.Counter("probe_callers_skipped", s.RestsSkipped)
	n := append(alive, s.perThread...)
	slices.Sort(n)
	if len(n) > 0 {
		w.Counter("probe_thread_min", n[0])
		w.Counter("probe_thread_median", n[len(n)/2])
		w.Counter("probe_thread_max", n[len(n)-1])
	}
}

// LeastMissed is the smallest number of missing samples of a thread that is more than chance.
const LeastMissed = 10

// NoRoom returns the part of a thread's CPU time without samples, in nanoseconds, that belongs to
// samples for which a ring had no room. This time must not be distributed over the existing samples, which
// show what the thread did at other times. dropped is the number of such samples so far, of all threads and
// of waits too. Each counts once. Which thread lost them is unknown: the first one with missing samples gets
// them.
func (e *Base) NoRoom(missing, dropped uint64) uint64 {
	if missing < LeastMissed*uint64(e.Period) {
		return 0
	}
	all := dropped * uint64(e.Period)
	n := min(missing, all-min(e.noRoom, all))
	e.noRoom += n
	return n
}

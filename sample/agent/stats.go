package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

// stats holds the counters of a run. They are sent every second and at the end, so that they
// survive a crash of the target.
type stats struct {
	rounds, suspended, refused, retries, gone uint64
	outdated                                  uint64 // samples whose modules had changed before they could be walked again
	window, suspend                           wire.Histogram
	sent                                      time.Time
}

func (s *stats) round(o *snapshot.Outcome) {
	s.rounds++
	s.retries += uint64(o.Retries)
	if o.Result.Failed() {
		s.refused++
		return
	}
	s.suspended++
	s.window.Add(uint64(o.SuspendedNS + o.SuspendNS))
	s.suspend.Add(uint64(o.SuspendNS))
}

// thread counts a sample of one thread that was suspended alone.
func (s *stats) thread(o *snapshot.ThreadOutcome) {
	s.suspended += uint64(o.Tries)
	s.retries += uint64(max(o.Tries-1, 0))
	for i := range o.Each[:o.Tries] {
		s.window.Add(uint64(o.Each[i].SuspendedNS))
		if o.Each[i].Captured {
			s.suspend.Add(uint64(o.Each[i].ContextNS))
		}
	}
}

func (s *stats) due() bool { return time.Since(s.sent) > time.Second }

func (s *stats) write(w *wire.Writer) {
	s.sent = time.Now()
	w.Stats(wire.StatTicks, s.rounds)
	w.Stats(wire.StatSuspensions, s.suspended)
	w.Stats(wire.StatRetries, s.retries)
	w.Stats("suspensions_refused", s.refused)
	w.Stats("threads_gone", s.gone)
	w.Stats("samples_outdated", s.outdated)
	s.window.Write(w, wire.StatSuspended)
	s.suspend.Write(w, "suspend_call_ns")
}

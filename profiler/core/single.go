package core

import (
	"fmt"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/snapshot"
	"github.com/seedwalk/seedwalk/wire"
)

// single suspends and samples one thread after the other. A stack is merged
// before the next thread is suspended.
type single struct {
	host    ThreadHost
	seeder  *snapshot.SeederAMD64
	sampler *snapshot.ThreadSampler

	context, walk, report     wire.Histogram // nanoseconds of a try
	denied, partial, unsolved uint64
}

func (s *single) prime(threads []clr.Thread) bool { return s.sampler.Prime(threads) }

func (s *single) tables(a *Agent, _ *module.Table) {
	special := s.host.Specials()
	s.seeder.SetSpecials(special)
	a.merger.SetSpecials(special)
}

func (s *single) merging(*Agent, *clr.Capture) {}

func (s *single) round(a *Agent, threads []clr.Thread) string {
	a.stats.rounds++
	for i := range threads {
		if a.host.Stopping() {
			return ""
		}
		o := s.sampler.Sample(threads[i])
		s.count(a, &o)
		switch o.Advice {
		case snapshot.AdviceRefused:
			return "the runtime refuses to walk: " + s.sampler.Capture.Result.String()
		case snapshot.AdviceGone, snapshot.AdviceDenied, snapshot.AdviceNotPrimed:
			continue
		}
		a.sample(&s.sampler.Capture)
	}
	return ""
}

func (s *single) count(a *Agent, o *snapshot.ThreadOutcome) {
	switch o.Advice {
	case snapshot.AdviceGone:
		a.stats.gone++
		return
	case snapshot.AdviceDenied:
		s.denied++
		return
	case snapshot.AdvicePartial:
		s.partial++
	case snapshot.AdviceRetry:
		s.unsolved++
	}
	a.stats.thread(o)
	s.context.Add(uint64(o.ContextNS))
	s.walk.Add(uint64(o.SeedNS))
	s.report.Add(uint64(o.SnapshotNS))
}

// farewell says how long the parts of a suspension were.
func (s *single) farewell() string {
	if s.context.Count() == 0 {
		return ""
	}
	return fmt.Sprintf("µs p50/p99/max: context %s, our walk %s, DoStackSnapshot %s", times(&s.context), times(&s.walk), times(&s.report))
}

func times(h *wire.Histogram) string {
	return fmt.Sprintf("%d/%d/%d", h.Quantile(0.5)/1000, h.Quantile(0.99)/1000, h.Max()/1000)
}

func (s *single) write(w *wire.Writer) {
	w.Stats("threads_denied", s.denied)
	w.Stats("reports_partial", s.partial)
	w.Stats("reports_refused", s.unsolved)
	s.context.Write(w, "context_ns")
	s.walk.Write(w, "seed_ns")
	s.report.Write(w, "snapshot_ns")
}

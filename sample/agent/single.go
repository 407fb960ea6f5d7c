package agent

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// single suspends and samples one thread after the other. A stack is merged
// before the next thread is suspended.
type single struct {
	host    ThreadHost
	seeder  *snapshot.WalkSeeder
	sampler *snapshot.ThreadSampler
	garbage *quiet.Garbage
	methods *managed.Tables // nil: none

	context, walk, report     wire.Histogram // time of a try, nanoseconds
	tries                     tries
	denied, partial, unsolved uint64
	broken                    uint64 // samples of threads that resumed during the walk
	stale                     uint64 // suspensions with an outdated module table
}

// answer is the result of one suspension.
type answer struct {
	verdict seed.Verdict
	result  clr.HRESULT
}

// tries counts suspensions by answer. It is written after Resume.
type tries map[answer]uint64

func (n tries) write(w *wire.Writer) {
	for a, count := range n {
		w.Stats(wire.StatTries+a.verdict.String()+"/"+a.result.String(), count)
	}
}

func (s *single) prime(threads []clr.Thread) bool { return s.sampler.Prime(threads) }

func (s *single) tables(a *Agent, _ *module.Table) {
	s.sampler.Loads = a.tables.loads
	special := s.host.Specials()
	s.seeder.SetSpecials(special)
	a.merger.SetSpecials(special)
}

// merging copies the unwind data of the reported methods. The seeds of later samples are checked by them.
func (s *single) merging(_ *Agent, c *clr.Capture) {
	if s.methods != nil {
		s.methods.Learn(c.Frames)
	}
}

func (s *single) round(a *Agent, threads []clr.Thread) string {
	a.stats.rounds++
	s.garbage.Collect()
	for i := range threads {
		if a.host.Stopping() {
			return ""
		}
		o := s.sample(a, threads[i])
		switch o.Advice {
		case snapshot.AdviceRefused:
			return "the runtime refuses to walk its threads: " + s.sampler.Capture.Result.String()
		case snapshot.AdviceGone, snapshot.AdviceDenied, snapshot.AdviceNotPrimed,
			snapshot.AdviceStale, snapshot.AdviceLost:
			continue
		}
		a.sample(&s.sampler.Capture)
	}
	return ""
}

// maxStale bounds how often a sample is repeated because modules changed between the build
// of the table and the suspension.
const maxStale = 4

// sample captures the stack of t with a module table that was current at that moment.
func (s *single) sample(a *Agent, t clr.Thread) snapshot.ThreadOutcome {
	for n := 0; ; n++ {
		o := s.sampler.Sample(t)
		s.count(a, &o)
		if o.Advice != snapshot.AdviceStale || n == maxStale {
			return o
		}
		a.tables.refresh(a, false)
	}
}

func (s *single) count(a *Agent, o *snapshot.ThreadOutcome) {
	s.suspensions(a, o)
	switch o.Advice {
	case snapshot.AdviceGone:
		a.stats.gone++
		return
	case snapshot.AdviceDenied:
		s.denied++
		return
	case snapshot.AdviceLost:
		s.broken++
		return
	case snapshot.AdvicePartial:
		s.partial++
	case snapshot.AdviceRetry:
		s.unsolved++
	case snapshot.AdviceStale:
		s.stale++
	}
}

// suspensions counts the tries of one sample, successful or not.
func (s *single) suspensions(a *Agent, o *snapshot.ThreadOutcome) {
	a.stats.thread(o)
	for i := range o.Each[:o.Tries] {
		try := &o.Each[i]
		if !try.Captured {
			continue
		}
		s.tries[answer{try.Verdict, try.Result}]++
		s.context.Add(uint64(try.ContextNS))
		s.walk.Add(uint64(try.SeedNS))
		s.report.Add(uint64(try.SnapshotNS))
	}
}

// Held is a host that counts suspensions of threads that were already suspended. Those
// threads stay suspended.
type Held interface{ HeldByOthers() uint64 }

func (s *single) write(w *wire.Writer) {
	if h, ok := s.host.(Held); ok {
		w.Stats(wire.StatHeld, h.HeldByOthers())
	}
	w.Stats(wire.StatDenied, s.denied)
	w.Stats("reports_partial", s.partial)
	w.Stats("reports_refused", s.unsolved)
	w.Stats("suspensions_stale", s.stale)
	w.Stats(wire.StatLost, s.broken)
	s.tries.write(w)
	s.context.Write(w, wire.StatContext)
	s.walk.Write(w, wire.StatWalk)
	s.report.Write(w, wire.StatSnapshot)
}

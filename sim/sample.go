package sim

import (
	"fmt"
	"sync"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/unwind"
)

// tools holds the walkers and mergers of a sampler. They are large. They do not belong
// to a world, so that a million worlds can share a few.
type tools struct {
	h   *Host
	of  [len(context.Arches) + 1]kit // by context.Arch
	out [frameCount]merge.Frame
}

// kit is the part for one architecture.
type kit struct {
	walker unwind.Walker
	seeder *snapshot.WalkSeeder
	merger *merge.Merger
}

// FunctionFromIP implements merge.Functions for the current world.
func (t *tools) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return t.h.FunctionFromIP(ip)
}

var toolbox = sync.Pool{New: func() any {
	t := new(tools)
	for _, a := range context.Arches {
		w := managed.NewWalker(a)
		t.of[a] = kit{w, snapshot.NewSeeder(w, nil), merge.New(w, t)}
	}
	return t
}}

// Tally counts what became of a world's samples.
type Tally struct {
	Samples, Complete, Native, Gaps, Gone, Frames int

	Unreported int // frames of dynamic or hidden methods among managed code
	Doubtful   int // frames found by a guess that nothing confirmed
	Seeds      int // seeds found and given to the CLR
	Redirected int // seeds of threads that a collection redirected meanwhile
	Skipped    int // rounds and samples that could not be taken
	ByGap      [merge.GapCount]int
	Verdicts   [seed.VerdictCount]int
}

// Add adds o's counts.
func (t *Tally) Add(o *Tally) {
	t.Samples += o.Samples
	t.Complete += o.Complete
	t.Native += o.Native
	t.Gaps += o.Gaps
	t.Gone += o.Gone
	t.Frames += o.Frames
	t.Unreported += o.Unreported
	t.Doubtful += o.Doubtful
	t.Seeds += o.Seeds
	t.Redirected += o.Redirected
	t.Skipped += o.Skipped
	for i, n := range o.ByGap {
		t.ByGap[i] += n
	}
	for i, n := range o.Verdicts {
		t.Verdicts[i] += n
	}
}

// SampleAll runs the product's sampler for n rounds over all threads that the profiler
// knows. It compares each merged stack with the truth, unless Host.Judge is set, which
// gets the captures instead. A wrong stack is a fault of the world (A.Fault).
func (h *Host) SampleAll(n int) Tally {
	b := toolbox.Get().(*tools)
	defer toolbox.Put(b)
	s := &sampling{h: h, tools: b}
	s.use(h.w)
	if h.w.Variant.Windows() {
		s.threads(n)
	} else {
		s.rounds(n)
	}
	if h.Counts.Suspends != h.Counts.Resumes {
		h.A.Fault("%d suspensions, %d resumes", h.Counts.Suspends, h.Counts.Resumes)
	}
	return s.tally
}

// sampling is the state of one SampleAll.
type sampling struct {
	h     *Host
	tools *tools
	merge func(c *clr.Capture, out []merge.Frame) merge.Result
	seed  snapshot.Seeder
	tally Tally

	learn func(c *clr.Capture)
}

// maxWait bounds the attempts to prime the CLR before the first round.
const maxWait = 8

// threads samples one thread at a time.
func (s *sampling) threads(n int) {
	ts := snapshot.NewThreads(s.h, s.seed)
	ts.Between = s.learn
	for range maxWait {
		if ts.Prime(s.h.Known()) {
			break
		}
		s.h.Pause(0)
	}
	s.h.Primed = true
	for range n {
		s.rest()
		for _, t := range s.h.Known() {
			o := ts.Sample(t)
			if o.Advice == snapshot.AdviceNotPrimed {
				s.tally.Skipped++
				continue
			}
			s.judge(0, &ts.Capture, o.Advice)
		}
	}
}

// rest lets other threads run between two rounds.
func (s *sampling) rest() {
	if s.h.Ready != nil {
		s.h.A.WaitUntil("the moment to sample", s.h.Ready)
	}
	for range s.h.Interval {
		s.h.Pause(0)
	}
}

// rounds samples all threads in a suspended runtime.
func (s *sampling) rounds(n int) {
	sp := snapshot.New(s.h, slotCount)
	for range n {
		s.rest()
		o := sp.Round(s.h.Known())
		if o.Captures == 0 {
			s.tally.Skipped++
			s.h.Pause(0)
		}
		for i := range o.Captures {
			c := &sp.Captures[i]
			advice := snapshot.AdviceGone
			if c.Status == clr.Captured {
				advice = snapshot.AdviceComplete
			}
			s.judge(i, c, advice)
		}
	}
}

// fingerprint hashes a merged stack.
func fingerprint(out []merge.Frame, res *merge.Result) uint64 {
	const prime = 1099511628211 // FNV's
	h := uint64(res.Verdict)<<8 | uint64(res.Gap)
	for i := range out {
		f := &out[i]
		for _, v := range [...]uint64{uint64(f.Kind), uint64(f.Trust), f.IP, f.SP} {
			h = (h ^ v) * prime
		}
	}
	return h
}

// judge merges one capture and compares it with the truth.
func (s *sampling) judge(slot int, c *clr.Capture, advice snapshot.Advice) {
	s.tally.Samples++
	if c.Loading {
		s.h.Counts.Loading++
	}
	if c.Status != clr.Captured || c.Broken {
		s.tally.Gone++
		return
	}
	if s.h.Judge != nil {
		s.h.Judge(c, s.h.Truth[slot])
		return
	}
	res := s.merge(c, s.tools.out[:])
	out := s.tools.out[:res.N]
	s.tally.Frames += res.N
	n, err := s.h.Check(s.h.Truth[slot], out, &res)
	if err == nil {
		err = s.seeded(slot, c, res.Verdict)
	}
	if err == nil && n != 0 && s.h.w.CodeTables {
		err = fmt.Errorf("%d frames are left out that the runtime's tables know", n)
	}
	if err != nil {
		s.h.A.Fault("a wrong stack (%v, %v, %v): %v%s", res.Verdict, c.Result, advice, err,
			s.h.story(s.h.Truth[slot], out))
	}
	s.h.w.S.Judge(fingerprint(out, &res))
	s.tally.Unreported += n
	s.tally.Doubtful += res.Doubtful
	s.tally.ByGap[res.Gap]++
	s.tally.Verdicts[res.Verdict]++
	switch {
	case !res.Complete():
		s.tally.Gaps++
	case res.Managed == 0:
		s.tally.Native++
	default:
		s.tally.Complete++
	}
}

// seeded compares the seed that the CLR was given with the truth.
func (s *sampling) seeded(slot int, c *clr.Capture, v seed.Verdict) error {
	if !c.Seeded {
		return nil
	}
	s.tally.Seeds++
	if v == seed.NotNeeded {
		v = seed.Found // the thread was redirected: what was captured is the seed
		s.tally.Redirected++
	}
	st := s.h.seed(c)
	return s.h.CheckSeed(s.h.Truth[slot], v, &st)
}

// use takes the tools of w's architecture.
func (s *sampling) use(w *World) {
	t := s.tools
	t.h = w.Host
	k := &t.of[machine.Arch(w.Arch)]
	k.walker.SetTable(w.Kit.Table)
	k.seeder.SetSpecials(w.Specials)
	s.seed = k.seeder
	s.learn = k.seeder.Learn
	k.seeder.SetCode(nil)
	switch {
	case w.SeedTables:
		k.seeder.SetMethods(tables{w})
	case w.SeedLearns:
		k.seeder.SetMethods(&learner{tables: tables{w}, known: map[uint64]bool{}})
	default:
		k.seeder.SetMethods(nil)
		k.seeder.SetCode(code{w.Kit})
	}
	m := k.merger
	if w.CodeTables && w.Arch == image.AMD64 {
		m = merge.New(k.walker, t) // what it learns of frames is of this world
		m.SetManaged(tables{w})
	}
	m.SetSpecials(w.Specials)
	s.merge = m.Merge
	if l := s.h.Library; l != nil {
		s.seed, s.merge = l, l.Merge
	}
	if s.h.Wrap != nil {
		s.seed = s.h.Wrap(s.seed)
		if l, ok := s.seed.(interface{ Learn(c *clr.Capture) }); ok {
			s.learn = l.Learn
		}
	}
}

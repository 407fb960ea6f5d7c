package sim

import (
	"sync"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/snapshot"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// tools are what a sampler walks and merges with. They are large and do not
// belong to a world, so that a million worlds can share a few.
type tools struct {
	h          *Host
	amd64      *amd64.Unwinder
	arm64      *arm64.Unwinder
	seedAMD64  *snapshot.SeederAMD64
	seedARM64  *snapshot.SeederARM64
	mergeAMD64 *merge.Merger
	mergeARM64 *merge.Merger
	out        [frameCount]merge.Frame
}

// FunctionFromIP implements merge.Functions for the world of the day.
func (t *tools) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return t.h.FunctionFromIP(ip)
}

var toolbox = sync.Pool{New: func() any {
	t := &tools{amd64: amd64.New(), arm64: arm64.New()}
	t.seedAMD64, t.seedARM64 = snapshot.NewSeederAMD64(t.amd64, nil), snapshot.NewSeederARM64(t.arm64, nil)
	t.mergeAMD64, t.mergeARM64 = merge.New(t.amd64, t), merge.NewARM64(t.arm64, t)
	return t
}}

// Tally counts what became of a world's samples.
type Tally struct {
	Samples, Complete, Native, Gaps, Gone, Frames int
}

// SampleAll is the product's sampler: n rounds over all threads the profiler
// knows, each merged stack held against the truth. What is wrong is a fault of
// the world.
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

// sampling is one sampler's work.
type sampling struct {
	h     *Host
	tools *tools
	merge func(c *clr.Capture, out []merge.Frame) merge.Result
	seed  snapshot.Seeder
	tally Tally
}

// maxWait bounds how often a sampler looks for a thread to walk.
const maxWait = 8

// threads samples one thread at a time.
func (s *sampling) threads(n int) {
	ts := snapshot.NewThreads(s.h, s.seed)
	for range maxWait {
		if ts.Prime(s.h.Known()) {
			break
		}
		s.h.Pause(0)
	}
	for range n {
		for _, t := range s.h.Known() {
			o := ts.Sample(t)
			s.judge(0, &ts.Capture, o.Advice)
		}
	}
}

// rounds samples all threads in a suspended runtime.
func (s *sampling) rounds(n int) {
	sp := snapshot.New(s.h, slotCount)
	for range n {
		o := sp.Round(s.h.Known())
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

// judge merges one capture and holds it against the truth.
func (s *sampling) judge(slot int, c *clr.Capture, advice snapshot.Advice) {
	s.tally.Samples++
	if c.Status != clr.Captured {
		s.tally.Gone++
		return
	}
	res := s.merge(c, s.tools.out[:])
	out := s.tools.out[:res.N]
	s.tally.Frames += res.N
	if err := s.h.Check(s.h.Truth[slot], out, &res); err != nil {
		s.h.A.Fault("a wrong stack (%v, %v, %v): %v", res.Verdict, c.Result, advice, err)
	}
	switch {
	case !res.Complete():
		s.tally.Gaps++
	case res.Managed == 0:
		s.tally.Native++
	default:
		s.tally.Complete++
	}
}

// use takes the tools of w's architecture.
func (s *sampling) use(w *World) {
	t := s.tools
	t.h = w.Host
	m := t.mergeAMD64
	if w.Arch == image.ARM64 {
		m = t.mergeARM64
		t.arm64.SetTable(w.Kit.Table)
		t.seedARM64.SetSpecials(w.Specials)
		s.seed = t.seedARM64
	} else {
		t.amd64.SetTable(w.Kit.Table)
		t.seedAMD64.SetSpecials(w.Specials)
		s.seed = t.seedAMD64
	}
	m.SetTable(w.Kit.Table)
	m.SetSpecials(w.Specials)
	s.merge = m.Merge
}

package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Info is what the recorder knows and the streams do not contain.
type Info struct {
	Command  []string       `json:"command,omitempty"`
	RateHz   float64        `json:"rate_hz,omitempty"` // requested samples per second and thread
	Start    time.Time      `json:"start"`
	AtFirst  bool           `json:"at_first,omitempty"` // the recording's time begins with the first sample
	Events   []export.Event `json:"events,omitempty"`   // requested events of the runtime
	Way      string         `json:"way,omitempty"`      // how samples were taken
	WayWhy   string         `json:"way_why,omitempty"`
	Empty    string         `json:"empty,omitempty"`     // why there are no samples, "" if there are some
	ExitNote string         `json:"exit_note,omitempty"` // how the command ended, "" if unremarkable
	Notes    []string       `json:"notes,omitempty"`     // for the user
}

// builder makes one profile of all processes.
type builder struct {
	p       *export.Profile
	namer   Namer
	several bool
	modules int32   // index of the current process's first module
	frames  int32   // index of its first frame
	root    []int32 // frame of the current process, if there are several
	roots   map[processKey]int32
	threads map[threadKey]int // index of a thread in the profile
	hold    wire.Histogram
	handler wire.Histogram
	parts   [len(parts)]wire.Histogram
	tries   map[string]int64
	end     int64 // unix nanoseconds of the last sample or event
}

// processKey identifies a process. Its samples may come in several streams, one after the other: first of
// another recording, then of this one.
type processKey struct {
	pid  int
	name string
}

func (p *Process) id() processKey { return processKey{p.PID, p.Name} }

// threadKey identifies a thread.
type threadKey struct {
	processKey
	tid uint64
}

func newBuilder(all []*Process) *builder {
	return &builder{p: &export.Profile{Stats: export.Stats{Gaps: map[string]int64{}}},
		tries: map[string]int64{},
		roots: map[processKey]int32{}, threads: map[threadKey]int{},
		several: slices.ContainsFunc(all, func(p *Process) bool { return p.id() != all[0].id() })}
}

// Build makes one profile of all messages that the processes have sent so far. It may be called
// during a recording. With several processes, each has a root frame. A nil Namer names native
// frames module+0xoffset.
func Build(info *Info, all []*Process, n Namer) *export.Profile {
	b := newBuilder(all)
	b.namer, b.p.Command, b.p.RateHz, b.p.Start = n, info.Command, info.RateHz, info.Start
	if len(all) > 0 && !b.several {
		b.p.PID, b.p.Resource = all[0].PID, map[string]string{"process.executable.name": all[0].Name}
	}
	for i, p := range all {
		if i == 0 {
			b.header(p, info.AtFirst)
		}
		b.process(p)
		b.events(p, info.Events)
	}
	b.finish(info)
	return b.p
}

func (b *builder) header(p *Process, atFirst bool) {
	if p.hello == nil {
		return
	}
	b.p.Runtime = p.hello.Runtime
	if p.hello.StartUnixNano > 0 {
		b.p.Start = time.Unix(0, p.hello.StartUnixNano)
	}
	if atFirst && p.first > 0 {
		b.p.Start = time.Unix(0, p.first)
	}
	if p.hello.RateMilliHz > 0 {
		b.p.RateHz = float64(p.hello.RateMilliHz) / 1000
	}
}

func (b *builder) process(p *Process) {
	b.modules, b.frames = int32(len(b.p.Modules)), int32(len(b.p.Frames))
	for i := range p.modules {
		m := &p.modules[i]
		b.p.Modules = append(b.p.Modules,
			export.Module{Path: m.Path, BuildID: m.BuildID, Start: m.Start, End: m.End})
	}
	single := p.singleFile()
	for i := range p.frames {
		b.p.Frames = append(b.p.Frames, b.frame(p, &p.frames[i], single))
	}
	first := len(b.p.Stacks)
	b.rootOf(p)
	b.stacks(p)
	b.addDropped(p, first)
	b.sampledNote(p, first)
	b.account(p, first)
	b.clockOf(p)
	b.waits(p, first)
	b.moments(p, first)
	if !p.KeepSuspension {
		b.stopped(first)
	}
	b.stats(p)
}

// rootOf makes the root frame of a process, if there are several.
func (b *builder) rootOf(p *Process) {
	if !b.several {
		return
	}
	root, known := b.roots[p.id()]
	if !known {
		root = int32(len(b.p.Frames))
		b.roots[p.id()] = root
		b.p.Frames = append(b.p.Frames,
			export.Frame{Name: fmt.Sprintf("process %s (%d)", p.Name, p.PID),
				ModuleIndex: -1, Class: export.ClassNative})
	}
	b.root = []int32{root}
}

// stacks adds a process's stacks, under its root frame.
func (b *builder) stacks(p *Process) {
	for i := range p.stacks {
		s := &p.stacks[i]
		t := intern.At(b.threads, &b.p.Threads, threadKey{p.id(), s.tid},
			func() export.Thread { return export.Thread{ID: int(s.tid), Name: b.threadName(p, s.tid)} })
		out := export.Stack{Thread: t, Frames: make([]int32, 0, len(s.frames)+1), Count: s.count,
			WallNanos: int64(s.wall), CPUNanos: int64(s.cpu), CPUCount: s.cpuCount, Complete: s.gap == 0}
		s.describe(&out)
		for _, f := range s.frames {
			out.Frames = append(out.Frames, b.frames+f)
		}
		out.Frames = append(out.Frames, b.root...)
		if s.gap != 0 {
			out.Gap = p.gapName(s.gap)
		}
		b.p.Stacks = append(b.p.Stacks, out)
	}
}

func (b *builder) threadName(p *Process, tid uint64) string {
	name := p.threads[tid]
	if name == "" && tid == uint64(p.PID) {
		name = "main"
	}
	if b.several {
		return fmt.Sprintf("%s (%d) %s", p.Name, p.PID, name)
	}
	return name
}

func (b *builder) stats(p *Process) {
	s := &b.p.Stats
	s.Samples += p.samples
	s.Complete += p.complete
	s.Lost += p.overflow + int64(p.counters[wire.StatLost])
	s.Retries += int64(p.counters[wire.StatRetries])
	for code, n := range p.gaps {
		s.Gaps[p.gapName(code)] += n
	}
	b.hold.Merge(&p.suspended)
	for i := range b.parts {
		b.parts[i].Merge(&p.parts[i])
	}
	for answer, n := range p.tries {
		b.tries[answer] += int64(n)
	}
	s.Notes = append(s.Notes, p.notes...)
	if line := p.end(); line != "" {
		s.Notes = append(s.Notes, line)
	}
	if p.overflow > 0 {
		s.Notes = append(s.Notes,
			fmt.Sprintf("process %d has more than %d different stacks: %d samples were left out",
				p.PID, maxStacks, p.overflow))
	}
	if n := p.counters[wire.StatDenied]; n > 0 {
		s.Notes = append(s.Notes,
			fmt.Sprintf("process %d: %s not taken: the system refused to suspend the thread",
				p.PID, counted(int64(n), "sample")))
	}
	if n := p.counters[wire.StatHeld]; n > 0 {
		s.Notes = append(s.Notes,
			fmt.Sprintf("process %d: %s of threads that a collection or a debugger had already suspended",
				p.PID, counted(int64(n), "sample")))
	}
	b.sampled(p)
	b.end = max(b.end, p.last)
}

func quantiles(h *wire.Histogram) export.Quantiles {
	return export.Quantiles{Count: int64(h.Count()), P50: time.Duration(h.Quantile(0.5)),
		P99: time.Duration(h.Quantile(0.99)), Max: time.Duration(h.Max())}
}

func (b *builder) finish(info *Info) {
	s := &b.p.Stats
	s.Suspended = quantiles(&b.hold)
	s.Way, s.WayWhy, s.Empty, s.ExitNote = info.Way, info.WayWhy, info.Empty, info.ExitNote
	if s.Counters != nil && b.handler.Count() > 0 {
		s.Counters["still_p50_ns"], s.Counters["still_p99_ns"] = int64(b.handler.Quantile(0.5)),
			int64(b.handler.Quantile(0.99))
	}
	for i := range b.parts {
		if b.parts[i].Count() > 0 {
			s.Parts = append(s.Parts, export.Part{Name: parts[i].name, Quantiles: quantiles(&b.parts[i])})
		}
	}
	for answer, n := range b.tries {
		verdict, result, _ := strings.Cut(answer, "/")
		s.Tries = append(s.Tries, export.Tries{Verdict: verdict, Result: result, Count: n})
	}
	slices.SortFunc(s.Tries, func(a, b export.Tries) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Verdict, b.Verdict),
			cmp.Compare(a.Result, b.Result))
	})
	if b.end > 0 {
		b.p.Duration = max(0, time.Unix(0, b.end).Sub(b.p.Start))
	}
	s.Taken = sampledLines(s.Counters, &b.handler)
	s.Notes = append(s.Notes, info.Notes...)
	if line := unsymbolized(b.p, b.namer); line != "" {
		s.Notes = append(s.Notes, line)
	}
	if hidesInlined(b.p) {
		s.Notes = append(s.Notes,
			"inlined methods are counted for their callers: record --inlines shows them, or DOTNET_RichDebugInfo=1 in the program's environment")
	}
	slices.Sort(s.Notes)
	s.Notes = slices.Compact(s.Notes)
}

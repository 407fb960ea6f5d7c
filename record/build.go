package record

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/export"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/wire"
)

// builder makes one profile of all processes.
type builder struct {
	p       *export.Profile
	namer   Namer
	several bool
	modules int32   // index of the current process's first module
	frames  int32   // and of its first frame
	root    []int32 // frame of the current process, if there are several
	hold    wire.Histogram
	handler wire.Histogram
	parts   [len(parts)]wire.Histogram
	tries   map[string]int64
	end     int64 // unix nanoseconds of the last sample
}

// build makes the profile of what has arrived so far. A nil Namer names native
// frames module+0xoffset.
func (r *run) build(n Namer) *export.Profile {
	all := r.srv.all()
	b := &builder{namer: n, several: len(all) > 1, p: &export.Profile{Command: r.opt.Command, RateHz: r.opt.Rate, Start: r.start}}
	b.p.Stats.Gaps = map[string]int64{}
	b.tries = map[string]int64{}
	want, _ := r.opt.Events.parse()
	for i, p := range all {
		p.mu.RLock()
		if i == 0 {
			b.header(p)
		}
		b.process(p)
		b.events(p, want.events)
		p.mu.RUnlock()
	}
	b.finish(r)
	b.p.Stats.Empty = r.empty()
	return b.p
}

func (b *builder) header(p *process) {
	if p.hello == nil {
		return
	}
	b.p.Runtime = p.hello.Runtime
	if p.hello.StartUnixNano > 0 {
		b.p.Start = time.Unix(0, p.hello.StartUnixNano)
	}
	if p.timed != 0 && p.first > 0 {
		b.p.Start = time.Unix(0, p.first)
	}
	if p.hello.RateMilliHz > 0 {
		b.p.RateHz = float64(p.hello.RateMilliHz) / 1000
	}
}

func (b *builder) process(p *process) {
	b.modules, b.frames = int32(len(b.p.Modules)), int32(len(b.p.Frames))
	for i := range p.modules {
		m := &p.modules[i]
		b.p.Modules = append(b.p.Modules, export.Module{Path: m.Path, BuildID: m.BuildID, Start: m.Start, End: m.End})
	}
	single := p.singleFile()
	for i := range p.frames {
		b.p.Frames = append(b.p.Frames, b.frame(p, &p.frames[i], single))
	}
	first := len(b.p.Stacks)
	b.rootOf(p)
	b.stacks(p)
	b.account(p, first)
	b.clockOf(p)
	b.waits(p, first)
	if !p.keepProbe {
		b.stopped(first)
	}
	b.stats(p)
}

// rootOf makes the root frame of a process, if there are several.
func (b *builder) rootOf(p *process) {
	if b.several {
		b.root = []int32{int32(len(b.p.Frames))}
		b.p.Frames = append(b.p.Frames, export.Frame{Name: fmt.Sprintf("process %s (%d)", p.name, p.pid), ModuleIndex: -1, Class: export.ClassNative})
	}
}

// stacks adds a process's stacks, under its root frame.
func (b *builder) stacks(p *process) {
	threads := map[uint64]int{}
	for i := range p.stacks {
		s := &p.stacks[i]
		t, ok := threads[s.tid]
		if !ok {
			t = len(b.p.Threads)
			threads[s.tid] = t
			b.p.Threads = append(b.p.Threads, export.Thread{ID: int(s.tid), Name: b.threadName(p, s.tid)})
		}
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

func (b *builder) threadName(p *process, tid uint64) string {
	name := p.threads[tid]
	if name == "" && tid == uint64(p.pid) {
		name = "main"
	}
	if b.several {
		return fmt.Sprintf("%s (%d) %s", p.name, p.pid, name)
	}
	return name
}

func (b *builder) frame(p *process, k *frameKey, single int32) export.Frame {
	if k.kernel {
		return export.Frame{Name: export.Kernel, ModuleIndex: -1, Class: export.ClassKernel}
	}
	f := export.Frame{ModuleIndex: -1, Addr: k.addr, Doubtful: k.doubtful}
	if k.module >= 0 {
		f.ModuleIndex = b.modules + k.module
		f.Module = base(p.modules[k.module].Path)
	}
	switch k.kind {
	case unwind.KindManaged:
		f.Class = export.ClassManaged
		f.Name, f.Module = p.managedName(k, f.Module)
		if k.place > 0 {
			f.File, f.Line = p.places[k.place-1].file, int(p.places[k.place-1].line)
		}
	case unwind.KindStub:
		f.Class = export.ClassStub
		f.Name = b.stubName(p, k)
	case unwind.KindGap:
		f.Class, f.Name = export.ClassGap, p.gapName(k.gap)
	default:
		f.Class = export.ClassNative
		if k.module >= 0 && (k.module == single || isRuntime(f.Module)) {
			f.Class = export.ClassRuntime
		}
		f.Name = b.nativeName(p, k)
		if k.kind == unwind.KindSignal {
			f.Name = signalMark + f.Name // as debuggers mark it: its caller was interrupted
		}
	}
	return f
}

// base is a path's last part, "" of nothing.
func base(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}

// managedName is the method's name and assembly.
func (p *process) managedName(k *frameKey, module string) (string, string) {
	if m := p.methods[k.method]; m != nil && k.method != 0 {
		return m.Name, base(m.Module)
	}
	if k.method != 0 {
		return fmt.Sprintf("method-%d", k.method), module
	}
	return fmt.Sprintf("managed code at %#x", k.addr), module
}

// stubName is the name the profiler gave, or what the stub is.
func (b *builder) stubName(p *process, k *frameKey) string {
	if m := p.methods[k.method]; m != nil && k.method != 0 {
		return m.Name
	}
	if k.module >= 0 {
		return b.nativeName(p, k)
	}
	return "stub of the CLR"
}

// nativeName asks the Namer. Without a name it is module+0xoffset, of the
// function's start if that is known and else of the address itself.
func (b *builder) nativeName(p *process, k *frameKey) string {
	if k.module < 0 {
		return fmt.Sprintf("unknown code at %#x", k.addr)
	}
	m := &p.modules[k.module]
	at := k.addr - m.Bias
	if b.namer != nil {
		if name, ok := b.namer.Name(m.Path, m.BuildID, at); ok {
			return name
		}
		if start, _, ok := b.namer.Function(m.Path, m.BuildID, at); ok {
			at = start
		}
	}
	return fmt.Sprintf("%s+%#x", filepath.Base(m.Path), at)
}

// runtimeLibraries are prefixes of the .NET runtime's native libraries.
var runtimeLibraries = []string{"coreclr.", "clrjit.", "clrgc.", "hostfxr.", "hostpolicy.", "mscordac", "mscordbi", "libcoreclr", "libclrjit", "libclrgc", "libhostfxr", "libhostpolicy", "libSystem.", "libmscordac", "libmscordbi"}

func isRuntime(base string) bool {
	return slices.ContainsFunc(runtimeLibraries, func(p string) bool { return strings.HasPrefix(base, p) })
}

// singleFile returns the module that holds the runtime in a single-file
// program: the executable, where there is no coreclr. -1 = none.
func (p *process) singleFile() int32 {
	exe := int32(-1)
	for i := range p.modules {
		base := filepath.Base(p.modules[i].Path)
		if strings.HasPrefix(strings.TrimPrefix(strings.ToLower(base), "lib"), "coreclr.") {
			return -1
		}
		if exe < 0 && !strings.Contains(base, ".so") && !strings.HasPrefix(base, "[") && !strings.HasSuffix(base, ".dll") {
			exe = int32(i)
		}
	}
	return exe
}

func (b *builder) stats(p *process) {
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
		s.Notes = append(s.Notes, fmt.Sprintf("process %d has more than %d different stacks: %d samples were left out", p.pid, maxStacks, p.overflow))
	}
	if n := p.counters[wire.StatDenied]; n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("process %d: %s not taken: the system refused to suspend the thread", p.pid, counted(int64(n), "sample")))
	}
	if n := p.counters[wire.StatHeld]; n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("process %d: %s of threads that a collection or a debugger had already suspended", p.pid, counted(int64(n), "sample")))
	}
	b.taken(p)
	b.end = max(b.end, p.last)
}

func quantiles(h *wire.Histogram) export.Quantiles {
	return export.Quantiles{Count: int64(h.Count()), P50: time.Duration(h.Quantile(0.5)),
		P99: time.Duration(h.Quantile(0.99)), Max: time.Duration(h.Max())}
}

func (b *builder) finish(r *run) {
	s := &b.p.Stats
	s.Suspended = quantiles(&b.hold)
	mode := r.opt.taken(r.srv.fell(), s.Counters != nil)
	s.Way, s.WayWhy = string(mode.Mode), mode.way()
	if s.Counters != nil && b.handler.Count() > 0 {
		s.Counters["still_p50_ns"], s.Counters["still_p99_ns"] = int64(b.handler.Quantile(0.5)), int64(b.handler.Quantile(0.99))
	}
	for i := range b.parts {
		if b.parts[i].Count() > 0 {
			s.Parts = append(s.Parts, export.Part{Name: parts[i].name, Time: quantiles(&b.parts[i])})
		}
	}
	for answer, n := range b.tries {
		verdict, result, _ := strings.Cut(answer, "/")
		s.Tries = append(s.Tries, export.Tries{Verdict: verdict, Result: result, Count: n})
	}
	slices.SortFunc(s.Tries, func(a, b export.Tries) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Result, b.Result))
	})
	if b.end > 0 {
		b.p.Duration = max(0, time.Unix(0, b.end).Sub(b.p.Start))
	}
	if s.Taken = takenLines(s.Counters, &b.handler); s.Taken == nil {
		s.Taken = perThread(b.p)
	}
	select {
	case <-r.exited:
		s.ExitNote = exitNote(r.code)
	default:
	}
	s.Notes = append(s.Notes, r.srv.told()...)
	if line := nameless(b.p, b.namer); line != "" {
		s.Notes = append(s.Notes, line)
	}
	slices.Sort(s.Notes)
	s.Notes = slices.Compact(s.Notes)
}

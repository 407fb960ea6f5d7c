package trace

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export"
)

// deepest is the number of frames that EventPipe keeps of a stack, from the leaf.
const deepest = 100

// hasModes reports whether the samples show which threads were in managed code. That is the case
// if at least one sample in twenty is marked as taken in managed code.
func (t *Trace) hasModes() bool {
	var all, inManaged int64
	for _, f := range t.files {
		all, inManaged = all+f.sampler.samples, inManaged+f.sampler.inManaged
	}
	return all > 0 && 20*inManaged >= all
}

// Reasons of incomplete stacks.
const (
	gapDeep = "EventPipe keeps 100 frames"
	gapLost = "the stack is missing in the trace"
	gapNone = "recorded without a stack"
)

// whole reports whether a stack has all its managed frames.
func (f *file) whole(id waits.StackID) bool { return f.gap(id) == "" }

func (f *file) gap(id waits.StackID) string {
	switch n := f.Depth(id); {
	case id == waits.LostStack:
		return gapLost
	case id == waits.NoStack:
		return gapNone
	case n >= deepest:
		return gapDeep
	}
	return ""
}

// builder makes a profile.
type builder struct {
	p       *export.Profile
	t       *Trace
	threads map[uint64]int
	frames  map[frameKey]int32
	byAddr  map[uint64]int32
	unnamed int // frames without a name
}

// frameKey is what equal frames have in common.
type frameKey struct {
	name, module string
	addr         uint64 // 0 if the name says it all
}

// Profile returns the profile of what was read, nil if there was no trace.
func (t *Trace) Profile() *export.Profile {
	if len(t.files) == 0 {
		return nil
	}
	b := &builder{t: t, p: &export.Profile{}, threads: map[uint64]int{},
		frames: map[frameKey]int32{}, byAddr: map[uint64]int32{}}
	p := b.p
	p.Stats.Gaps = map[string]int64{}
	p.Command = strings.Fields(cmp.Or(t.Names.Process.CommandLine, t.Names.Runtime.CommandLine))
	if v := t.Names.Runtime.Version; v[0] > 4 { // .NET Core 3 calls itself 4
		p.Runtime = fmt.Sprintf(".NET %d.%d.%d", v[0], v[1], v[2]/100) // the build: patch and year
	}
	p.Stats.Way, p.Stats.WayWhy = "EventPipe",
		"a trace has managed frames only; CPU time is the time in managed code, and native code counts as wall time"
	if !t.hasModes() {
		p.First, p.Stats.WayWhy = "wall",
			"a trace has managed frames only; this one does not say which threads ran, so all samples are wall time"
	}
	var end time.Time
	for _, f := range t.files {
		start, last := f.Trace.Time(f.First), f.Trace.Time(f.Last)
		if p.Start.IsZero() || start.Before(p.Start) {
			p.Start = start
		}
		if last.After(end) {
			end = last
		}
		b.file(f)
	}
	p.Duration = end.Sub(p.Start)
	slices.SortStableFunc(p.Samples, func(x, y export.Sample) int { return cmp.Compare(x.At, y.At) })
	slices.SortStableFunc(p.Waits, func(x, y export.Wait) int { return x.Start.Compare(y.Start) })
	b.eventStats()
	if b.unnamed > 0 {
		p.Stats.Notes = append(p.Stats.Notes,
			fmt.Sprintf("%d of %d frames have no name: code that the trace does not list, mostly native; a trace of a short session with rundown, given as a second file, names methods", b.unnamed, len(p.Frames)))
	}
	if p.Stats.Samples == 0 {
		p.First = "" // the first metric of the events
	}
	if p.Stats.Samples == 0 && len(p.Stats.Events) == 0 {
		p.Stats.Empty = t.Missing("cpu")
	}
	return p
}

// file adds one trace.
func (b *builder) file(f *file) {
	first := len(b.p.Stacks)
	stacks := map[foldKey]int{}
	for i := range f.sums {
		s := &f.sums[i]
		stacks[s.foldKey] = len(b.p.Stacks)
		b.stack(f, s)
	}
	for i := range f.samples {
		s := &f.samples[i]
		s.Stack, s.CPU = s.Stack+int32(first), s.CPU && b.p.First == ""
	}
	if b.p.Samples == nil {
		b.p.Samples = f.samples
	} else {
		b.p.Samples = append(b.p.Samples, f.samples...)
	}
	f.samples = nil
	b.p.Stats.Untimed += f.untimed
	for i := range f.Waits {
		w := &f.Waits[i]
		if at, ok := stacks[waitKey(w)]; ok && w.Depth == 0 && w.State != waits.Unreliable {
			b.p.Waits = append(b.p.Waits,
				export.Wait{Stack: at, Start: f.Trace.Time(w.Start), Nanos: w.Nanos})
		}
	}
	for _, list := range f.lists {
		for _, w := range list {
			w.Stack += first
			b.p.Waits = append(b.p.Waits, w)
		}
	}
	b.p.Stats.Unlisted += f.Unlisted + f.unlisted
	if n := f.Counts.Lost; n > 0 {
		b.p.Stats.Notes = append(b.p.Stats.Notes,
			fmt.Sprintf("%d events were dropped by the runtime: a larger buffer helps", n))
	}
}

func (b *builder) stack(f *file, s *fold) {
	out := export.Stack{Thread: b.thread(s.thread), Count: s.count, WallNanos: s.wall, CPUNanos: s.cpu,
		CPUCount: s.cpus, Gap: f.gap(s.stack),
		Event: s.event, Sum: s.sum, Longest: s.longest, Open: s.open, Monitor: s.monitor, Owner: int(s.owner),
		Type: b.t.all[s.typ], Message: b.t.all[s.message]}
	out.Complete = out.Gap == ""
	if b.p.First != "" {
		out.CPUNanos, out.CPUCount = 0, 0
	}
	addrs := f.Stack(s.stack)
	out.Frames = make([]int32, len(addrs))
	for i, addr := range addrs {
		out.Frames[i] = b.frame(addr, s.when)
	}
	b.p.Stacks = append(b.p.Stacks, out)
	if s.event == export.NoEvent {
		st := &b.p.Stats
		st.Samples += s.count
		if out.Complete {
			st.Complete += s.count
		} else {
			st.Gaps[out.Gap] += s.count
		}
	}
}

func (b *builder) thread(id uint64) int {
	return intern.At(b.threads, &b.p.Threads, id,
		func() export.Thread { return export.Thread{ID: int(id), Name: b.t.Names.ThreadName(id)} })
}

// frame returns the frame of an address at a time.
func (b *builder) frame(addr, when uint64) int32 {
	once := !b.t.Names.Replaced()
	if i, ok := b.byAddr[addr]; ok && once {
		return i
	}
	from := b.t.Names.Frame(addr, when)
	f := export.Frame{Name: from.Name, Module: from.Module, ModuleIndex: -1, Class: export.ClassNative}
	switch {
	case from.Managed:
		f.Class, f.Name, f.Module = export.ClassManaged, demangle.EventName(from.Name),
			strings.TrimSuffix(from.Module, path.Ext(from.Module))
		if strings.HasPrefix(from.Name, "dynamicClass.IL_STUB") {
			f.Class = export.ClassStub
		}
	case from.Module == "":
		f.Name, f.Addr = fmt.Sprintf("unknown code at %#x", addr), addr
	default:
		f.Addr = addr
	}
	k := frameKey{f.Name, f.Module, f.Addr}
	i := intern.At(b.frames, &b.p.Frames, k, func() export.Frame {
		if !from.Named {
			b.unnamed++
		}
		return f
	})
	if once {
		b.byAddr[addr] = i
	}
	return i
}

// eventStats adds up the events of all files, by kind.
func (b *builder) eventStats() {
	for kind := export.NoEvent + 1; kind < export.NumEvents; kind++ {
		sum := export.EventStats{Event: kind}
		for _, f := range b.t.files {
			e := &f.events[kind]
			sum.Seen, sum.Count, sum.Complete, sum.Sum, sum.Open = sum.Seen+e.Seen, sum.Count+e.Count,
				sum.Complete+e.Complete, sum.Sum+e.Sum, sum.Open+e.Open
			sum.Longest = max(sum.Longest, e.Longest)
		}
		if sum.Seen > 0 {
			b.p.Stats.Events = append(b.p.Stats.Events, sum)
		}
	}
}

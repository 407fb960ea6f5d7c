package export

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Labels of pprof samples.
const (
	labelThread   = "thread_name"
	labelThreadID = "thread_id"
	labelGap      = "gap"
	labelEvent    = "event"
	labelMessage  = "message"
	labelOwner    = "owner"
	labelOpen     = "open"
	labelCause    = "not_sampled"
)

// WritePprof writes a gzipped profile.proto (google/pprof). Values: samples/count,
// wall/nanoseconds, cpu/nanoseconds, and those of the recorded events. Each module is a
// mapping with its build id, and each frame a location. A frame without a name has no function,
// and its mapping is marked as not symbolized. The file name of a function is its source file
// if known, and its module otherwise. The labels are:
//
//   - thread_id, thread_name
//   - gap: of incomplete stacks
//   - not_sampled: the cause of CPU time without samples
//   - trace_id, span_id: of an Activity
//   - event, message, owner, open: of events
func WritePprof(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	pw := newPprofWriter(p)
	out := pw.profile()
	if slices.ContainsFunc(p.Samples, func(s Sample) bool { return s.Activity != nil }) {
		pw.split()
	}
	if err := out.CheckValid(); err != nil {
		return err
	}
	return out.Write(w)
}

// pprofWriter converts the tables of a Profile to those of pprof. It creates only entries that
// samples use.
type pprofWriter struct {
	p         *Profile
	shown     []int // metrics
	out       *profile.Profile
	mappings  []*profile.Mapping
	locations []*profile.Location
	symbols   []symbol // of out.Location
	functions map[sourced]*profile.Function
	gaps      map[string]*profile.Location
	types     map[string]*profile.Location
}

// sourced is a function and one of its source files, "" if unknown. A function may have
// several.
type sourced struct {
	symbol
	file string
}

func newPprofWriter(p *Profile) *pprofWriter {
	return &pprofWriter{p: p, shown: p.shown(), out: &profile.Profile{},
		locations: make([]*profile.Location, len(p.Frames)),
		functions: make(map[sourced]*profile.Function), gaps: make(map[string]*profile.Location),
		types: make(map[string]*profile.Location)}
}

func (w *pprofWriter) profile() *profile.Profile {
	w.header()
	for i := range w.p.Modules {
		w.mapping(&w.p.Modules[i])
	}
	for i := range w.p.Stacks {
		w.sample(&w.p.Stacks[i])
	}
	return w.out
}

func (w *pprofWriter) header() {
	o, p := w.out, w.p
	for _, at := range w.shown {
		o.SampleType = append(o.SampleType,
			&profile.ValueType{Type: metrics[at].name, Unit: metrics[at].unit})
	}
	o.PeriodType = &profile.ValueType{Type: "wall", Unit: "nanoseconds"}
	o.DefaultSampleType = metrics[w.p.defaultMetric()].name
	if p.RateHz > 0 {
		o.Period = int64(float64(time.Second) / p.RateHz)
	}
	if !p.Start.IsZero() {
		o.TimeNanos = p.Start.UnixNano()
	}
	o.DurationNanos = int64(p.Duration)
	for _, c := range append([]string{strings.Join(p.Command, " "), p.Runtime, p.Stats.ExitNote},
		p.Stats.Notes...) {
		if c = clean(c); c != "" {
			o.Comments = append(o.Comments, c)
		}
	}
}

// mapping adds a module, and marks its functions as named. A frame without a name removes the mark
// later. Our names are better than those that pprof would find, and pprof cannot read managed code.
func (w *pprofWriter) mapping(m *Module) {
	pm := &profile.Mapping{ID: uint64(len(w.mappings) + 1), Start: m.Start, Limit: m.End, Offset: m.Offset,
		File: clean(m.Path), BuildID: clean(m.BuildID), HasFunctions: true}
	w.mappings = append(w.mappings, pm)
	w.out.Mapping = append(w.out.Mapping, pm)
}

func (w *pprofWriter) sample(s *Stack) {
	t := &w.p.Threads[s.Thread]
	ps := &profile.Sample{Label: map[string][]string{}, NumLabel: map[string][]int64{}}
	if name := clean(t.Name); name != "" { // an empty string is no label
		ps.Label[labelThread] = []string{name}
	}
	if t.ID != 0 {
		ps.NumLabel[labelThreadID] = []int64{int64(t.ID)}
	}
	v := valuesOf(s)
	for _, at := range w.shown {
		ps.Value = append(ps.Value, v[at])
	}
	w.event(ps, s)
	if cause, ok := w.p.causeOf(s); ok {
		ps.Label[labelCause] = []string{cause}
	}
	for _, f := range s.Frames {
		ps.Location = append(ps.Location, w.location(f))
	}
	reason, missing := unmarkedGap(w.p, s)
	if missing {
		ps.Location = append(ps.Location, w.gap(clean(reason)))
	}
	if !s.Complete || missing {
		if s.Gap != "" {
			reason = s.Gap
		}
		ps.Label[labelGap] = []string{clean(reason)}
	}
	w.out.Sample = append(w.out.Sample, ps)
}

// event adds the labels of an event. The type of the event is the leaf.
func (w *pprofWriter) event(ps *profile.Sample, s *Stack) {
	if s.Event == NoEvent {
		return
	}
	label := func(key, value string) {
		if value = clean(value); value != "" {
			ps.Label[key] = []string{value}
		}
	}
	label(labelEvent, eventLabel(s))
	label(labelMessage, s.Message)
	if s.Open {
		label(labelOpen, "yes")
	}
	if s.Owner != 0 {
		ps.NumLabel[labelOwner] = []int64{int64(s.Owner)}
	}
	if s.Type != "" {
		ps.Location = append(ps.Location, w.typeOf(clean(s.Type)))
	}
}

// eventLabel returns the most specific kind of an event.
func eventLabel(s *Stack) string {
	if s.Monitor {
		return "monitor-wait"
	}
	return s.Event.String()
}

func (w *pprofWriter) typeOf(name string) *profile.Location {
	if w.types[name] == nil {
		w.types[name] = w.newLocation(symbol{name: name, class: ClassType}, "", 0)
	}
	return w.types[name]
}

func (w *pprofWriter) location(i int32) *profile.Location {
	if w.locations[i] == nil {
		f := &w.p.Frames[i]
		w.locations[i] = w.frame(f)
	}
	return w.locations[i]
}

// frame adds the location of a frame. One without a name has no function, so that a symbolizer
// looks for it.
func (w *pprofWriter) frame(f *Frame) *profile.Location {
	if f.Unnamed() && !f.Doubtful { // the mark of a doubtful frame is part of its function
		l := &profile.Location{ID: uint64(len(w.out.Location) + 1), Address: f.Addr,
			Mapping: w.mappings[f.ModuleIndex]}
		l.Mapping.HasFunctions = false
		w.out.Location, w.symbols = append(w.out.Location, l), append(w.symbols, symbolOf(f))
		return l
	}
	l := w.newLocation(symbolOf(f), clean(f.File), f.Addr)
	l.Line[0].Line = int64(f.Line)
	if f.ModuleIndex >= 0 {
		l.Mapping = w.mappings[f.ModuleIndex]
	}
	return l
}

func (w *pprofWriter) gap(reason string) *profile.Location {
	if w.gaps[reason] == nil {
		w.gaps[reason] = w.newLocation(symbol{name: gapName(reason), class: ClassGap}, "", 0)
	}
	return w.gaps[reason]
}

func (w *pprofWriter) newLocation(s symbol, file string, addr uint64) *profile.Location {
	l := &profile.Location{ID: uint64(len(w.out.Location) + 1), Address: addr,
		Line: []profile.Line{{Function: w.function(s, file)}}}
	w.out.Location, w.symbols = append(w.out.Location, l), append(w.symbols, s)
	return l
}

func (w *pprofWriter) function(s symbol, file string) *profile.Function {
	key := sourced{s, file}
	f := w.functions[key]
	if f == nil {
		if file == "" {
			file = s.module
		}
		f = &profile.Function{ID: uint64(len(w.out.Function) + 1), Name: s.label(),
			SystemName: s.name, Filename: file}
		w.functions[key] = f
		w.out.Function = append(w.out.Function, f)
	}
	return f
}

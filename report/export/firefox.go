package export

import (
	"cmp"
	hexadecimal "encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export/firefox"
)

// firefoxVersion is the version of the processed profile format. The profiler upgrades older ones.
const firefoxVersion = 62

// firefoxColors are the colors of the classes. The first category has to be grey, and a class is
// the category after it.
var firefoxColors = [numClasses]string{"green", "lightblue", "purple", "yellow", "red",
	"darkgrey", "orange", "magenta", "grey", "blue"}

type firefoxWriter struct {
	p         *Profile
	out       firefox.File
	value     int // weight of samples
	strings   map[string]int
	frames    map[int32]int
	gaps      map[string]int
	funcs     map[[3]int]int
	sources   map[int]int
	resources map[int32]int
	nodes     map[[2]int]int // stack nodes by caller and frame
	stacks    []*int         // nodes of p.Stacks
}

// WriteFirefox writes Firefox Profiler's processed profile format. The weight of a sample is wall
// time, or CPU time or one if wall time was not measured. Time of a thread without a sample has no
// stack. If the times of samples are unknown, each stack is one sample at the start.
func WriteFirefox(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	f := &firefoxWriter{p: p, strings: map[string]int{}, frames: map[int32]int{},
		gaps: map[string]int{}, funcs: map[[3]int]int{},
		sources: map[int]int{}, resources: map[int32]int{}, nodes: map[[2]int]int{},
		stacks: make([]*int, len(p.Stacks))}
	f.header()
	f.threads()
	for i := range p.Stacks {
		if p.Stacks[i].Event == NoEvent {
			f.stacks[i] = f.stack(&p.Stacks[i])
		}
	}
	f.samples()
	for i := range p.Waits {
		f.marker(&p.Waits[i])
	}
	f.lengths()
	return json.NewEncoder(w).Encode(&f.out)
}

func (f *firefoxWriter) header() {
	p, m := f.p, &f.out.Meta
	*m = firefox.Meta{Product: cmp.Or(clean(strings.Join(p.Command, " ")), "seedwalk"), Interval: 1,
		Version: 24, Processed: firefoxVersion, Symbolicated: true,
		Categories: []firefox.Category{classCategory("Other", "grey")},
		Markers: []firefox.Schema{{Name: "Text", Display: []string{"marker-chart", "marker-table"},
			Label:  "{marker.data.name}",
			Fields: []map[string]string{{"key": "name", "label": "Details", "format": "unique-string"}}}},
		Units: map[string]string{"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"}}
	if !p.Start.IsZero() {
		m.Start = millis(p.Start.UnixNano())
	}
	if p.RateHz > 0 {
		m.Interval = 1000 / p.RateHz
	}
	for c, color := range firefoxColors {
		m.Categories = append(m.Categories, classCategory(Class(c).String(), color))
	}
	var e []firefox.Entry
	entry := func(label, format string, value any) {
		e = append(e, firefox.Entry{Label: label, Format: format, Value: value})
	}
	entry("runtime", "string", clean(p.Runtime))
	entry("samples", "integer", p.Stats.Samples)
	entry("complete samples", "integer", p.Stats.Complete)
	entry("dropped samples", "integer", p.Stats.Lost)
	entry("samples without a time, not in this file", "integer", p.Stats.Untimed)
	for _, note := range p.Stats.Notes {
		entry("note", "string", clean(note))
	}
	m.Extra = []firefox.Extra{{Label: "Recording", Entries: e}}
	f.out.Libs, f.out.Pages, f.out.Threads = []firefox.Lib{}, []int{}, []firefox.Thread{}
	f.out.Shared = firefox.Shared{Strings: []string{},
		Frames:    firefox.Frames{Address: []int64{}, Category: []int{}, Func: []int{}, Line: []*int{}},
		Funcs:     firefox.Funcs{Name: []int{}, Resource: []int{}, Source: []*int{}},
		Stacks:    firefox.Stacks{Frame: []int{}, Prefix: []*int{}},
		Resources: firefox.Resources{Lib: []int{}, Name: []int{}, Type: []int{}},
		Sources:   firefox.Sources{Filename: []int{}, Line: []int{}, Column: []int{}},
		Symbols:   firefox.Symbols{Lib: []int{}, Address: []int{}, Name: []int{}, Size: []int{}}}
}

func classCategory(name, color string) firefox.Category {
	return firefox.Category{Name: name, Color: color, Sub: []string{"Other"}}
}

func (f *firefoxWriter) threads() {
	kind := "samples"
	f.value = valueSamples
	for i := range f.p.Stacks {
		if f.p.Stacks[i].WallNanos > 0 {
			f.value, kind = valueWall, "tracing-ms"
			break
		} else if f.p.Stacks[i].CPUNanos > 0 {
			f.value, kind = valueCPU, "tracing-ms"
		}
	}
	for i := range f.p.Threads {
		t := &f.p.Threads[i]
		f.out.Threads = append(f.out.Threads,
			firefox.Thread{Name: threadLabel(t), Main: i == 0, PID: "0", TID: strconv.Itoa(t.ID),
				ProcessName: f.out.Meta.Product, ProcessType: "default", Paused: []int{},
				Samples: firefox.Samples{WeightType: kind, Stack: []*int{}, Time: []float64{},
					Weight: []float64{}, CPU: []int64{}},
				Markers: firefox.Markers{Name: []int{}, Start: []float64{}, End: []float64{}, Phase: []int{},
					Category: []int{}, Data: []firefox.Marker{}}})
	}
}

func millis(nanos int64) float64 { return float64(nanos) / 1e6 }

func (f *firefoxWriter) samples() {
	begin := f.p.Start.UnixNano()
	for i := range f.p.Samples {
		s := &f.p.Samples[i]
		st := &f.p.Stacks[s.Stack]
		if st.Event != NoEvent {
			continue
		}
		t, at, cpu := &f.out.Threads[st.Thread], max(0, s.At-begin), f.p.sampleCPU(s)
		t.Fill(at-s.Wall, f.stacks[s.Stack])
		from := max(t.Last, at-s.Wall)
		if from > t.Last {
			t.Gap(from)
		}
		at = max(from, at)
		t.Add(at, f.stacks[s.Stack], f.weight(s.Wall, cpu, 1), cpu)
		t.Last = at
	}
	for i := range f.p.Stacks {
		if st := &f.p.Stacks[i]; len(f.p.Samples) == 0 && st.Event == NoEvent {
			f.out.Threads[st.Thread].Add(0, f.stacks[i],
				f.weight(st.WallNanos, st.CPUNanos, st.Count), st.CPUNanos)
		}
	}
}

func (f *firefoxWriter) weight(wall, cpu, count int64) float64 {
	switch f.value {
	case valueWall:
		return millis(wall)
	case valueCPU:
		return millis(cpu)
	}
	return float64(count)
}

func (f *firefoxWriter) marker(w *Wait) {
	s := &f.p.Stacks[w.Stack]
	m, start := &f.out.Threads[s.Thread].Markers, w.Start.Sub(f.p.Start).Nanoseconds()
	m.Length++
	m.Name, m.Phase, m.Category = append(m.Name, f.string(s.Event.String())),
		append(m.Phase, 1), append(m.Category, 0)
	m.Start, m.End = append(m.Start, millis(start)), append(m.End, millis(start+w.Nanos))
	m.Data = append(m.Data, firefox.Marker{Type: "Text", Name: f.string(clean(s.Type))})
}

// stack returns the node of a stack's leaf, nil for none.
func (f *firefoxWriter) stack(s *Stack) (leaf *int) {
	if reason, missing := unmarkedGap(f.p, s); missing {
		leaf = f.node(leaf, f.gap(clean(reason)))
	}
	for i := len(s.Frames) - 1; i >= 0; i-- {
		leaf = f.node(leaf, f.frame(s.Frames[i]))
	}
	return leaf
}

func (f *firefoxWriter) node(caller *int, frame int) *int {
	key, t := [2]int{-1, frame}, &f.out.Shared.Stacks
	if caller != nil {
		key[0] = *caller
	}
	n, ok := f.nodes[key]
	if !ok {
		n = len(t.Frame)
		f.nodes[key] = n
		t.Frame, t.Prefix = append(t.Frame, frame), append(t.Prefix, caller)
	}
	return &n
}

func (f *firefoxWriter) gap(reason string) int {
	n, ok := f.gaps[reason]
	if !ok {
		n = f.newFrame(&Frame{Name: reason, Class: ClassGap, ModuleIndex: -1})
		f.gaps[reason] = n
	}
	return n
}

func (f *firefoxWriter) frame(i int32) int {
	n, ok := f.frames[i]
	if !ok {
		n = f.newFrame(&f.p.Frames[i])
		f.frames[i] = n
	}
	return n
}

func (f *firefoxWriter) newFrame(fr *Frame) int {
	t, s, address := &f.out.Shared.Frames, symbolOf(fr), int64(-1)
	resource := -1
	if fr.ModuleIndex >= 0 {
		resource = f.resource(fr.ModuleIndex)
		// A mapping with an offset does not say where its image begins.
		if m := &f.p.Modules[fr.ModuleIndex]; m.Offset == 0 && fr.Addr >= m.Start && fr.Addr < m.End {
			address = int64(fr.Addr - m.Start)
		}
	}
	var line *int
	if fr.Line > 0 {
		line = &fr.Line
	}
	t.Address, t.Category, t.Line = append(t.Address, address),
		append(t.Category, 1+int(s.class)), append(t.Line, line)
	t.Func = append(t.Func, f.function(f.string(s.label()), resource, fr.File))
	return len(t.Func) - 1
}

func (f *firefoxWriter) function(name, resource int, file string) int {
	source := -1
	if file = clean(file); file != "" {
		source = f.source(file)
	}
	key, t := [3]int{name, resource, source}, &f.out.Shared.Funcs
	n, ok := f.funcs[key]
	if ok {
		return n
	}
	n = len(t.Name)
	f.funcs[key] = n
	t.Name, t.Resource, t.Source = append(t.Name, name), append(t.Resource, resource), append(t.Source, nil)
	if source >= 0 {
		t.Source[n] = &source
	}
	return n
}

func (f *firefoxWriter) source(file string) int {
	name, t := f.string(file), &f.out.Shared.Sources
	n, ok := f.sources[name]
	if !ok {
		n = len(t.Filename)
		f.sources[name] = n
		t.Filename, t.Line, t.Column = append(t.Filename, name), append(t.Line, 1), append(t.Column, 1)
	}
	return n
}

// resource returns the resource of a module, and adds its library.
func (f *firefoxWriter) resource(module int32) int {
	n, ok := f.resources[module]
	if ok {
		return n
	}
	n = len(f.out.Libs)
	f.resources[module] = n
	m := &f.p.Modules[module]
	path, id := clean(m.Path), clean(m.BuildID)
	name := Base(path)
	lib := firefox.Lib{Name: name, Path: path, DebugName: name, DebugPath: path, BreakpadID: debugID(id)}
	if id != "" {
		lib.CodeID = &id
	}
	f.out.Libs = append(f.out.Libs, lib)
	t := &f.out.Shared.Resources
	t.Lib, t.Name, t.Type = append(t.Lib, n), append(t.Name, f.string(name)), append(t.Type, 1) // 1 = library
	return n
}

// debugID returns the debug ID of a build ID: its first 16 bytes as a GUID, whose first three
// fields are little-endian, and an age of 0. It returns "" without a build ID.
func debugID(buildID string) string {
	b, err := hexadecimal.DecodeString(buildID)
	if err != nil || len(b) == 0 {
		return ""
	}
	b = append(b, make([]byte, 16)...)[:16]
	slices.Reverse(b[:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return strings.ToUpper(hexadecimal.EncodeToString(b)) + "0"
}

func (f *firefoxWriter) string(s string) int {
	return intern.Value(f.strings, &f.out.Shared.Strings, s)
}

// lengths fills the columns that have one value, and counts rows.
func (f *firefoxWriter) lengths() {
	s := &f.out.Shared
	fr, fu, r, so := &s.Frames, &s.Funcs, &s.Resources, &s.Sources
	fr.Length, fu.Length, r.Length, so.Length, s.Stacks.Length = len(fr.Func), len(fu.Name), len(r.Lib),
		len(so.Filename), len(s.Stacks.Frame)
	fr.InlineDepth, fr.Subcategory, fr.Window = make([]int, fr.Length),
		make([]int, fr.Length), make([]int, fr.Length)
	fr.Symbol, fr.Column = make([]*int, fr.Length), make([]*int, fr.Length)
	fu.IsJS, fu.Relevant = make([]bool, fu.Length), make([]bool, fu.Length)
	fu.Line, fu.Column = make([]*int, fu.Length), make([]*int, fu.Length)
	r.Host, so.ID, so.Map = make([]*int, r.Length), make([]*string, so.Length), make([]*int, so.Length)
}

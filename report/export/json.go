package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// JSONVersion is the number in "version". It changes when a field changes its meaning or is
// removed. New fields may be added without that.
const JSONVersion = 1

type jsonFile struct {
	Recording
	Modules []jsonModule `json:"modules"`
	Threads []Thread     `json:"threads"`
	Frames  []jsonFrame  `json:"frames"`
	Stacks  []jsonStack  `json:"stacks"`
	Waits   []jsonWait   `json:"waits,omitempty"`

	Activities []jsonActivity `json:"activities,omitempty"`
}

type jsonActivity struct {
	Trace  string     `json:"trace"`
	Span   string     `json:"span"`
	Stacks [][2]int64 `json:"stacks"` // index, samples
}

type jsonModule struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
	Start   string `json:"start"`
	End     string `json:"end"`
	Offset  string `json:"offset"`
}

type jsonFrame struct {
	Name     string `json:"name"`
	Module   string `json:"module,omitempty"`
	Index    int32  `json:"module_index"`
	Addr     string `json:"addr,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Class    string `json:"class"`
	Doubtful bool   `json:"doubtful,omitempty"`
}

type jsonStack struct {
	Thread    int     `json:"thread"`
	Frames    []int32 `json:"frames"`
	Count     int64   `json:"count"`
	WallNanos int64   `json:"wall_ns"`
	CPUNanos  int64   `json:"cpu_ns"`
	CPUCount  int64   `json:"cpu_count"`
	Complete  bool    `json:"complete"`
	Gap       string  `json:"gap,omitempty"`
	Event     string  `json:"event,omitempty"`
	Sum       int64   `json:"sum,omitempty"`
	Longest   int64   `json:"longest_ns,omitempty"`
	Open      bool    `json:"open,omitempty"`
	Owner     int     `json:"owner,omitempty"`
	Type      string  `json:"type,omitempty"`
	Message   string  `json:"message,omitempty"`
}

type jsonWait struct {
	Stack int    `json:"stack"`
	Start string `json:"start"`
	Nanos int64  `json:"ns"`
}

// WriteJSON writes everything that the profile holds. docs/json.md describes the schema.
func WriteJSON(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	f := jsonFile{Recording: NewRecording("seedwalk-profile", p)}
	f.Modules = convert(p.Modules, func(m *Module) jsonModule {
		return jsonModule{m.Path, m.BuildID, hex(m.Start), hex(m.End), hex(m.Offset)}
	})
	f.Threads = list(p.Threads)
	f.Frames = convert(p.Frames, frameJSON)
	f.Stacks = convert(p.Stacks, func(s *Stack) jsonStack {
		return jsonStack{s.Thread, list(s.Frames), s.Count, s.WallNanos, s.CPUNanos,
			s.cpuCount(), s.Complete, s.Gap,
			eventLabel(s), s.Sum, s.Longest, s.Open, s.Owner, s.Type, s.Message}
	})
	f.Waits = convert(p.Waits,
		func(w *Wait) jsonWait { return jsonWait{w.Stack, w.Start.UTC().Format(time.RFC3339Nano), w.Nanos} })
	f.Activities = activitiesJSON(p)
	return json.NewEncoder(w).Encode(f)
}

// activitiesJSON lists the Activities that samples have, in the order of their ids.
func activitiesJSON(p *Profile) (out []jsonActivity) {
	counts := map[*Activity]map[int32]int64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Activity == nil {
			continue
		}
		if counts[s.Activity] == nil {
			counts[s.Activity] = map[int32]int64{}
		}
		counts[s.Activity][s.Stack]++
	}
	for a, stacks := range counts {
		j := jsonActivity{Trace: fmt.Sprintf("%x", a.Trace), Span: fmt.Sprintf("%x", a.Span)}
		for _, at := range slices.Sorted(maps.Keys(stacks)) {
			j.Stacks = append(j.Stacks, [2]int64{int64(at), stacks[at]})
		}
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b jsonActivity) int {
		return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Span, b.Span))
	})
	return out
}

func frameJSON(f *Frame) jsonFrame {
	j := jsonFrame{Name: f.Name, Module: f.Module, Index: f.ModuleIndex, File: f.File, Line: f.Line,
		Class: f.Class.String(), Doubtful: f.Doubtful}
	if f.Addr != 0 {
		j.Addr = hex(f.Addr)
	}
	return j
}

// hex writes addresses as strings, because readers parse JSON numbers as float64.
func hex(a uint64) string { return fmt.Sprintf("%#x", a) }

// list returns an empty list for nil, so that the JSON never has null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func convert[A, B any](in []A, f func(*A) B) []B {
	out := make([]B, len(in))
	for i := range in {
		out[i] = f(&in[i])
	}
	return out
}

package export

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// JSONVersion is the number in "version". It changes when a field changes its
// meaning or goes; new fields may come without a change.
const JSONVersion = 1

type jsonFile struct {
	Format        string       `json:"format"`
	Version       int          `json:"version"`
	Command       []string     `json:"command"`
	Runtime       string       `json:"runtime"`
	Start         string       `json:"start,omitempty"`
	DurationNanos int64        `json:"duration_ns"`
	RateHz        float64      `json:"rate_hz"`
	Stats         jsonStats    `json:"stats"`
	Modules       []jsonModule `json:"modules"`
	Threads       []jsonThread `json:"threads"`
	Frames        []jsonFrame  `json:"frames"`
	Stacks        []jsonStack  `json:"stacks"`
}

type jsonStats struct {
	Samples   int64            `json:"samples"`
	Complete  int64            `json:"complete"`
	Gaps      map[string]int64 `json:"gaps"`
	Suspended jsonQuantiles    `json:"suspended"`
	Parts     []jsonPart       `json:"suspended_parts,omitempty"`
	Tries     []jsonTries      `json:"tries,omitempty"`
	Retries   int64            `json:"retries"`
	Lost      int64            `json:"lost"`
	Notes     []string         `json:"notes"`
	ExitNote  string           `json:"exit_note,omitempty"`
}

type jsonQuantiles struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

type jsonPart struct {
	Name string `json:"name"`
	jsonQuantiles
}

type jsonTries struct {
	Verdict string `json:"verdict"`
	Result  string `json:"hresult"`
	Count   int64  `json:"count"`
}

type jsonModule struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
	Start   string `json:"start"`
	End     string `json:"end"`
	Offset  string `json:"offset"`
}

type jsonThread struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type jsonFrame struct {
	Name     string `json:"name"`
	Module   string `json:"module,omitempty"`
	Index    int32  `json:"module_index"`
	Addr     string `json:"addr,omitempty"`
	Class    string `json:"class"`
	Doubtful bool   `json:"doubtful,omitempty"`
}

type jsonStack struct {
	Thread    int     `json:"thread"`
	Frames    []int32 `json:"frames"`
	Count     int64   `json:"count"`
	WallNanos int64   `json:"wall_ns"`
	CPUNanos  int64   `json:"cpu_ns"`
	Complete  bool    `json:"complete"`
	Gap       string  `json:"gap,omitempty"`
}

// WriteJSON writes everything the profile holds, in the schema that the package
// comment describes.
func WriteJSON(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	f := jsonFile{Format: "seedwalk-profile", Version: JSONVersion, Command: list(p.Command), Runtime: p.Runtime,
		DurationNanos: int64(p.Duration), RateHz: p.RateHz, Stats: statsJSON(&p.Stats)}
	if !p.Start.IsZero() {
		f.Start = p.Start.UTC().Format(time.RFC3339Nano)
	}
	f.Modules = convert(p.Modules, func(m *Module) jsonModule {
		return jsonModule{m.Path, m.BuildID, hex(m.Start), hex(m.End), hex(m.Offset)}
	})
	f.Threads = convert(p.Threads, func(t *Thread) jsonThread { return jsonThread{t.ID, t.Name} })
	f.Frames = convert(p.Frames, frameJSON)
	f.Stacks = convert(p.Stacks, func(s *Stack) jsonStack {
		return jsonStack{s.Thread, list(s.Frames), s.Count, s.WallNanos, s.CPUNanos, s.Complete, s.Gap}
	})
	return json.NewEncoder(w).Encode(f)
}

func statsJSON(s *Stats) jsonStats {
	gaps := s.Gaps
	if gaps == nil {
		gaps = map[string]int64{}
	}
	return jsonStats{s.Samples, s.Complete, gaps, jsonQuantiles(s.Suspended),
		convert(s.Parts, func(p *Part) jsonPart { return jsonPart{p.Name, jsonQuantiles(p.Time)} }),
		convert(s.Tries, func(t *Tries) jsonTries { return jsonTries(*t) }),
		s.Retries, s.Lost, list(s.Notes), s.ExitNote}
}

func frameJSON(f *Frame) jsonFrame {
	j := jsonFrame{Name: f.Name, Module: f.Module, Index: f.ModuleIndex, Class: f.Class.String(), Doubtful: f.Doubtful}
	if f.Addr != 0 {
		j.Addr = hex(f.Addr)
	}
	return j
}

// hex keeps addresses out of JSON numbers, which readers take for float64.
func hex(a uint64) string { return fmt.Sprintf("%#x", a) }

// list makes an empty list of a missing one, so that readers never meet null.
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

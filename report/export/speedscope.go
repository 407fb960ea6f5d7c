package export

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// The parts of https://www.speedscope.app/file-format-schema.json in use.
type speedscopeFile struct {
	Schema   string              `json:"$schema"`
	Name     string              `json:"name"`
	Exporter string              `json:"exporter"`
	Active   int                 `json:"activeProfileIndex"`
	Shared   speedscopeShared    `json:"shared"`
	Profiles []speedscopeProfile `json:"profiles"`
}

type speedscopeShared struct {
	Frames []speedscopeFrame `json:"frames"`
}

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
}

type speedscopeProfile struct {
	Type    string    `json:"type"`
	Name    string    `json:"name"`
	Unit    string    `json:"unit"`
	Start   int64     `json:"startValue"`
	End     int64     `json:"endValue"`
	Samples [][]int32 `json:"samples"`
	Weights []int64   `json:"weights"`
}

// WriteSpeedscope writes speedscope's JSON: a sampled profile of all threads, one per thread,
// and one of CPU time if it was measured. The weights of the others are wall nanoseconds, or
// samples if wall time was not measured. If the times of the samples are known, the profiles of
// threads are in true time order, and time that no sample covers has an empty stack. The
// profiles of all threads are sums, in no order.
func WriteSpeedscope(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	v := newView(p)
	f := speedscopeFile{Schema: "https://www.speedscope.app/file-format-schema.json",
		Name: clean(strings.Join(p.Command, " ")), Exporter: "seedwalk", Profiles: v.speedscope(p)}
	f.Shared.Frames = make([]speedscopeFrame, 0, len(v.symbols))
	for i := range v.symbols {
		f.Shared.Frames = append(f.Shared.Frames, speedscopeFrame{v.symbols[i].label(), v.symbols[i].module})
	}
	return json.NewEncoder(w).Encode(f)
}

func (v *view) speedscope(p *Profile) []speedscopeProfile {
	value := p.lineMetric()
	unit := map[string]string{"count": "none"}[metrics[value].unit]
	if unit == "" {
		unit = metrics[value].unit
	}
	if v.total[valueWall] > 0 {
		unit, value = "nanoseconds", valueWall
	}
	v.estimateCounts(p, value)
	out := []speedscopeProfile{newSpeedscope("all threads", unit)}
	for i := range p.Threads {
		out = append(out, newSpeedscope(threadLabel(&p.Threads[i]), unit))
	}
	timed := value == valueWall && len(p.Samples) > 0
	for i := range v.paths {
		pa := &v.paths[i]
		if pa.values[value] == 0 && v.total[value] > 0 && p.Stacks[i].Event != NoEvent {
			continue
		}
		out[0].add(pa, value)
		if !timed {
			out[1+pa.thread].add(pa, value)
		}
	}
	if timed {
		v.inOrder(p, out[1:])
	}
	if v.total[valueCPU] > 0 {
		cpu := newSpeedscope("all threads, CPU time", "nanoseconds")
		for i := range v.paths {
			if v.paths[i].values[valueCPU] > 0 {
				cpu.add(&v.paths[i], valueCPU)
			}
		}
		out = append(out, cpu)
	}
	return out
}

func newSpeedscope(name, unit string) speedscopeProfile {
	return speedscopeProfile{Type: "sampled", Name: name, Unit: unit, Samples: [][]int32{}, Weights: []int64{}}
}

// add appends a stack with one of its values.
func (o *speedscopeProfile) add(pa *path, value int) {
	o.weigh(pa.symbols, pa.values[value])
}

// inOrder adds the samples to the profiles of their threads, by time. The path of a stack has the
// stack's index.
func (v *view) inOrder(p *Profile, threads []speedscopeProfile) {
	begin := p.Start.UnixNano()
	for i := range p.Samples {
		s := &p.Samples[i]
		o := &threads[v.paths[s.Stack].thread]
		end := s.At - begin
		from := max(o.End, end-s.Wall) // samples of one thread do not overlap
		if from > o.End {
			o.weigh([]int32{}, from-o.End)
		}
		if end > from {
			o.weigh(v.paths[s.Stack].symbols, end-from)
		}
	}
}

// weigh appends a stack.
func (o *speedscopeProfile) weigh(stack []int32, weight int64) {
	o.Samples = append(o.Samples, stack)
	o.Weights = append(o.Weights, weight)
	o.End += weight
}

// threadLabel returns the label of a thread.
func threadLabel(t *Thread) string {
	if name := clean(t.Name); name != "" && t.ID == 0 {
		return name
	} else if name != "" {
		return fmt.Sprintf("%s (%d)", name, t.ID)
	}
	return fmt.Sprintf("thread %d", t.ID)
}

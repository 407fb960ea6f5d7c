package export

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/report/export/speedscope"
	"github.com/seedwalk/seedwalk/report/export/timeline"
)

// WriteSpeedscope writes speedscope's JSON: a sampled profile of all threads, one per thread, and one
// of CPU time if it was measured. The weights of the others are wall nanoseconds, or the metric of
// lineMetric, such as samples, if wall time was not measured. If the times of the samples are known,
// the profiles of threads are in the order of time. Time without a sample then has an empty stack.
// The profiles of all threads are sums, in no order.
func WriteSpeedscope(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	v := newView(p)
	f := speedscope.File{Schema: "https://www.speedscope.app/file-format-schema.json",
		Name: clean(strings.Join(p.Command, " ")), Exporter: "seedwalk", Profiles: v.speedscope(p)}
	f.Shared.Frames = make([]speedscope.Frame, 0, len(v.symbols))
	for i := range v.symbols {
		f.Shared.Frames = append(f.Shared.Frames,
			speedscope.Frame{Name: v.symbols[i].label(), File: v.symbols[i].module})
	}
	return json.NewEncoder(w).Encode(f)
}

func (v *view) speedscope(p *Profile) []speedscope.Profile {
	value := p.lineMetric()
	unit := map[string]string{"count": "none"}[metrics[value].unit]
	if unit == "" {
		unit = metrics[value].unit
	}
	if v.total[valueWall] > 0 {
		unit, value = "nanoseconds", valueWall
	}
	v.estimateCounts(p, value)
	out := []speedscope.Profile{newSpeedscope("all threads", unit)}
	for i := range p.Threads {
		out = append(out, newSpeedscope(threadLabel(&p.Threads[i]), unit))
	}
	timed := value == valueWall && len(p.Samples) > 0
	for i := range v.paths {
		pa := &v.paths[i]
		if pa.values[value] == 0 && v.total[value] > 0 && p.Stacks[i].Event != NoEvent {
			continue
		}
		out[0].Add(pa.symbols, pa.values[value])
		if !timed {
			out[1+pa.thread].Add(pa.symbols, pa.values[value])
		}
	}
	if timed {
		v.inOrder(p, out[1:])
	}
	if v.total[valueCPU] > 0 {
		cpu := newSpeedscope("all threads, CPU time", "nanoseconds")
		for i := range v.paths {
			if v.paths[i].values[valueCPU] > 0 {
				cpu.Add(v.paths[i].symbols, v.paths[i].values[valueCPU])
			}
		}
		out = append(out, cpu)
	}
	return out
}

func newSpeedscope(name, unit string) speedscope.Profile {
	return speedscope.Profile{Type: "sampled", Name: name, Unit: unit,
		Samples: [][]int32{}, Weights: []int64{}}
}

// inOrder adds the samples to the profiles of their threads, by time. The path of a stack has the
// stack's index.
func (v *view) inOrder(p *Profile, threads []speedscope.Profile) {
	begin := p.Start.UnixNano()
	lines := make([]timeline.Line[int32], len(threads))
	for i := range p.Samples {
		s := &p.Samples[i]
		lines[v.paths[s.Stack].thread].Add(s.At-begin-s.Wall, s.At-begin, s.Stack)
	}
	for i := range lines {
		o := &threads[i]
		for _, s := range lines[i].Spans() {
			if s.From > o.End {
				o.Add([]int32{}, s.From-o.End)
			}
			o.Add(v.paths[s.Value].symbols, s.To-s.From)
		}
	}
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

package export

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/google/pprof/profile"
)

// Labels of pprof samples that belong to a span.
const (
	labelTrace = "trace_id"
	labelSpan  = "span_id"
)

// spanPart is what the samples of one stack in one Activity add up to.
type spanPart struct {
	activity             *Activity
	count, wall, cpuHits int64
}

// spanParts lists the parts of each stack that belong to an Activity.
func (p *Profile) spanParts() map[int32][]spanPart {
	type key struct {
		stack int32
		of    *Activity
	}
	parts, at := map[int32][]spanPart{}, map[key]int{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Activity == nil {
			continue
		}
		k := key{s.Stack, s.Activity}
		n, ok := at[k]
		if !ok {
			n = len(parts[s.Stack])
			at[k], parts[s.Stack] = n, append(parts[s.Stack], spanPart{activity: s.Activity})
		}
		part := &parts[s.Stack][n]
		part.count++
		if part.wall += s.Wall; s.CPU {
			part.cpuHits++
		}
	}
	return parts
}

// timesOf divides the time nanos of all hits: it returns the share of part of them.
func timesOf(nanos, part, hits int64) int64 {
	high, low := bits.Mul64(uint64(nanos), uint64(min(part, hits)))
	n, _ := bits.Div64(high, low, uint64(hits))
	return int64(n)
}

// split divides the sample of each stack: one sample for each Activity, with its ids as labels, and
// one for the rest, without them. Samples without values are dropped.
func (w *pprofWriter) split() {
	all := w.p.spanParts()
	for stack := range w.p.Stacks {
		parts, rest := all[int32(stack)], w.out.Sample[stack]
		cpu, hits, seen := w.p.Stacks[stack].CPUNanos, w.p.Stacks[stack].cpuCount(), int64(0)
		for _, part := range parts {
			share := map[int]int64{valueSamples: part.count, valueWall: part.wall,
				valueCPUSamples: part.cpuHits}
			if hits > 0 {
				share[valueCPU] = timesOf(cpu, seen+part.cpuHits, hits) - timesOf(cpu, seen, hits)
				seen += part.cpuHits
			}
			ps := &profile.Sample{Location: rest.Location, NumLabel: rest.NumLabel,
				Label: maps.Clone(rest.Label)}
			ps.Label[labelTrace] = []string{fmt.Sprintf("%x", part.activity.Trace)}
			ps.Label[labelSpan] = []string{fmt.Sprintf("%x", part.activity.Span)}
			for k, at := range w.shown {
				v := min(share[at], rest.Value[k])
				ps.Value, rest.Value[k] = append(ps.Value, v), rest.Value[k]-v
			}
			w.out.Sample = append(w.out.Sample, ps)
		}
	}
	w.out.Sample = slices.DeleteFunc(w.out.Sample, func(s *profile.Sample) bool {
		return !slices.ContainsFunc(s.Value, func(v int64) bool { return v != 0 })
	})
}

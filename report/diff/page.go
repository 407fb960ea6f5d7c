package diff

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
)

// pageDiff is what page/diff.js of package export reads. Times of the second profile are divided
// by the scale in Rows, and by the page in its trees.
type pageDiff struct {
	Split     int        `json:"split"` // threads of the first profile
	Scale     float64    `json:"scale"`
	Scatter   [2]float64 `json:"scatter"` // of functions of the program, and of the runtime and the kernel
	PerSample float64    `json:"perSample"`
	Few       int        `json:"few"`   // samples of a node to be compared
	Floor     float64    `json:"floor"` // least difference
	// Standard errors that a difference must exceed, if up to 1<<index nodes are compared.
	Limits []float64 `json:"limits"`
	// Name, module, before, after, samples of both, difference, its error, 1 if significant.
	Rows [][9]any `json:"rows"`
}

// maxLimits bounds pageDiff.Limits: a page has fewer nodes than 1<<maxLimits.
const maxLimits = 32

// WritePage writes the page of the comparison of a and b, which are called by names.
func (r *Result) WritePage(w io.Writer, a, b *export.Profile, names [2]string) error {
	d := pageDiff{Split: len(a.Threads), Scale: r.Scale,
		Scatter: [2]float64{r.Scatter, max(r.Scatter, runtimeScatter)}, PerSample: r.perSample, Few: fewCount,
		Floor: r.floor, Rows: [][9]any{}}
	for i := range maxLimits {
		d.Limits = append(d.Limits, r.limit(1<<i))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		d.Rows = append(d.Rows, [9]any{row.Name, row.Module, row.A.Self,
			math.Round(float64(row.B.Self) / r.Scale), row.A.Count, row.B.Count,
			math.Round(row.Delta), math.Round(row.Error), rank(row.Significant)})
	}
	side := func(s Side) string {
		if export.Unit(a) == "nanoseconds" {
			return fmt.Sprintf("%v, %d samples", time.Duration(s.Self).Round(time.Millisecond), s.Count)
		}
		return fmt.Sprintf("%d, %d samples", s.Self, s.Count)
	}
	facts := append([]string{"before: " + side(r.A), "after: " + side(r.B)}, r.facts()...)
	p := both(a, b)
	p.Command = []string{names[0], "→", names[1]}
	return export.WriteComparison(w, p, facts, &d)
}

// both returns a profile of the stacks of both, with the threads of a first.
func both(a, b *export.Profile) *export.Profile {
	p := &export.Profile{First: a.First}
	for _, q := range []*export.Profile{a, b} {
		frames, modules, threads := int32(len(p.Frames)), int32(len(p.Modules)), len(p.Threads)
		p.Modules, p.Threads = append(p.Modules, q.Modules...), append(p.Threads, q.Threads...)
		for _, f := range q.Frames {
			if f.ModuleIndex >= 0 {
				f.ModuleIndex += modules
			}
			p.Frames = append(p.Frames, f)
		}
		for _, s := range q.Stacks {
			s.Thread += threads
			own := make([]int32, len(s.Frames))
			for i, f := range s.Frames {
				own[i] = f + frames
			}
			s.Frames = own
			p.Stacks = append(p.Stacks, s)
		}
		p.Stats.Samples += q.Stats.Samples
		for _, e := range q.Stats.Events {
			if !slices.ContainsFunc(p.Stats.Events,
				func(o export.EventStats) bool { return o.Event == e.Event }) {
				p.Stats.Events = append(p.Stats.Events, e)
			}
		}
	}
	return p
}

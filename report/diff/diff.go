// Package diff compares two profiles function by function and says which differences are more
// than noise.
//
// Sources: a sampled time of n samples has a relative standard error of 1/sqrt(n) (Poisson). The
// scale is the median of ratios, as in S. Anders, W. Huber, "Differential expression analysis for
// sequence count data", Genome Biology 11:R106 (2010). The scatter is estimated by the median
// absolute deviation (P. J. Huber, "Robust Statistics", section 5.1).
//
// Glossary. The scale is how much longer the second recording did the same work in general. The
// scatter is how much the times of a function differ between two runs beyond the error of
// sampling.
//
// Strategy. Times of the second profile are divided by the scale, so that one slower function
// does not make all others look faster, and a slower machine is no difference. A difference
// counts if it exceeds its standard error by a factor that the best of all functions would
// exceed by chance once in twenty comparisons, and if it is at least minShare of all time. The
// runtime and the kernel scatter more than the program.
//
// Known gaps: a program in which most of the time became slower evenly has a scale, and no
// difference. The scale is part of the result.
package diff

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
)

const (
	minShare   = 0.005 // of all time: a smaller difference is not worth a line
	minScatter = 0.04  // between two runs, at least
	fewCount   = 20    // functions with fewer samples say nothing about scale and scatter
	fewRatios  = 8     // so do fewer functions
	alarm      = 0.05  // the chance of a false difference in a comparison

	// The work of the runtime and the kernel depends on the moment: which methods are compiled again,
	// how many collections there are. It scatters more than that of the program.
	runtimeScatter = 0.2
)

// Side is a function in one profile.
type Side struct {
	Self, Total int64 // in the metric's unit
	Count       int64 // samples of Self
}

// Row is a function in both profiles.
type Row struct {
	Name, Module string
	Class        export.Class
	A, B         Side
	Delta        float64 // B.Self divided by the scale, minus A.Self
	Error        float64 // standard error of Delta
	Significant  bool    // the difference is more than noise
}

// Result is a comparison.
type Result struct {
	A, B    Side    // sums over all functions; Total equals Self
	Scale   float64 // of B, 1 = both profiles did the same work in the same time
	Scatter float64 // relative
	Rows    []Row   // the significant ones first, then by Delta: what got slower is first

	perSample, floor float64 // time of a sample; least difference that counts
}

// Differs reports whether there is a difference beyond noise.
func (r *Result) Differs() bool { return len(r.Rows) > 0 && r.Rows[0].Significant }

// Compare compares two profiles by the self times of their functions.
func Compare(a, b *export.Profile) (*Result, error) {
	first, err := export.Functions(a)
	if err != nil {
		return nil, err
	}
	second, err := export.Functions(b)
	if err != nil {
		return nil, err
	}
	r := &Result{Scale: 1, Rows: join(first, second)}
	for i := range r.Rows {
		row := &r.Rows[i]
		r.A.Self, r.A.Count = r.A.Self+row.A.Self, r.A.Count+row.A.Count
		r.B.Self, r.B.Count = r.B.Self+row.B.Self, r.B.Count+row.B.Count
	}
	r.A.Total, r.B.Total = r.A.Self, r.B.Self
	r.Scale = r.scale()
	r.Scatter = r.scatter()
	r.judge()
	return r, nil
}

type key struct{ name, module string }

// join pairs the functions by name and module.
func join(a, b []export.Function) []Row {
	index := map[key]int{}
	var rows []Row
	at := func(f *export.Function) *Row {
		k := key{f.Name, f.Module}
		i, ok := index[k]
		if !ok {
			i = len(rows)
			index[k] = i
			rows = append(rows, Row{Name: f.Name, Module: f.Module, Class: f.Class})
		}
		return &rows[i]
	}
	for i := range a {
		add(&at(&a[i]).A, &a[i])
	}
	for i := range b {
		add(&at(&b[i]).B, &b[i])
	}
	return rows
}

func add(s *Side, f *export.Function) {
	s.Self, s.Total, s.Count = s.Self+f.Self, s.Total+f.Total, s.Count+f.SelfCount
}

// compared are the functions with enough samples in both profiles.
func (r *Result) compared() (rows []*Row) {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.A.Count >= fewCount && row.B.Count >= fewCount {
			rows = append(rows, row)
		}
	}
	return rows
}

// scale returns the median of the ratios B/A, weighted by time.
func (r *Result) scale() float64 {
	rows := r.compared()
	if len(rows) < fewRatios {
		return 1
	}
	slices.SortFunc(rows, func(x, y *Row) int { return cmp.Compare(x.ratio(), y.ratio()) })
	var all, seen float64
	for _, row := range rows {
		all += row.weight()
	}
	for _, row := range rows {
		if seen += row.weight(); 2*seen >= all {
			return row.ratio()
		}
	}
	return 1
}

func (row *Row) ratio() float64 { return float64(row.B.Self) / float64(max(row.A.Self, 1)) }

// weight bounds the influence of one hot function.
func (row *Row) weight() float64 { return math.Sqrt(float64(row.A.Count)) }

// normalMAD is the standard deviation of a normal distribution by its median absolute deviation.
const normalMAD = 1.4826

// scatter returns how much the ratios scatter beyond the error of sampling.
func (r *Result) scatter() float64 {
	rows := r.compared()
	if len(rows) < fewRatios {
		return minScatter
	}
	var deviations, errors []float64
	for _, row := range rows {
		deviations = append(deviations, math.Abs(math.Log(row.ratio()/r.Scale)))
		errors = append(errors, 1/float64(row.A.Count)+1/float64(row.B.Count))
	}
	slices.Sort(deviations)
	slices.Sort(errors)
	spread := normalMAD * deviations[len(deviations)/2]
	return max(minScatter, math.Sqrt(max(0, spread*spread-errors[len(errors)/2])))
}

// judge computes the differences, decides which are significant, and sorts the rows.
func (r *Result) judge() {
	if n := r.A.Count + r.B.Count; n > 0 {
		r.perSample = float64(r.A.Self+r.B.Self) / float64(n)
	}
	candidates := 0
	for i := range r.Rows {
		if r.Rows[i].sampled() {
			candidates++
		}
	}
	limit := limit(candidates)
	r.floor = minShare * float64(max(r.A.Self, r.B.Self))
	for i := range r.Rows {
		row := &r.Rows[i]
		a, b := float64(row.A.Self), float64(row.B.Self)/r.Scale
		row.Delta = b - a // if nothing changed, both are their mean, which scatters
		row.Error = math.Sqrt(variance(a, row.A.Count, r.perSample) + variance(b, row.B.Count, r.perSample) + r.scatterOf(row)*(a+b)*(a+b)/4)
		row.Significant = row.sampled() && math.Abs(row.Delta) > limit*row.Error && math.Abs(row.Delta) >= r.floor
	}
	slices.SortStableFunc(r.Rows, func(x, y Row) int {
		if x.Significant != y.Significant {
			return cmp.Compare(rank(y.Significant), rank(x.Significant))
		}
		return cmp.Or(cmp.Compare(y.Delta, x.Delta), strings.Compare(x.Name, y.Name))
	})
}

// scatterOf returns the squared scatter of a row.
func (r *Result) scatterOf(row *Row) float64 {
	switch row.Class {
	case export.ClassRuntime, export.ClassKernel, export.ClassStub:
		return max(r.Scatter, runtimeScatter) * max(r.Scatter, runtimeScatter)
	}
	return r.Scatter * r.Scatter
}

// sampled reports whether a row has enough samples to be judged. The time of what was not sampled, such as
// that of short threads, is an estimate.
func (row *Row) sampled() bool { return row.A.Count+row.B.Count >= fewCount }

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// limit returns how many standard errors a difference must exceed, if n are compared.
func limit(n int) float64 { return quantile(alarm / 2 / float64(max(n, 1))) }

// variance is that of a sampled time. No sample says that there was at most about one.
func variance(t float64, n int64, perSample float64) float64 {
	if n == 0 {
		return perSample * perSample
	}
	return t * t / float64(n)
}

// quantile returns z with P(Z > z) = p of the normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(1-2*p) }

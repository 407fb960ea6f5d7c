// Package diff compares two profiles function by function and says which differences are more
// than noise.
//
// Sources: the error of a sampled time of n samples is 1/sqrt(n) of it (Poisson). The scale is the
// median of ratios (S. Anders, W. Huber, Genome Biology 11:R106, 2010). The test is Student's t with a
// variance that is a mean of an expected and an observed one (G. K. Smyth, "Linear models and empirical
// Bayes methods", Statistical Applications in Genetics and Molecular Biology 3:3, 2004). The correction for
// many comparisons is Bonferroni's. A filter that does not depend on the difference comes before it
// (R. Bourgon, R. Gentleman, W. Huber, PNAS 107:9546, 2010).
//
// Glossary. The scale is how much longer the second recording did the same work in general. The
// scatter is how much the times of a function differ between two runs beyond the error of
// sampling, relative to the time.
//
// Strategy. Times of the second profile are divided by the scale. So one slower function does not make
// all others look faster, and a slower machine is no difference. Each function with enough time is tested:
// its difference is divided by the standard error of the difference. That error is made of the sampling
// error of both times and of the scatter. The chance of any false difference in a comparison is at most
// alarm. The scatter of the program's functions is a robust estimate from the two profiles, averaged with
// the usual scatter between runs of one program. The runtime and the kernel scatter more than the program.
//
// Known gaps: a program in which most of the time became slower evenly has a scale, and no
// difference. The scale is part of the result. A function whose time depends on chance more than that of
// the other functions may be a false difference.
package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export"
)

const (
	minShare  = 0.005 // of all time: a smaller difference is not worth a line
	fewCount  = 20    // functions with fewer samples say nothing about scale and scatter
	fewRatios = 8     // so do fewer functions about the scale
	fewCommon = 0.5   // of Common: below, the profiles may be of different programs

	// So do fewer functions about the scatter: the standard error of its estimate is a quarter of it or more.
	fewScatters = 16

	// The chance of a false difference in a comparison. Then at most 5 of 100 comparisons have one with
	// a probability of 98 % (binomial distribution).
	alarm = 0.02

	// What 119 pairs of runs of one program had: the scatter of its functions, and its degrees of freedom,
	// by the variance of the squared scatter between functions.
	usualScatter = 0.04
	usualFreedom = 6

	// The work of the runtime and the kernel depends on the moment: which methods are compiled again,
	// how many collections there are. In the same pairs, their functions had this scatter.
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
	Scatter float64 // of the program's functions
	Common  float64 // part of the time of the program's own functions that is in functions of both profiles
	Scaled  bool    // enough functions were compared for a scale; otherwise Scale is 1
	Rows    []Row   // the significant ones first, then by Delta: what got slower is first

	freedom          float64 // degrees of freedom of Scatter
	perSample, floor float64 // time of a sample; least difference that counts
}

// Differs reports whether there is a difference beyond noise.
func (r *Result) Differs() bool { return len(r.Rows) > 0 && r.Rows[0].Significant }

// Compare compares two profiles by the self times of their functions. Profiles with different metrics are an
// error.
func Compare(a, b *export.Profile) (*Result, error) {
	if one, other := export.Metric(a), export.Metric(b); one != other {
		return nil, fmt.Errorf("the first recording has the metric %s and the second one %s: choose one with --metric",
			one, other)
	}
	first, err := export.Functions(a)
	if err != nil {
		return nil, err
	}
	second, err := export.Functions(b)
	if err != nil {
		return nil, err
	}
	r := &Result{Scale: 1, Scatter: usualScatter, freedom: usualFreedom, Rows: join(first, second)}
	for i := range r.Rows {
		row := &r.Rows[i]
		r.A.Self, r.A.Count = r.A.Self+row.A.Self, r.A.Count+row.A.Count
		r.B.Self, r.B.Count = r.B.Self+row.B.Self, r.B.Count+row.B.Count
	}
	r.A.Total, r.B.Total = r.A.Self, r.B.Self
	r.floor = minShare * float64(max(r.A.Self, r.B.Self))
	r.Scale, r.Scaled = r.scale()
	r.Common = r.common()
	r.estimateScatter()
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
		i := intern.At(index, &rows, k,
			func() Row { return Row{Name: f.Name, Module: f.Module, Class: f.Class} })
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

// common returns Common: the mean of both profiles. Functions with few samples do not count, because a short
// recording misses many by chance. common is 1 if a profile has no other functions of the program.
func (r *Result) common() float64 {
	var all, both [2]float64
	for i := range r.Rows {
		row := &r.Rows[i]
		own := row.Class == export.ClassManaged || row.Class == export.ClassNative
		if !own || row.A.Count+row.B.Count < fewCount {
			continue
		}
		for k, self := range [2]int64{row.A.Self, row.B.Self} {
			if all[k] += float64(self); row.A.Count > 0 && row.B.Count > 0 {
				both[k] += float64(self)
			}
		}
	}
	if all[0] == 0 || all[1] == 0 {
		return 1
	}
	return (both[0]/all[0] + both[1]/all[1]) / 2
}

// scale returns the median of the ratios B/A, weighted by time, or 1 and false if there are too few.
func (r *Result) scale() (scale float64, ok bool) {
	rows := r.compared()
	if len(rows) < fewRatios {
		return 1, false
	}
	slices.SortFunc(rows, func(x, y *Row) int { return cmp.Compare(x.ratio(), y.ratio()) })
	var all, seen float64
	for _, row := range rows {
		all += row.weight()
	}
	for _, row := range rows {
		if seen += row.weight(); 2*seen >= all {
			return row.ratio(), true
		}
	}
	return 1, false
}

func (row *Row) ratio() float64 { return float64(row.B.Self) / float64(max(row.A.Self, 1)) }

// weight bounds the influence of one hot function.
func (row *Row) weight() float64 { return math.Sqrt(float64(row.A.Count)) }

// Of a normal distribution, this part is within one standard deviation. An estimate of the deviation by this
// quantile has the given part of the degrees of freedom of the best estimate.
const (
	normalPart       = 0.683
	normalEfficiency = 0.54
)

// estimateScatter finds the scatter at which as many of the program's functions differ by less than one
// standard error as of a normal distribution. Up to a third of them may have changed. The usual scatter
// counts as one function (a unit information prior: R. Kass, L. Wasserman, Journal of the American
// Statistical Association 90:928, 1995).
func (r *Result) estimateScatter() {
	var squares, variances []float64 // of relative differences, and of their sampling errors
	for _, row := range r.compared() {
		if !row.ofRuntime() && r.candidate(row) {
			d := math.Log(row.ratio() / r.Scale)
			squares, variances = append(squares, d*d),
				append(variances, 1/float64(row.A.Count)+1/float64(row.B.Count))
		}
	}
	n := float64(len(squares))
	if n < fewScatters {
		return
	}
	low, high, z := 0.0, slices.Max(squares), make([]float64, len(squares)) // squared scatter
	for range 50 {
		middle := (low + high) / 2
		for i := range z {
			z[i] = squares[i] / (variances[i] + middle)
		}
		if slices.Sort(z); z[int(normalPart*n)] > 1 {
			low = middle
		} else {
			high = middle
		}
	}
	r.freedom = max(usualFreedom, normalEfficiency*n)
	r.Scatter = math.Sqrt((usualScatter*usualScatter + (n-1)*low) / n)
}

// judge computes the differences, decides which are significant, and sorts the rows.
func (r *Result) judge() {
	if n := r.A.Count + r.B.Count; n > 0 {
		r.perSample = float64(r.A.Self+r.B.Self) / float64(n)
	}
	candidates := 0
	for i := range r.Rows {
		if r.candidate(&r.Rows[i]) {
			candidates++
		}
	}
	limit := r.limit(candidates)
	for i := range r.Rows {
		row := &r.Rows[i]
		a, b := float64(row.A.Self), float64(row.B.Self)/r.Scale
		row.Delta = b - a
		mean := logMean(a, b)
		row.Error = math.Sqrt(variance(a, row.A.Count, r.perSample) + variance(b, row.B.Count, r.perSample) +
			r.scatterOf(row)*mean*mean)
		row.Significant = r.candidate(row) && math.Abs(row.Delta) > limit*row.Error &&
			math.Abs(row.Delta) >= r.floor
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
	if row.ofRuntime() {
		return max(r.Scatter, runtimeScatter) * max(r.Scatter, runtimeScatter)
	}
	return r.Scatter * r.Scatter
}

func (row *Row) ofRuntime() bool {
	return row.Class == export.ClassRuntime || row.Class == export.ClassKernel ||
		row.Class == export.ClassStub
}

// candidate reports whether a row can be judged: it has enough samples, and enough time for a difference
// that counts. The time of what was not sampled, such as that of short threads, is an estimate.
func (r *Result) candidate(row *Row) bool {
	return row.A.Count+row.B.Count >= fewCount && float64(row.A.Self)+float64(row.B.Self)/r.Scale >= r.floor
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// limit returns how many standard errors a difference must exceed, if n are compared.
func (r *Result) limit(n int) float64 { return quantile(alarm/2/float64(max(n, 1)), r.freedom) }

// variance is that of a sampled time. No sample says that there was at most about one.
func variance(t float64, n int64, perSample float64) float64 {
	if n == 0 {
		return perSample * perSample
	}
	return t * t / float64(n)
}

// logMean returns the logarithmic mean. The scatter multiplies times, so that b-a divided by its error is the
// logarithm of b/a divided by the scatter.
func logMean(a, b float64) float64 {
	if min(a, b) <= 0 || math.Abs(b-a) < 1e-6*a {
		return min(a, b)
	}
	return (b - a) / math.Log(b/a)
}

// quantile returns t with P(T > t) = p of Student's distribution with n degrees of freedom. If n is at
// least 6 and p at least 1e-4, P(T > t) is within 20 % of p (M. Abramowitz, I. Stegun, "Handbook of
// Mathematical Functions", 26.7.5).
func quantile(p, n float64) float64 {
	z := math.Sqrt2 * math.Erfinv(1-2*p)
	z2 := z * z
	return z * (1 + (z2+1)/(4*n) + ((5*z2+16)*z2+3)/(96*n*n) + (((3*z2+19)*z2+17)*z2-15)/(384*n*n*n))
}

package export

import (
	"bufio"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// foldedName replaces the separators of the format in a name.
var foldedName = strings.NewReplacer(";", ":")

// WriteFolded writes one line per distinct stack: the names from root to leaf, separated by
// ';', then a space and a number: nanoseconds of CPU time, or samples if CPU time was not
// measured or all samples are of waiting threads. In a recording of events only, the number is
// the nanoseconds, bytes, or count of the first requested event. Profile.First chooses another
// metric. As samples, CPU time without samples counts as the number that it would have had.
// Threads are merged. Lines are sorted. A ';' in a name becomes ':'.
func WriteFolded(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	v, at := newShortView(p), p.defaultMetric()
	v.estimateCounts(p, at)
	counts := make(map[string]int64)
	for i := range v.paths {
		if n := v.paths[i].values[at]; n > 0 {
			counts[v.fold(&v.paths[i])] += n
		}
	}
	lines := make([]string, 0, len(counts))
	for l := range counts {
		lines = append(lines, l)
	}
	slices.Sort(lines)
	b := bufio.NewWriter(w)
	for _, l := range lines {
		if counts[l] > 0 {
			b.WriteString(l + " " + strconv.FormatInt(counts[l], 10) + "\n")
		}
	}
	return b.Flush()
}

// estimateCounts sets the counts of paths without samples to the number of samples that their
// CPU time would have had, at least 1.
func (v *view) estimateCounts(p *Profile, at int) {
	if at != valueSamples {
		return
	}
	period := p.periodNanos()
	for i := range v.paths {
		if c := &v.paths[i].values; c[valueSamples] == 0 && c[valueCPU] > 0 {
			c[valueSamples] = max(1, int64(math.Round(float64(c[valueCPU])/period)))
		}
	}
}

func (v *view) fold(pa *path) string {
	var b strings.Builder
	for i, s := range pa.symbols {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(foldedName.Replace(v.symbols[s].label()))
	}
	return b.String()
}

package export

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Function is a function, or a run of frames with one role, with its times.
type Function struct {
	Name, Module string
	Class        Class
	Doubtful     bool
	Self, Total  int64 // in the metric's unit
	SelfCount    int64 // samples of Self
	TotalCount   int64 // samples of Total
}

// Functions returns the functions of a profile, the one with most self time first. It measures
// CPU time, or samples if CPU time was not measured (see Profile.First).
func Functions(p *Profile) ([]Function, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	p = p.sampledFor()
	v := newShortView(p)
	by := p.defaultMetric()
	counts := metrics[by].count
	all := make([]Function, len(v.symbols))
	last := make([]int, len(v.symbols)) // path that counted the symbol's total, plus one
	for i := range v.paths {
		pa := &v.paths[i]
		for depth, s := range pa.symbols {
			f := &all[s]
			if last[s] != i+1 { // recursion counts once
				last[s] = i + 1
				f.Total += pa.values[by]
				f.TotalCount += pa.values[counts]
			}
			if depth == len(pa.symbols)-1 {
				f.Self += pa.values[by]
				f.SelfCount += pa.values[counts]
			}
		}
	}
	for i := range all {
		s := &v.symbols[i]
		all[i].Name, all[i].Module, all[i].Class, all[i].Doubtful = s.name, s.module, s.class, s.doubtful
	}
	slices.SortStableFunc(all, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// sampledFor returns the profile without events, unless a metric of events is shown first.
func (p *Profile) sampledFor() *Profile {
	if p.defaultMetric() >= valueWaits {
		return p
	}
	return p.sampled()
}

// WriteTop writes a table of the functions with most self time, at most n rows.
func WriteTop(w io.Writer, p *Profile, n int, opt TextOptions) error {
	all, err := Functions(p)
	if err != nil {
		return err
	}
	opt = opt.filled()
	by := p.defaultMetric()
	m := &metrics[by]
	var whole, samples int64
	for i := range all {
		whole += all[i].Self
		samples += all[i].SelfCount
	}
	if whole <= 0 {
		_, err := io.WriteString(w, noSamples)
		return err
	}
	var b strings.Builder
	head := m.label + ": " + thousands(whole)
	if m.unit == "nanoseconds" {
		head = fmt.Sprintf("%s: %s, %s", m.label, shortTime(time.Duration(whole)), plural(samples, "sample"))
	}
	b.WriteString(opt.paint(sgrDim, head) + "\n" + opt.paint(sgrDim, "   self   total  samples function") + "\n")
	weak := false
	for i := range all[:min(n, len(all))] {
		f := &all[i]
		if f.Self == 0 {
			break
		}
		weak = weak || isWeak(f.SelfCount)
		b.WriteString(f.line(whole, opt) + "\n")
	}
	if weak {
		b.WriteString(opt.paint(sgrDim, weakLegend) + "\n")
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// line is a row of the table.
func (f *Function) line(whole int64, opt TextOptions) string {
	name := f.Name
	if f.Doubtful {
		name = "? " + name
	}
	module := ""
	if f.Module != "" && !strings.HasPrefix(f.Name, f.Module) {
		module = "  " + f.Module
	}
	room := opt.Width - numberCols - 3
	name = fit(name, max(room-utf8.RuneCountInString(module), room/2, 10))
	module = cut(module, max(0, room-utf8.RuneCountInString(name)))
	return fmt.Sprintf("%7s %7s %8s ", share(f.Self, f.SelfCount, whole), share(f.Total, f.TotalCount, whole), thousands(f.SelfCount)) +
		opt.paint(classSGR[f.Class], classMarks[f.Class]+" "+name) + opt.paint(sgrDim, module)
}

// fewSamples is the number of samples below which a time is marked as weak: its standard
// error is a third of it, or more.
const fewSamples = 10

// isWeak reports whether a time with count samples is marked. A time without samples comes
// from a clock and is exact.
func isWeak(count int64) bool { return count > 0 && count < fewSamples }

// share formats a percentage with count samples. It returns "" for a negative part, shows only
// the digits that the samples support, and marks a weak value with a tilde.
func share(part, count, all int64) string {
	if part < 0 {
		return ""
	}
	f := 100 * float64(part) / float64(all)
	text := fmt.Sprintf("%.*f %%", shareDigits(f, count), f)
	if least := math.Pow10(-shareDigits(f, count)); part > 0 && f < least/2 {
		text = fmt.Sprintf("<%.*f %%", shareDigits(f, count), least)
	}
	if isWeak(count) {
		return "~" + text
	}
	return text
}

// shareDigits returns how many decimals the samples support: none if the standard error is
// half a percent or more, else one.
func shareDigits(percent float64, count int64) int {
	if count <= 0 {
		return 1
	}
	n := float64(count)
	deviation := percent / math.Sqrt(n) * math.Sqrt(max(0, 1-percent/100))
	if max(deviation, percent/n) >= 0.5 { // of all or nearly all, one sample more or less
		return 0
	}
	return 1
}

package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export/category"
	"github.com/seedwalk/seedwalk/report/export/estimate"
	"github.com/seedwalk/seedwalk/report/export/shorten"
)

// Function is a row of the table: a function, a run of frames with one role, or a group.
type Function struct {
	Name, Module string
	Class        Class
	Doubtful     bool
	Self, Total  int64 // in the metric's unit
	SelfCount    int64 // samples of Self
	TotalCount   int64 // samples of Total
	group        bool  // several functions: without a class
}

// stackCategories returns the category of each stack.
func (p *Profile) stackCategories() []category.Category {
	kinds := make([]category.Kind, len(p.Frames))
	for i := range p.Frames {
		f := &p.Frames[i]
		kinds[i] = category.Frame(f.Class.String(), f.Name, f.Module)
	}
	all := make([]category.Category, len(p.Stacks))
	for i := range p.Stacks {
		s := &p.Stacks[i]
		kind := func(k int) category.Kind { return kinds[s.Frames[k]] }
		all[i] = category.Stack(len(s.Frames), kind, category.ThreadRole(p.Threads[s.Thread].Name))
	}
	return all
}

// Groups are the values of by that WriteGroups accepts.
var Groups = []string{"category", "module", "thread"}

// grouped returns the groups of a profile as functions, the one with the largest Self first. Rows by
// category or thread have no total. By module, a stack adds to the Self of its leaf's module, and to the
// Total of every module on it.
func grouped(p *Profile, by string) []Function {
	metric := p.defaultMetric()
	var all []Function
	index := map[string]int{}
	at := func(name string) *Function {
		i := intern.At(index, &all, name,
			func() Function { return Function{Name: name, Total: -1, group: true} })
		return &all[i]
	}
	categories := p.stackCategories()
	for i := range p.Stacks {
		s := &p.Stacks[i]
		v := valuesOf(s)
		value, count := v[metric], v[metrics[metric].count]
		name := categories[i].String()
		if by == "thread" {
			name = threadLabel(&p.Threads[s.Thread])
		} else if by == "module" {
			name = "[no module]"
			if len(s.Frames) > 0 {
				name = p.moduleOf(s.Frames[0])
			}
			seen := map[string]bool{}
			for _, f := range s.Frames {
				if m := p.moduleOf(f); !seen[m] {
					seen[m] = true
					g := at(m)
					g.Total, g.TotalCount = max(0, g.Total)+value, g.TotalCount+count
				}
			}
		}
		g := at(name)
		g.Self, g.SelfCount = g.Self+value, g.SelfCount+count
	}
	sortFunctions(all)
	return all
}

// moduleOf returns the name of a frame's module, or of the kind of a frame without one.
func (p *Profile) moduleOf(i int32) string {
	f := &p.Frames[i]
	if f.Module == "" || f.Class == ClassGap {
		return "[" + f.Class.String() + "]"
	}
	return clean(f.Module)
}

func sortFunctions(all []Function) {
	slices.SortStableFunc(all, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total),
			strings.Compare(a.Name, b.Name))
	})
}

// Functions returns the functions of a profile, the one with the largest Self first. Profile.First chooses
// the metric. Without First, the metric is CPU time, or samples if CPU time was not measured. If the profile
// has events only, the metric is the amount of the first event.
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
	sortFunctions(all)
	return all, nil
}

// sampledFor returns the profile without events, unless a metric of events is shown first.
func (p *Profile) sampledFor() *Profile {
	if p.defaultMetric() >= valueWaits {
		return p
	}
	return p.sampled()
}

// WriteTop writes a table of the functions with the largest Self, at most n rows. It leaves out rows with
// Self 0.
func WriteTop(w io.Writer, p *Profile, n int, opt TextOptions) error {
	all, err := Functions(p)
	if err != nil {
		return err
	}
	return writeTable(w, p, all, "function", n, opt)
}

// WriteGroups writes the same table by category, module, or thread (see Groups).
func WriteGroups(w io.Writer, p *Profile, by string, n int, opt TextOptions) error {
	if err := p.Check(); err != nil {
		return err
	}
	return writeTable(w, p, grouped(p.sampledFor(), by), by, n, opt)
}

func writeTable(w io.Writer, p *Profile, all []Function, what string, n int, opt TextOptions) error {
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
	head := m.label + ": " + Thousands(whole)
	if m.unit == "nanoseconds" {
		head = fmt.Sprintf("%s: %s, %s", m.label, shortTime(time.Duration(whole)), plural(samples, "sample"))
	}
	b.WriteString(opt.paint(sgrDim, head) + "\n" + opt.paint(sgrDim, "   self   total  samples "+what) + "\n")
	weak := false
	for i := range all[:min(n, len(all))] {
		f := &all[i]
		if f.Self == 0 {
			break
		}
		weak = weak || estimate.IsWeak(f.SelfCount)
		b.WriteString(f.line(whole, opt) + "\n")
	}
	if weak {
		b.WriteString(opt.paint(sgrDim, weakLegend) + "\n")
	}
	_, err := io.WriteString(w, b.String())
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
		module = f.Module
	}
	name, module = shorten.Both(name, module, opt.Width-numberCols-3)
	return fmt.Sprintf("%7s %7s %8s ", estimate.Share(f.Self, f.SelfCount, whole),
		estimate.Share(f.Total, f.TotalCount, whole), Thousands(f.SelfCount)) +
		f.paint(name, opt) + opt.paint(sgrDim, module)
}

// paint returns the name behind the mark of its class, in its color.
func (f *Function) paint(name string, opt TextOptions) string {
	if f.group {
		return name
	}
	return opt.paint(classSGR[f.Class], classMarks[f.Class]+" "+name)
}

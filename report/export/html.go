package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export/category"
	"github.com/seedwalk/seedwalk/report/export/page"
)

// pageData is the data of the page while it is made.
type pageData struct {
	page.Data
	modules, sources page.Texts
	calls            page.Calls
}

var _ [page.DoubtfulBit - numClasses]struct{} // above all classes

// WriteHTML writes a flame graph in one file. It opens in any browser and uses no network.
func WriteHTML(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	return newPageData(p, newPageView(p)).Write(w)
}

// WriteComparison writes the page of two recordings: p holds the stacks of both, the threads of the
// first one before those of the other. diff is what package diff found, for page/diff.js.
func WriteComparison(w io.Writer, p *Profile, facts []string, diff any) error {
	if err := p.Check(); err != nil {
		return err
	}
	d := newPageData(p, newShortView(p))
	d.Facts, d.Notes, d.Warning, d.Diff = facts, []string{}, "", diff
	return d.Write(w)
}

func pageTitle(p *Profile) string {
	title := clean(strings.Join(p.Command, " "))
	if title == "" && p.PID > 0 {
		title = fmt.Sprintf("process %d", p.PID)
	}
	return cmp.Or(title, "profile")
}

func newPageData(p *Profile, v *view) *pageData {
	d := &pageData{calls: page.Calls{}}
	d.Title, d.Facts, d.Notes, d.Warning, d.Classes = pageTitle(p), pageFacts(p),
		pageNotes(p), pageWarning(p), classNames[:]
	d.Symbols, d.Threads = [][3]any{}, [][2]any{}
	d.addSymbols(v)
	parent, symbol, ends := v.merge()
	for i := range parent { // how far a node is behind its caller: small numbers are short
		parent[i] = int32(i) - parent[i]
	}
	d.Parents, d.Nodes = parent[1:], symbol[1:]
	d.addStacks(p, v, ends)
	d.addSamples(p)
	d.Modules, d.Sources, d.Calls = d.modules.List(), d.sources.List(), d.calls.List()
	return d
}

func (d *pageData) addSymbols(v *view) {
	for i := range v.symbols {
		s := &v.symbols[i]
		m := d.modules.At(s.module)
		class := int(s.class)
		if s.doubtful {
			class += page.DoubtfulBit
		}
		d.Symbols = append(d.Symbols, [3]any{s.name, m, class})
	}
	if v.runs != nil {
		d.Runs = v.runs.List
	}
}

func (d *pageData) addStacks(p *Profile, v *view, ends []int32) {
	d.Stacks = make([][]int64, len(p.Threads))
	samples := make([]int64, len(p.Threads))
	shown := p.shown()
	d.First = slices.Index(shown, p.defaultMetric())
	for _, at := range shown {
		m := &metrics[at]
		d.Metrics = append(d.Metrics, [4]any{m.name, m.label, m.unit, slices.Index(shown, m.count)})
	}
	d.Categories, d.Kinds, d.Places = category.Names, make([][]int32, len(p.Threads)),
		make([][]int32, len(p.Threads))
	categories := p.stackCategories()
	for i := range v.paths {
		pa := &v.paths[i]
		d.Kinds[pa.thread] = append(d.Kinds[pa.thread], int32(categories[i]))
		d.Places[pa.thread] = append(d.Places[pa.thread], d.place(frameAt(p, &p.Stacks[i], 0)))
		d.addCalls(p, &p.Stacks[i], v, pa)
		samples[pa.thread] += pa.values[valueSamples]
		d.Stacks[pa.thread] = append(d.Stacks[pa.thread], int64(ends[i]))
		for _, at := range shown {
			d.Stacks[pa.thread] = append(d.Stacks[pa.thread], pa.values[at])
		}
	}
	for i := range p.Threads {
		d.Threads = append(d.Threads, [2]any{threadLabel(&p.Threads[i]), samples[i]})
		d.Stacks[i] = list(d.Stacks[i])
	}
}

// addCalls adds the calls of a stack.
func (d *pageData) addCalls(p *Profile, s *Stack, v *view, pa *path) {
	if v.short { // its symbols are not those of the frames
		return
	}
	n := pa.values[metrics[p.defaultMetric()].count]
	root := 0 // where the outermost frame is
	if _, missing := unmarkedGap(p, s); missing {
		root = 1
	}
	for i := len(s.Frames) - 1; i > 0 && n > 0; i-- {
		f := &p.Frames[s.Frames[i]]
		if f.File == "" {
			continue
		}
		callees := page.Run{pa.symbols[root+len(s.Frames)-i], -1}
		if callees[0] < 0 {
			callees = v.runs.List[-1-callees[0]]
		}
		for _, c := range callees {
			if c >= 0 {
				d.calls[[3]int32{v.of[s.Frames[i]], c, d.place(f)}] += n
			}
		}
	}
}

// place returns the index of a frame's place in the source, 0 if it is unknown.
func (d *pageData) place(f *Frame) int32 {
	if f == nil || f.File == "" {
		return 0
	}
	return d.sources.At(fmt.Sprintf("%s:%d", clean(f.File), f.Line))
}

// maxPageSamples bounds the samples in a page. With more, the page has no time axis.
const maxPageSamples = 300_000

// addSamples adds the lanes and the times of the samples, unless these are too many. A sample refers to
// the row of its stack, counted over all threads.
func (d *pageData) addSamples(p *Profile) {
	d.Length = p.Duration.Microseconds()
	for _, l := range p.lanes() {
		row := page.Lane{Name: laneNames[l.event]}
		for _, s := range l.spans {
			row.Spans = append(row.Spans, s.from, s.to-s.from)
		}
		d.Lanes = append(d.Lanes, row)
	}
	if len(p.Samples) > maxPageSamples {
		d.Notes = append(d.Notes,
			fmt.Sprintf("no time axis: the recording has more than %s; seedwalk report --since and --until show a part of its time", plural(maxPageSamples, "sample")))
		return
	}
	first := make([]int64, len(p.Threads)+1) // row of a thread's first stack
	for i := range p.Stacks {
		first[p.Stacks[i].Thread+1]++
	}
	for t := range p.Threads {
		first[t+1] += first[t]
	}
	row := make([]int64, len(p.Stacks))
	for i := range p.Stacks {
		row[i] = first[p.Stacks[i].Thread]
		first[p.Stacks[i].Thread]++
	}
	last := int64(0) // microseconds since the start
	for i := range p.Samples {
		s := &p.Samples[i]
		at := max(last, (s.At-p.Start.UnixNano())/1000)
		wall := 2 * (s.Wall / 1000)
		if s.CPU {
			wall++
		}
		d.Samples = append(d.Samples, at-last, row[s.Stack], wall)
		last = at
	}
}

func pageFacts(p *Profile) []string {
	s := &p.Stats
	facts := []string{plural(s.Samples, "sample"), percent(s.Complete, s.Samples) + " complete"}
	if p.Duration > 0 {
		facts = append(facts, shortTime(p.Duration))
	}
	if count, _ := p.sampledCPU(); count > 0 && p.Stats.Way != WaySnapshot {
		facts = append(facts, Thousands(p.cpuRate())+" samples a second of CPU time")
	}
	facts = append(facts, plural(p.threadCount(), "thread"))
	if c := s.CPU; c != nil && !p.barelyRan() {
		facts = append(facts, coveragePercent(c.coverage())+" of CPU time in the profile")
	}
	if p.Runtime != "" {
		facts = append(facts, clean(p.Runtime))
	}
	if q := s.Suspended; q.Count > 0 {
		facts = append(facts, "suspended p50 "+shortTime(q.P50)+", p99 "+shortTime(q.P99)+", max "+
			shortTime(q.Max))
	}
	if !p.Start.IsZero() {
		facts = append(facts, p.Start.UTC().Format(time.DateTime)+" UTC")
	}
	return facts
}

// pageWarning returns the warning at the top of the page.
func pageWarning(p *Profile) string {
	if p.Stats.Empty != "" {
		return clean(p.Stats.Empty)
	}
	if p.lacksCPU() {
		return p.cpuLines()[0]
	}
	return ""
}

func pageNotes(p *Profile) []string {
	notes := append([]string{}, p.findings()...)
	if p.Stats.CPU != nil {
		notes = append(notes, p.cpuLines()...)
	}
	notes = append(notes, p.rateLines()...)
	if p.Stats.Way != "" {
		notes = append(notes, clean(p.Stats.Way+": "+p.Stats.WayWhy))
	}
	for _, t := range p.Stats.Taken {
		notes = append(notes, clean(t))
	}
	for _, g := range sortedGaps(&p.Stats) {
		notes = append(notes, fmt.Sprintf("%s incomplete: %s", plural(g.count, "sample"), g.reason))
	}
	for _, n := range append([]string{p.Stats.ExitNote}, p.Stats.Notes...) {
		if n != "" {
			notes = append(notes, clean(n))
		}
	}
	return notes
}

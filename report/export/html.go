package export

import (
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"
)

// The page consists of parts, so that the tools of each language can check them.
//
//go:embed page
var pageParts embed.FS

// pagePart returns parts of the page, one behind the other.
func pagePart(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		part, _ := pageParts.ReadFile("page/" + name) // TestPageInBrowser fails without one
		b.Write(part)
	}
	return b.String()
}

// pageData is the JSON in the page. Tables refer to each other by index; rows
// are flat arrays, because names of fields would be most of the bytes.
type pageData struct {
	Title   string    `json:"title"`
	Facts   []string  `json:"facts"`
	Notes   []string  `json:"notes"`
	Warning string    `json:"warning"` // "" = none
	Classes []string  `json:"classes"`
	Modules []string  `json:"modules"`
	Symbols [][3]any  `json:"symbols"`           // name, module, class + 8 if doubtful
	Threads [][2]any  `json:"threads"`           // label, samples
	Parents []int32   `json:"parents"`           // of node i+1 (node 0 is the root), as i+1 minus parent
	Nodes   []int32   `json:"nodes"`             // symbol of node i+1
	Metrics [][4]any  `json:"metrics"`           // name, label, unit, which of them says how many
	First   int       `json:"first"`             // metric that the page shows first
	Stacks  [][]int64 `json:"stacks"`            // per thread: node, its value of each metric, node, ...
	Samples []int64   `json:"samples,omitempty"` // see page/time.js
	Length  int64     `json:"length,omitempty"`  // of the recording, microseconds
	Pauses  []int64   `json:"pauses,omitempty"`  // GC pauses: start and length in microseconds, ...
	Diff    any       `json:"diff,omitempty"`    // see page/diff.js
}

// doubtfulBit is added to the class of a doubtful symbol.
const doubtfulBit = 8

// WriteHTML writes a flame graph in one file. It opens in any browser and uses no network.
func WriteHTML(w io.Writer, p *Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	return newPageData(p, newView(p)).write(w)
}

// WriteComparison writes the page of two recordings: p holds the stacks of both, the threads of the
// first one before those of the other. diff is what package diff found, for page/diff.js.
func WriteComparison(w io.Writer, p *Profile, facts []string, diff any) error {
	if err := p.Check(); err != nil {
		return err
	}
	d := newPageData(p, newShortView(p))
	d.Facts, d.Notes, d.Warning, d.Diff = facts, []string{}, "", diff
	return d.write(w)
}

func (d *pageData) write(w io.Writer) error {
	// The encoder writes <, > and & as \u escapes, so that no name can end the
	// script element.
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	js := pagePart("data.js", "time.js", "fold.js", "diff.js", "draw.js", "views.js", "page.js", "keys.js")
	page := strings.NewReplacer("{{title}}", html.EscapeString(d.Title), "{{css}}", pagePart("page.css"), "{{js}}", js, "{{data}}", string(data))
	_, err = page.WriteString(w, pagePart("page.html"))
	return err
}

func pageTitle(p *Profile) string {
	if t := clean(strings.Join(p.Command, " ")); t != "" {
		return t
	}
	return "profile"
}

func newPageData(p *Profile, v *view) *pageData {
	t := newTree(v, p.defaultMetric())
	d := &pageData{Title: pageTitle(p), Facts: pageFacts(p), Notes: pageNotes(p), Warning: pageWarning(p), Classes: classNames[:],
		Symbols: [][3]any{}, Threads: [][2]any{}, Parents: []int32{}, Nodes: []int32{}}
	d.addSymbols(t.view)
	place := d.addNodes(t)
	d.addStacks(p, t, place)
	d.addSamples(p)
	return d
}

func (d *pageData) addSymbols(v *view) {
	d.Modules = []string{""}
	index := map[string]int{"": 0}
	for i := range v.symbols {
		s := &v.symbols[i]
		m, ok := index[s.module]
		if !ok {
			m = len(d.Modules)
			index[s.module] = m
			d.Modules = append(d.Modules, s.module)
		}
		class := int(s.class)
		if s.doubtful {
			class += doubtfulBit
		}
		d.Symbols = append(d.Symbols, [3]any{s.name, m, class})
	}
}

// addNodes writes the nodes depth first, heaviest child first, and returns the new index of
// each.
func (d *pageData) addNodes(t *tree) []int32 {
	place := make([]int32, len(t.nodes))
	stack := []int32{0}
	for next := int32(0); len(stack) > 0; next++ {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &t.nodes[i]
		place[i] = next
		if i > 0 {
			d.Parents = append(d.Parents, next-place[n.parent])
			d.Nodes = append(d.Nodes, n.symbol)
		}
		for j := len(n.children) - 1; j >= 0; j-- {
			stack = append(stack, n.children[j])
		}
	}
	return place
}

func (d *pageData) addStacks(p *Profile, t *tree, place []int32) {
	d.Stacks = make([][]int64, len(p.Threads))
	samples := make([]int64, len(p.Threads))
	shown := p.shown()
	d.First = slices.Index(shown, p.defaultMetric())
	for _, at := range shown {
		m := &metrics[at]
		d.Metrics = append(d.Metrics, [4]any{m.name, m.label, m.unit, slices.Index(shown, m.count)})
	}
	for i := range t.view.paths {
		pa := &t.view.paths[i]
		samples[pa.thread] += pa.values[valueSamples]
		d.Stacks[pa.thread] = append(d.Stacks[pa.thread], int64(place[t.ends[i]]))
		for _, at := range shown {
			d.Stacks[pa.thread] = append(d.Stacks[pa.thread], pa.values[at])
		}
	}
	for i := range p.Threads {
		d.Threads = append(d.Threads, [2]any{threadLabel(&p.Threads[i]), samples[i]})
		d.Stacks[i] = list(d.Stacks[i])
	}
}

// maxPageSamples bounds the samples in a page. With more, the page has no time axis.
const maxPageSamples = 300_000

// addSamples adds the times of the samples. The rows of stacks are counted over all threads.
func (d *pageData) addSamples(p *Profile) {
	if len(p.Samples) > maxPageSamples {
		d.Notes = append(d.Notes, fmt.Sprintf("no time axis: the recording has more than %s; seedwalk report --since and --until show a part of its time", plural(maxPageSamples, "sample")))
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
	d.Length = p.Duration.Microseconds()
	for _, w := range p.Waits {
		if p.Stacks[w.Stack].Event == EventPause {
			d.Pauses = append(d.Pauses, w.Start.Sub(p.Start).Microseconds(), w.Nanos/1000)
		}
	}
}

func pageFacts(p *Profile) []string {
	s := &p.Stats
	facts := []string{plural(s.Samples, "sample"), percent(s.Complete, s.Samples) + " complete"}
	if p.Duration > 0 {
		facts = append(facts, shortTime(p.Duration))
	}
	if count, _ := p.sampledCPU(); count > 0 {
		facts = append(facts, fmt.Sprintf("%.3g samples a second of CPU time", 1e9/p.periodNanos()))
	}
	facts = append(facts, plural(p.threadCount(), "thread"))
	if c := s.CPU; c != nil {
		facts = append(facts, c.share())
	}
	if p.Runtime != "" {
		facts = append(facts, clean(p.Runtime))
	}
	if q := s.Suspended; q.Count > 0 {
		facts = append(facts, "suspended p50 "+shortTime(q.P50)+", p99 "+shortTime(q.P99)+", max "+shortTime(q.Max))
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
	if c := p.Stats.CPU; c != nil && c.coverage() < lowCoverage {
		return c.lines()[0]
	}
	return ""
}

func pageNotes(p *Profile) []string {
	notes := []string{}
	if p.Stats.CPU != nil {
		notes = append(notes, p.Stats.CPU.lines()...)
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
	if p.Stats.ExitNote != "" {
		notes = append(notes, clean(p.Stats.ExitNote))
	}
	for _, n := range p.Stats.Notes {
		notes = append(notes, clean(n))
	}
	return notes
}

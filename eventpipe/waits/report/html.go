package report

import (
	"cmp"
	_ "embed" // the page's parts
	"encoding/json"
	"fmt"
	"html"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/internal/intern"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
)

// maxDrawn bounds the waits in a page. The longest ones are drawn.
const maxDrawn = 20000

// pageData is the JSON in the page; times are microseconds. Rows are flat.
type pageData struct {
	Facts   []string    `json:"facts"`
	Notes   []string    `json:"notes"`
	End     float64     `json:"end"`
	Threads []string    `json:"threads"`
	Stacks  [][]string  `json:"stacks"`
	Waits   [][]float64 `json:"waits"` // thread, kind, state, start, length, stack, owner's thread or -1, depth, idle
	Sites   [][]float64 `json:"sites"` // kind, time, longest, count, stack, idle
}

// pageWriter assigns indices to threads and stacks.
type pageWriter struct {
	pageData
	a       *waits.Analysis
	names   *stackNames
	threads map[uint64]int
	stacks  map[drawnStack]int
}

// drawnStack is a managed stack with the native frames above it.
type drawnStack struct {
	stackAt
	native int32
}

// WriteHTML writes a page in one file. It opens in any browser and uses no network.
func WriteHTML(w io.Writer, a *waits.Analysis) error {
	// The encoder writes <, >, and & as \u escapes, so that no name can end the
	// script element.
	data, err := json.Marshal(newPage(a))
	if err != nil {
		return err
	}
	page := strings.NewReplacer("{{title}}", html.EscapeString(title(a)), "{{css}}", pageCSS, "{{js}}",
		pageJS, "{{data}}", string(data))
	_, err = page.WriteString(w, pageHTML)
	return err
}

func title(a *waits.Analysis) string {
	command := a.Names.Process.CommandLine
	if command == "" {
		command = a.Names.Runtime.CommandLine
	}
	if f := strings.Fields(clean(command)); len(f) > 0 {
		return "Waits of " + path.Base(strings.ReplaceAll(f[0], `\`, "/"))
	}
	return "Waits"
}

func newPage(a *waits.Analysis) *pageData {
	p := &pageWriter{a: a, names: newNames(a), threads: map[uint64]int{}, stacks: map[drawnStack]int{}}
	p.Notes, p.Threads, p.Stacks, p.Waits, p.Sites = []string{}, []string{},
		[][]string{}, [][]float64{}, [][]float64{}
	p.End = float64(a.At(a.Last)) / 1e3
	p.facts()
	for _, t := range a.Threads { // most time first
		p.thread(t.ID)
	}
	for _, w := range longest(a) {
		p.wait(w)
	}
	for i := range a.Sites {
		s := &a.Sites[i]
		if s.Count > 0 && len(p.Sites) < 500 {
			at, idle := p.stack(s.Stack, s.Native, s.When)
			p.Sites = append(p.Sites,
				[]float64{float64(s.Kind), float64(s.Nanos) / 1e3,
					float64(s.Max) / 1e3, float64(s.Count), at, idle})
		}
	}
	return &p.pageData
}

// longest returns the waits to draw, in order of time.
func longest(a *waits.Analysis) []*waits.Wait {
	out := make([]*waits.Wait, len(a.Waits))
	for i := range a.Waits {
		out[i] = &a.Waits[i]
	}
	if len(out) > maxDrawn {
		slices.SortStableFunc(out, func(x, y *waits.Wait) int { return cmp.Compare(y.Nanos, x.Nanos) })
		out = out[:maxDrawn]
		slices.SortStableFunc(out, func(x, y *waits.Wait) int { return cmp.Compare(x.Start, y.Start) })
	}
	return out
}

func (p *pageWriter) facts() {
	a := p.a
	count, nanos := a.Total()
	p.Facts = []string{fmt.Sprintf("process %d", a.Trace.ProcessID), span(int64(a.At(a.Last))) + " traced",
		fmt.Sprintf("%s waits, %s together", number(count), span(nanos)),
		number(a.Counts.Lost) + " events lost"}
	if name := runtimeName(a); name != "" {
		p.Facts = append(p.Facts, name)
	}
	if line := a.Unseen(); line != "" {
		p.Notes = append(p.Notes, line)
	}
	for _, n := range a.Partial() {
		p.Notes = append(p.Notes, clean(n))
	}
	if more := len(a.Waits) - maxDrawn; more > 0 || a.Unlisted > 0 {
		p.Notes = append(p.Notes,
			number(int64(max(more, 0))+a.Unlisted)+" shorter waits are not drawn; the places hold them")
	}
}

func (p *pageWriter) thread(id uint64) int {
	return intern.At(p.threads, &p.Threads, id, func() string {
		label := fmt.Sprint(id)
		if name := p.a.Names.ThreadName(id); name != "" {
			label = clean(name) + " " + label
		}
		return label
	})
}

func (p *pageWriter) stack(id waits.StackID, native int32, when uint64) (at, idle float64) {
	frames := p.names.of(id, when)
	k := drawnStack{stackAt{id, 0}, native}
	if p.a.Names.Replaced() {
		k.when = when
	}
	i := intern.At(p.stacks, &p.Stacks, k, func() []string {
		return append(names(p.a.Leaves(native, when)), names(p.a.Whole(native, frames, when))...)
	})
	if waits.Idle(frames) {
		idle = 1
	}
	return float64(i), idle
}

func (p *pageWriter) wait(w *waits.Wait) {
	owner := -1
	if w.Owner != 0 {
		owner = p.thread(w.Owner)
	}
	at, idle := p.stack(w.Stack, w.Native, w.Start)
	p.Waits = append(p.Waits,
		[]float64{float64(p.thread(w.Thread)), float64(w.Kind), float64(w.State),
			float64(p.a.At(w.Start)) / 1e3, float64(w.Nanos) / 1e3,
			at, float64(owner), float64(w.Depth), idle})
}

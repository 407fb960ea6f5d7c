// Package waittruth judges what package waits found against what the traced
// program itself wrote down: each of its waits must be there exactly once, of
// its kind, inside its bounds, at least as long as its minimum, with its frames.
package waittruth

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// Wait is a wait that happened, in the program's own words. The clock is that of
// the events.
type Wait struct {
	Scenario string   `json:"scenario"`
	Expect   string   `json:"expect"` // Contention or WaitHandleWait, "*2" for two; none
	TID      uint64   `json:"tid"`
	Before   uint64   `json:"qpc_before"`
	After    uint64   `json:"qpc_after"`
	Min      float64  `json:"min_ms"`
	Frames   []string `json:"frames_leaf_to_root"` // others may stand between
}

// File is a truth file.
type File struct {
	PID   int
	Trace string
	Waits []Wait
}

// Lines reads waits that a program printed, one JSON object a line, among
// others.
func Lines(in io.Reader) (out []Wait, err error) {
	for sc := bufio.NewScanner(in); sc.Scan(); {
		if !strings.HasPrefix(sc.Text(), `{"scenario"`) {
			continue
		}
		var w Wait
		if err := json.Unmarshal(sc.Bytes(), &w); err != nil {
			return out, err
		}
		out = append(out, w)
	}
	return out, nil
}

// Result is a judgement.
type Result struct {
	Found           int // waits that are as they should be
	Frames, Unnamed int // of their stacks
	Problems        []string
	Matched         []*waits.Wait
}

func (r *Result) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Judge compares.
func Judge(truth []Wait, a *waits.Analysis) *Result {
	r := &Result{}
	for i := range truth {
		r.one(&truth[i], a)
	}
	r.sums(a)
	return r
}

// one looks for a wait.
func (r *Result) one(w *Wait, a *waits.Analysis) {
	want, nanos := 1, int64(0)
	kind, twice := strings.CutSuffix(w.Expect, "*2")
	switch {
	case twice:
		want = 2
	case kind == "none" || kind == "":
		want = 0
	}
	var got []*waits.Wait
	for j := range a.Waits {
		g := &a.Waits[j]
		if g.Thread != w.TID || g.Depth > 0 || g.Start < w.Before || g.Stop > w.After ||
			g.State != waits.Complete {
			continue
		}
		if want == 0 || g.Kind.Event() == kind && inOrder(a.Frames(g.Stack, g.Start), w.Frames) {
			got = append(got, g)
			nanos += g.Nanos
		}
	}
	// Under load a thread may come late to what it waits for: by its own clock then.
	least := min(w.Min, 0.9*float64(a.Trace.Nanos(w.After-w.Before))/1e6)
	if len(got) != want || want > 0 && float64(nanos)/1e6 < least {
		r.problem("%s of thread %d: %d waits of %.1f ms together, want %d of at least %.0f", w.Scenario,
			w.TID, len(got), float64(nanos)/1e6, want, least)
		return
	}
	r.Found++
	for _, g := range got {
		r.Matched = append(r.Matched, g)
		r.names(a.Frames(g.Stack, g.Start))
	}
}

func (r *Result) names(frames []waits.Frame) {
	for i := range frames {
		r.Frames++
		if !frames[i].Named {
			r.Unnamed++
			r.problem("%#x has no name", frames[i].Addr)
		}
	}
}

// inOrder: want stands in frames, in order, others between.
func inOrder(frames []waits.Frame, want []string) bool {
	for i := range frames {
		if len(want) > 0 && frames[i].Name == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// sums: no thread waits longer than the trace is, and its top-level waits do not
// overlap.
func (r *Result) sums(a *waits.Analysis) {
	last := map[uint64]*waits.Wait{}
	for i := range a.Waits {
		w := &a.Waits[i]
		if w.Depth > 0 || w.State == waits.Unreliable {
			continue
		}
		if before := last[w.Thread]; before != nil && w.Start < before.Stop {
			r.problem("thread %d waits twice at %v", w.Thread, a.At(w.Start))
		}
		last[w.Thread] = w
	}
	for _, t := range a.Threads {
		if wall := a.At(a.Last); t.Nanos > int64(wall) {
			r.problem("thread %d waits %d ns of %d", t.ID, t.Nanos, wall)
		}
	}
}

package export

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The page of a comparison has fewer rows than frames, also if frames have lines.
func TestComparisonWithLines(t *testing.T) {
	p := withRuns()
	for i := range p.Frames {
		p.Frames[i].File, p.Frames[i].Line = "a.cs", 7
	}
	expect.Equal(t, WriteComparison(io.Discard, p, nil, nil), nil)
}

// Every class has a mark in the text and a color in Firefox Profiler.
func TestEveryClassIsMarked(t *testing.T) {
	seen := map[string]bool{}
	for c := range numClasses {
		expect.True(t, classMarks[c] != "" && !seen[classMarks[c]] && firefoxColors[c] != "", "%v", c)
		seen[classMarks[c]] = true
	}
}

// Frames that only resume an async method are in no row, but a gap among them is.
func TestResumersFold(t *testing.T) {
	frame := func(name string, c Class) Frame { return Frame{Name: name, ModuleIndex: -1, Class: c} }
	p := &Profile{Threads: []Thread{{}}, Frames: []Frame{frame("App.Body", ClassManaged),
		frame("Pool.Dispatch", ClassResumer), frame("lost", ClassGap), frame("clone", ClassResumer),
		frame("App.Caller", ClassAsync)},
		Stacks: []Stack{{Frames: []int32{0, 1, 2, 3, 4}, Count: 5, Gap: "lost"}}}
	var b bytes.Buffer
	must.Do(t, WriteFolded(&b, p))
	expect.Equal(t, b.String(), "App.Caller;[gap: lost];App.Body 5\n")
}

// A part of the time says what it lacks because its time is unknown.
func TestSelectUntimed(t *testing.T) {
	p := withEvents()
	p.Samples = []Sample{{Stack: 0, At: p.Start.UnixNano() + 5, CPU: true}}
	p.Stats.Untimed, p.Stats.Unlisted = 3, 1
	q := must.Get(p.Select(Selection{Until: time.Second}))(t)
	notes := strings.Join(q.Stats.Notes, "\n")
	for _, want := range []string{"a note", "3 samples whose", "1 shorter wait whose",
		"10 allocations whose"} {
		expect.True(t, strings.Contains(notes, want), "no %q in the notes:\n%s", want, notes)
	}
	for _, e := range q.Stats.Events {
		expect.True(t, e.Event != EventAllocation, "%d allocations of an unknown time", e.Count)
	}
	expect.Equal(t, q.Stats.Untimed, 3)
	q = must.Get(p.Select(Selection{Thread: "main"}))(t)
	expect.Equal(t, len(q.Stats.Notes), 1, "all of the time")
	expect.Equal(t, len(q.Stats.Events), 4, "kinds of events")
}

// The CPU time of an Activity is right if its product with the samples is beyond 64 bits.
func TestActivityOfLongTime(t *testing.T) {
	const hits = 100
	p := &Profile{Frames: []Frame{{Name: "App.Run", ModuleIndex: -1}}, Threads: []Thread{{ID: 7}},
		Stacks: []Stack{{Frames: []int32{0}, Count: hits, CPUNanos: hits << 52, CPUCount: hits,
			Complete: true}}}
	for i := range hits {
		p.Samples = append(p.Samples, Sample{At: int64(i), CPU: true})
	}
	one, other := &Activity{}, &Activity{Trace: [16]byte{1}}
	for i := range hits / 2 {
		p.Samples[i].Activity = map[bool]*Activity{true: one, false: other}[i < 10]
	}
	var b bytes.Buffer
	must.Do(t, WritePprof(&b, p))
	for _, s := range must.Get(profile.Parse(&b))(t).Sample {
		expect.Equal(t, s.Value[2], s.Value[0]<<52, "%v", s.Label)
	}
}

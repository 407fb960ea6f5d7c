package export

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export/speedscope"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The profile of a thread is in true time order: each sample ends when it was taken, and time
// without samples is empty.
func TestSpeedscopeInOrder(t *testing.T) {
	var f speedscope.File
	must.Do(t, json.Unmarshal(written(t, WriteSpeedscope, timed()), &f))
	all, a, b := f.Profiles[0], f.Profiles[1], f.Profiles[2]
	expect.True(t, len(all.Samples) == 3 && a.End == 1e9 && b.End == 8e8,
		"%d sums, thread a ends at %d, b at %d", len(all.Samples), a.End, b.End)
	d := cmptest.Diff([]int64{2e8, 6e8}, b.Weights)
	expect.True(t, d == "" && len(b.Samples[0]) == 0 && f.Shared.Frames[b.Samples[1][0]].Name == "wait",
		"%v %s", b.Samples, d)
	at, names := int64(0), ""
	for i, s := range a.Samples {
		if at += a.Weights[i]; len(s) == 1 {
			expect.True(t, at%20e6 == 0 && a.Weights[i] == 1e7,
				"sample %d of %d ns ends at %d", i, a.Weights[i], at)
			names += f.Shared.Frames[s[0]].Name
		}
	}
	expect.Equal(t, names, "fffffffffffffffffffffffffggggggggggggggggggggggggg")
}

// Samples of a thread do not overlap, even if they claim more time than there is between them.
func TestSpeedscopeNoOverlap(t *testing.T) {
	p := timed()
	for i := range p.Samples {
		p.Samples[i].Wall *= 3
	}
	var f speedscope.File
	must.Do(t, json.Unmarshal(written(t, WriteSpeedscope, p), &f))
	expect.Equal(t, f.Profiles[1].End, 1e9, "end of the thread's profile")
}

// A long sample around short ones has the time that they leave. The profile of the thread and the trace thus
// have the sums of the stacks.
func TestTimedSums(t *testing.T) {
	const ms = int64(time.Millisecond)
	start := time.Unix(1000, 0)
	p := &Profile{Start: start, Duration: 80 * time.Millisecond, Threads: []Thread{{1, "t"}},
		Frames: []Frame{{Name: "f", ModuleIndex: -1}, {Name: "g", ModuleIndex: -1}}}
	walls := map[int32]int64{}
	for _, s := range [][3]int64{{12, 2, 0}, {22, 2, 0}, {40, 30, 1}, {41, 5, 0}, {60, 10, 1}, {80, 20, 0}} {
		p.Samples = append(p.Samples,
			Sample{At: start.UnixNano() + s[0]*ms, Wall: s[1] * ms, Stack: int32(s[2])})
		walls[int32(s[2])] += s[1] * ms
	}
	for i := range p.Frames {
		p.Stacks = append(p.Stacks, Stack{Frames: []int32{int32(i)}, Count: 3, WallNanos: walls[int32(i)],
			Complete: true})
	}
	var f speedscope.File
	must.Do(t, json.Unmarshal(written(t, WriteSpeedscope, p), &f))
	sums, slices := map[string]int64{}, map[string]int64{}
	for i, s := range f.Profiles[1].Samples {
		if len(s) > 0 {
			sums[f.Shared.Frames[s[0]].Name] += f.Profiles[1].Weights[i]
		}
	}
	var trace struct {
		TraceEvents []struct {
			Name, Cat string
			Dur       float64
		}
	}
	must.Do(t, json.Unmarshal(written(t, WriteChrome, p), &trace))
	for _, e := range trace.TraceEvents {
		if e.Cat == "state" {
			slices[strings.TrimPrefix(e.Name, "in ")] += int64(e.Dur * 1000)
		}
	}
	for i, frame := range p.Frames {
		expect.Equal(t, sums[frame.Name], walls[int32(i)], "speedscope: %s", frame.Name)
		expect.Equal(t, slices[frame.Name], walls[int32(i)], "trace: %s", frame.Name)
	}
}

package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestFindings: each kind of finding appears above its limit, and not below.
func TestFindings(t *testing.T) {
	managed := func(name string) Frame { return Frame{Name: name, ModuleIndex: -1, Class: ClassManaged} }
	const run, take, spin = 0, 1, 2
	base := func() *Profile {
		return &Profile{Start: time.Unix(100, 0), Duration: 10 * time.Second, Threads: []Thread{{ID: 1}},
			Frames: []Frame{managed("App.Run"), managed("App.Take"),
				managed("System.Threading.SpinWait.SpinOnce")},
			Stacks: []Stack{{Frames: []int32{run}, Count: 10, CPUNanos: 1e9, Complete: true}}}
	}
	event := func(p *Profile, e Event, frame int32, at, length time.Duration, times int) {
		p.Stacks = append(p.Stacks,
			Stack{Frames: []int32{frame}, Event: e, Count: int64(times), Complete: true})
		for range times {
			p.Waits = append(p.Waits, Wait{len(p.Stacks) - 1, p.Start.Add(at), length.Nanoseconds()})
		}
	}
	for _, c := range []struct {
		name string
		make func(p *Profile)
		want string
	}{
		{"nothing", func(*Profile) {}, ""},
		{"starved", func(p *Profile) { event(p, EventStarved, run, 2*time.Second, 0, 3) },
			"thread pool starvation: all threads were blocked or busy, so the runtime added one 3 times, first after 2.00 s"},
		{"starved, with its queue", func(p *Profile) {
			event(p, EventStarved, run, time.Second, 0, 1)
			event(p, EventQueue, take, time.Second, 3*time.Second, 1)
			event(p, EventQueue, run, time.Second, 2*time.Second, 4)
		}, "thread pool starvation: a work item waited 3.00 s for a thread, queued by App.Take; all threads were blocked or busy, so the runtime added one 1 time, first after 1.00 s"},
		{"a queue", func(p *Profile) { event(p, EventQueue, take, 0, time.Second, 1) },
			"thread pool starvation: a work item waited 1.00 s for a thread, queued by App.Take"},
		{"a queue without a stack", func(p *Profile) {
			event(p, EventQueue, take, 0, time.Second, 1)
			p.Stacks[len(p.Stacks)-1].Frames = nil
		}, "thread pool starvation: a work item waited 1.00 s for a thread, queued by thread 1"},
		{"a short queue", func(p *Profile) { event(p, EventQueue, take, 0, 400*time.Millisecond, 100) }, ""},
		{"convoy", func(p *Profile) {
			event(p, EventLock, take, 0, time.Second, 4)
			event(p, EventLock, take, 500*time.Millisecond, time.Second, 1)
		}, "lock convoy in App.Take: for 1.00 s at least 3 threads waited for its lock at one time, up to 5"},
		{"of two processes", func(p *Profile) {
			for i := range int32(2) {
				p.Frames = append(p.Frames, Frame{Name: fmt.Sprintf("process app (%d)", i), ModuleIndex: -1,
					Class: ClassNative})
				event(p, EventLock, take, 0, time.Second, 2)
				last := &p.Stacks[len(p.Stacks)-1]
				last.Frames = append(last.Frames, int32(len(p.Frames)-1))
			}
		}, ""},
		{"two that wait", func(p *Profile) { event(p, EventLock, take, 0, 9*time.Second, 2) }, ""},
		{"one after another", func(p *Profile) {
			for i := range 9 {
				event(p, EventLock, take, time.Duration(i)*time.Second, time.Second, 1)
			}
		}, ""},
		{"a short convoy", func(p *Profile) { event(p, EventLock, take, 0, 400*time.Millisecond, 9) }, ""},
		{"at two places", func(p *Profile) {
			event(p, EventLock, take, 0, time.Second, 2)
			event(p, EventLock, run, 0, time.Second, 2)
		}, ""},
		{"spinning", func(p *Profile) {
			p.Stacks = append(p.Stacks,
				Stack{Frames: []int32{spin, take}, Count: 1, CPUNanos: 1e9, Complete: true})
		}, "spinning: 50.00 % of the CPU time waits without being blocked, most in App.Take"},
		{"a little spinning", func(p *Profile) {
			p.Stacks = append(p.Stacks,
				Stack{Frames: []int32{spin, take}, Count: 1, CPUNanos: 4e7, Complete: true})
		}, ""},
	} {
		p := base()
		c.make(p)
		expect.Equal(t, strings.Join(p.findings(), "\n"), c.want, c.name)
		var text strings.Builder
		err := WriteSummary(&text, p, TextOptions{})
		expect.True(t, err == nil && strings.Contains(text.String(), "finding ") == (c.want != ""),
			"%s: %v in the summary:\n%s", c.name, err, text.String())
	}
}

// The samples of an Activity are separate. All samples of a stack add up to its values.
func TestActivityLabels(t *testing.T) {
	one, other := &Activity{Trace: [16]byte{1}, Span: [8]byte{2}},
		&Activity{Trace: [16]byte{3}, Span: [8]byte{4}}
	p := &Profile{Frames: []Frame{{Name: "App.Run", ModuleIndex: -1}},
		Threads: []Thread{{ID: 7, Name: "worker"}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 4, WallNanos: 100, CPUNanos: 10,
			CPUCount: 3, Complete: true}},
		Samples: []Sample{{At: 1, Wall: 10, CPU: true, Activity: one},
			{At: 2, Wall: 20, CPU: true, Activity: other},
			{At: 3, Wall: 30, Activity: one}, {At: 4, Wall: 40, CPU: true}}}
	var b bytes.Buffer
	must.Do(t, WritePprof(&b, p))
	got := must.Get(profile.Parse(&b))(t)
	want := map[string][4]int64{"": {1, 40, 4, 1},
		"01000000000000000000000000000000 0200000000000000": {2, 40, 3, 1},
		"03000000000000000000000000000000 0400000000000000": {1, 20, 3, 1}}
	for _, s := range got.Sample {
		key := ""
		if len(s.Label[labelTrace]) > 0 {
			key = s.Label[labelTrace][0] + " " + s.Label[labelSpan][0]
		}
		expect.Equal(t, [4]int64(s.Value), want[key], "%q", key)
		delete(want, key)
	}
	expect.True(t, len(want) == 0, "missing: %v", want)
	data := must.Get(otlpData(p))(t)
	links := data.Dictionary.Links
	expect.True(t, len(links) == 3 && links[1].Span[0] == 2 && links[2].Trace[0] == 3, "links: %+v", links)
	activities := activitiesJSON(p)
	expect.True(t, len(activities) == 2 && activities[0].Stacks[0] == [2]int64{0, 2} &&
		activities[1].Span == "0400000000000000", "JSON: %+v", activities)
}

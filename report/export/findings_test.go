package export

import (
	"strings"
	"testing"
	"time"
)

// TestFindings: each kind of finding appears above its limit, and not below.
func TestFindings(t *testing.T) {
	managed := func(name string) Frame { return Frame{Name: name, ModuleIndex: -1, Class: ClassManaged} }
	const run, take, spin = 0, 1, 2
	base := func() *Profile {
		return &Profile{Start: time.Unix(100, 0), Duration: 10 * time.Second, Threads: []Thread{{ID: 1}},
			Frames: []Frame{managed("App.Run"), managed("App.Take"), managed("System.Threading.SpinWait.SpinOnce")},
			Stacks: []Stack{{Frames: []int32{run}, Count: 10, CPUNanos: 1e9, Complete: true}}}
	}
	event := func(p *Profile, e Event, frame int32, at, length time.Duration, times int) {
		p.Stacks = append(p.Stacks, Stack{Frames: []int32{frame}, Event: e, Count: int64(times), Complete: true})
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
		{"a queue", func(p *Profile) { event(p, EventQueue, take, 0, time.Second, 1) }, "thread pool starvation: a work item waited 1.00 s for a thread, queued by App.Take"},
		{"a queue without a stack", func(p *Profile) {
			event(p, EventQueue, take, 0, time.Second, 1)
			p.Stacks[len(p.Stacks)-1].Frames = nil
		}, "thread pool starvation: a work item waited 1.00 s for a thread, queued by thread 1"},
		{"a short queue", func(p *Profile) { event(p, EventQueue, take, 0, 400*time.Millisecond, 100) }, ""},
		{"convoy", func(p *Profile) {
			event(p, EventLock, take, 0, time.Second, 4)
			event(p, EventLock, take, 500*time.Millisecond, time.Second, 1)
		}, "lock convoy in App.Take: for 1.00 s at least 3 threads waited for its lock at one time, up to 5"},
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
			p.Stacks = append(p.Stacks, Stack{Frames: []int32{spin, take}, Count: 1, CPUNanos: 1e9, Complete: true})
		}, "spinning: 50.00 % of the CPU time waits without being blocked, most in App.Take"},
		{"a little spinning", func(p *Profile) {
			p.Stacks = append(p.Stacks, Stack{Frames: []int32{spin, take}, Count: 1, CPUNanos: 4e7, Complete: true})
		}, ""},
	} {
		p := base()
		c.make(p)
		if got := strings.Join(p.findings(), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		var text strings.Builder
		if err := WriteSummary(&text, p, TextOptions{}); err != nil || strings.Contains(text.String(), "finding ") != (c.want != "") {
			t.Errorf("%s: %v in the summary:\n%s", c.name, err, text.String())
		}
	}
}

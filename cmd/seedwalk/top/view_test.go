package top

import (
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// workload is a profile of a thread: nanoseconds in a function, and bytes allocated.
func workload(nanos, bytes int64) *export.Profile {
	return &export.Profile{Runtime: ".NET 9.0.5", Threads: []export.Thread{{ID: 7, Name: "main"}},
		Stats: export.Stats{Samples: nanos / 1e7},
		Frames: []export.Frame{{Name: "App.Work", ModuleIndex: -1},
			{Name: "App.\x1b[31mMain", ModuleIndex: -1}},
		Stacks: []export.Stack{{Frames: []int32{0, 1}, Count: 1, CPUNanos: nanos, Complete: true},
			{Frames: []int32{0}, Count: 1, Event: export.EventAllocation, Sum: bytes,
				Type: "App.Node", Complete: true}}}
}

// TestTopView: a view holds what came since the last one, per second, and draws it in the terminal's
// size without control characters of names.
func TestTopView(t *testing.T) {
	start := time.Unix(100, 0)
	a, b := sum(workload(1e9, 5e6), start), sum(workload(2e9, 15e6), start.Add(2*time.Second))
	v := between(&a, &b)
	expect.True(t, v.CPU == 0.5 && v.Samples == 100 && len(v.Functions) == 2 &&
		v.Functions[0] == (topRow{"App.Work", 0.5, 0.5}) && v.Functions[1].Total == 0.5, "%+v", v)
	expect.True(t, len(v.Threads) == 1 && v.Threads[0] == (topRow{Name: "7 main", Self: 0.5}) &&
		len(v.Types) == 1 && v.Types[0] == (topRow{Name: "App.Node", Self: 5e6}), "%+v", v)
	if back := between(&b, &a); back.CPU != 0 || len(back.Functions)+len(back.Threads)+len(back.Types) != 0 {
		t.Errorf("a sum that decreases: %+v", back)
	}
	v.Counters = map[string]float64{"threadpool-queue-length": 35}
	for _, size := range [][2]int{{80, 24}, {40, 10}, {300, 100}, {20, 5}, {200, 3}, {1, 1}} {
		text := v.screen(size[0], size[1], true, true)
		rows := strings.Split(text, "\r\n")
		expect.True(t, len(rows) <= size[1], "%v: %d rows", size, len(rows))
		plain := strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(text)
		if strings.Contains(plain, "\x1b") || size[1] > 4 && !strings.Contains(plain, "50.0 %") ||
			size[0] > 40 && size[1] > 4 && (!strings.Contains(plain, "pool queue 35") ||
				!strings.Contains(plain, "PAUSED")) {
			t.Errorf("%v:\n%q", size, plain)
		}
		for row := range strings.SplitSeq(plain, "\r\n") {
			expect.True(t, len([]rune(row)) <= size[0], "%v: %q is too wide", size, row)
		}
	}
}

// The CPU time of a thread that gets another name is that of the interval, not that since the start.
func TestTopRenamedThread(t *testing.T) {
	start, p := time.Unix(100, 0), workload(10e9, 0)
	a := sum(p, start)
	p = workload(11e9, 0)
	p.Threads[0].Name = "worker"
	b := sum(p, start.Add(2*time.Second))
	expect.Slices(t, between(&a, &b).Threads, []topRow{{Name: "7 worker", Self: 0.5}})
}

// TestTopLateTick: a tick that follows a late one at once makes no view of a few milliseconds.
func TestTopLateTick(t *testing.T) {
	l := &liveView{every: time.Hour}
	l.take(workload(1e9, 5e6))
	first := l.last.at
	l.take(workload(2e9, 5e6))
	expect.True(t, !first.IsZero() && l.last.at == first && l.shown == nil, "a view of %v",
		l.last.at.Sub(first))
}

// TestTopShort: a recording that ends before the second tick has one view, of all its time.
func TestTopShort(t *testing.T) {
	l := &liveView{every: time.Hour, load: &counters{}, json: true}
	p := workload(1e9, 5e6)
	p.Start, p.Duration = time.Unix(1e9, 0), 2*time.Second
	l.final(p)
	must.True(t, l.shown != nil && l.shown.Seconds == 2 && l.shown.CPU == 0.5, "%+v", l.shown)
}

// TestTopFinal checks that the time after the last tick is shown with its true length, unless it is short.
func TestTopFinal(t *testing.T) {
	for rest, want := range map[time.Duration]float64{
		700 * time.Millisecond: 0.7, 500 * time.Millisecond: 0.5, 499 * time.Millisecond: 2, -time.Second: 2,
	} {
		p := workload(2e9, 5e6)
		p.Start, p.Duration = time.Unix(1e9, 0), 2*time.Second+rest
		l := &liveView{every: time.Second, load: &counters{}, json: true}
		l.last = sum(workload(1e9, 5e6), p.Start.Add(2*time.Second))
		l.show(p, totals{at: p.Start}, l.last)
		if l.final(p); l.shown.Seconds != want {
			t.Errorf("%v after the last view: a view of %v s", rest, l.shown.Seconds)
		}
	}
}

// A process that cannot be recorded is refused, as record does.
func TestTopRefuses(t *testing.T) {
	expect.Equal(t, Run([]string{"--json", "2147483647"}), options.ExitRefused, "exit code")
}

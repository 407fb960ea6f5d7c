package export

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seedwalk/seedwalk/report/export/estimate"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{
		{0, 0, "-"}, {0, 5, "0.00 %"}, {5, 5, "100.00 %"}, {999_999, 1_000_000, "99.99 %"},
		{1, 1_000_000, "<0.01 %"}, {1, 3, "33.33 %"},
	} {
		expect.Equal(t, percent(c.part, c.whole), c.want, "percent(%d, %d)", c.part, c.whole)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		-1000: "-1,000", -999: "-999"} {
		expect.Equal(t, Thousands(n), want, "Thousands(%d)", n)
	}
}

func TestShortTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1500: "1.50 µs", 1_234_567: "1.23 ms", 33 * time.Millisecond: "33.0 ms",
		250 * time.Millisecond: "250 ms",
		90 * time.Second:       "90.0 s", 3 * time.Minute: "3m0s",
	} {
		expect.Equal(t, shortTime(d), want, "shortTime(%d)", d)
	}
}

// Shares have the digits that their samples carry, and a mark where those are few.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		part, count, all int64
		want             string
	}{
		{-1, 5, 10, ""}, {500, 500, 1000, "50 %"}, {500, 50_000, 1000, "50.0 %"}, {500, 0, 1000, "50.0 %"},
		{1000, 1000, 1000, "100.0 %"}, {1000, 10, 1000, "100 %"},
		{3, 3, 1000, "~0.3 %"}, {30, 3, 1000, "~3 %"}, {1, 1, 150, "~1 %"}, {1, 1, 190, "~1 %"},
		{1, 1, 1_000_000, "~<0.1 %"}, {5, 0, 1_000_000, "<0.1 %"}, {9, 9, 90, "~10 %"}, {10, 10, 100, "10 %"},
	} {
		expect.Equal(t, estimate.Share(c.part, c.count, c.all), c.want,
			"estimate.Share(%d, %d, %d)", c.part, c.count, c.all)
	}
}

// treeLines returns the tree without its headings and the legend.
func treeLines(t *testing.T, p *Profile, opt TextOptions) []string {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, WriteTree(&b, p, opt))
	text := strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\n"+weakLegend)
	head, tree, _ := strings.Cut(text, "? doubtful\n")
	if opt.Width > 0 {
		for _, l := range strings.Split(head+"? doubtful", "\n") {
			expect.True(t, utf8.RuneCountInString(l) <= opt.Width, "%d columns: heading %q", opt.Width, l)
		}
	}
	return strings.Split(tree, "\n")
}

func TestTreeKeepsItsLimits(t *testing.T) {
	for name, p := range map[string]*Profile{"demo": handMade(), "wide": large(3000, 20),
		"deep": large(20, 2000), "hostile": hostile()} {
		for _, limit := range []int{5, 20, 60, 500} {
			for _, width := range []int{40, 80, 200} {
				lines := treeLines(t, p, TextOptions{MaxLines: limit, Width: width, MinPercent: 0.01})
				expect.True(t, len(lines) <= limit && len(lines) != 0,
					"%s: %d lines, limit %d", name, len(lines), limit)
				for _, l := range lines {
					n := utf8.RuneCountInString(l)
					expect.True(t, n <= width, "%s: %d columns of %d: %q", name, n, width, l)
				}
			}
		}
	}
}

// A recursion of a hundred only children takes a few lines, and what is left
// out is counted.
func TestTreeCollapsesChains(t *testing.T) {
	p := &Profile{Threads: []Thread{{1, "t"}}}
	s := Stack{Count: 7, Complete: true}
	for i := range 100 {
		p.Frames = append(p.Frames,
			Frame{Name: fmt.Sprintf("f%d", 99-i), ModuleIndex: -1, Class: Class(i % 2)})
		s.Frames = append(s.Frames, int32(i))
	}
	p.Stacks = []Stack{s}
	got := strings.Join(treeLines(t, p, TextOptions{}), "\n")
	want := " ~100 %                7 n f0\n                         M f1\n                         ⋮ 96 frames (48 managed, 48 native)\n" +
		"                         n f98\n         ~100 %          M f99"
	expect.Equal(t, got, want)
}

func TestSummaryWithoutSamples(t *testing.T) {
	var b bytes.Buffer
	must.Do(t, WriteSummary(&b,
		&Profile{Stats: Stats{Notes: []string{"the profiler did not load"}}}, TextOptions{}))
	if got := b.String(); !strings.Contains(got, "the profiler did not load") || strings.Contains(got, "%") {
		t.Errorf("got:\n%s", got)
	}
	b.Reset()
	must.Do(t, WriteSummary(&b, &Profile{Stats: Stats{ExitNote: "it was killed"}}, TextOptions{}))
	expect.True(t, strings.HasPrefix(b.String(), "command"), "the command is not first:\n%s", b.String())
	const why = "no samples: it used 3ms of CPU time"
	for _, f := range []string{"text", "html", "json"} {
		format, _ := ByName(f)
		got := written(t, format.Write, &Profile{Stats: Stats{Empty: why}})
		expect.True(t, bytes.Contains(got, []byte(why)), "%s does not say why there are no samples", f)
	}
}

// A row of the summary is broken between words. A path and a number with its unit stay whole.
func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"put it beside /usr/lib/dotnet/libcoreclr.so now", 12,
			[]string{"put it", "beside", "/usr/lib/dotnet/libcoreclr.so", "now"}},
		{"it took about 12 ms", 16, []string{"it took about", "12 ms"}},
		{"p50 1 us   max 2 us", 9, []string{"p50 1 us   max", "2 us"}},
		{"日本 日本 日本", 5, []string{"日本 日本", "日本"}},
	} {
		expect.Slices(t, wrap(c.text, c.n), c.want, "wrap(%q, %d)", c.text, c.n)
	}
}

// Without a terminal nothing of a note is cut or broken; on a narrow one all words are there.
func TestNotesAreWhole(t *testing.T) {
	note := strings.TrimSpace(strings.Repeat("put libcoreclr.so.dbg beside /usr/share/dotnet/shared/Microsoft.NETCore.App/libcoreclr.so ", 4))
	for _, width := range []int{0, 60} {
		var b bytes.Buffer
		must.Do(t, WriteSummary(&b, &Profile{Stats: Stats{Notes: []string{note}}}, TextOptions{Width: width}))
		_, shown, _ := strings.Cut(b.String(), "note")
		if !slices.Equal(strings.Fields(shown), strings.Fields(note)) ||
			width == 0 && strings.Count(shown, "\n") != 1 {
			t.Errorf("width %d: %q", width, shown)
		}
	}
}

// Only events that can have a stack show how many stacks are complete.
func TestEventLines(t *testing.T) {
	s := summary{room: 80}
	s.events(&Stats{Events: []EventStats{{Event: EventQueue, Count: 3}, {Event: EventException, Count: 2}}})
	expect.Equal(t, s.text.String(), "queued items 3\nexceptions   2, 0.00 % complete\n")
}

// The summary and JSON say how many processes were sampled in stretches.
func TestStretchesLine(t *testing.T) {
	const end = ", threads that switch often are sampled only in random stretches of time"
	for some, want := range map[int64]string{
		0: "timers", 1: "; in 1 of 3 processes" + end, 3: "; in 3 of 3 processes" + end} {
		c := &Clock{Kind: ClockPerf, Stretches: some, Processes: 3}
		line := c.line()
		expect.True(t, strings.HasSuffix(line, want), "%d of 3: %s", some, line)
		f := figures(&Profile{Stats: Stats{Clock: c}})
		expect.Equal(t, f.Clock.Stretches, some, "in JSON")
	}
}

// The summary and JSON say how many processes have threads with CPU timers because these wait very often.
func TestTimersLine(t *testing.T) {
	c := &Clock{Kind: ClockRandom, Timers: 1, Processes: 3}
	expect.Equal(t, c.line(),
		"random moments; in 1 of 3 processes, threads that wait very often are sampled by CPU timers")
	expect.Equal(t, figures(&Profile{Stats: Stats{Clock: c}}).Clock.Timers, 1, "in JSON")
}

// The summary describes every clock.
func TestEveryClockHasALine(t *testing.T) {
	for k := ClockPerf; k < NumClocks; k++ {
		expect.True(t, (&Clock{Kind: k}).line() != k.String(), "Clock.line does not describe the clock %s", k)
	}
}

// A round samples every thread, also one that has used a nanosecond. The samples per second of CPU time then
// say nothing about the rate.
func TestRatesOfRounds(t *testing.T) {
	p := withEvents()
	p.Stats.Way = "snapshot"
	expect.Slices(t, p.rateLines(),
		[]string{"820 samples with the CPU time since the thread's previous sample; 99 requested"}, "rounds")
	expect.True(t, !strings.Contains(strings.Join(pageFacts(p), "\n"), "a second of CPU time"), "the page")
	p.Stats.Way = "probe"
	expect.Slices(t, p.rateLines(), []string{"820 samples, 156 per second of CPU time; 99 requested"}, "a clock")
}

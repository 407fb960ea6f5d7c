package collect

import (
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	ms     = uint64(time.Millisecond)
	period = 10 * ms
)

// clocked makes a process of made-up samples: n of each thread, at the address of its own
// function, each with one period.
func clocked(samples map[uint64]int, usages ...*wire.Usage) *Process {
	p := NewProcess(7, "app")
	p.Take(&wire.Hello{PID: 7, RateMilliHz: 100_000})
	for tid := uint64(1); tid < 1000; tid++ {
		for range samples[tid] {
			p.Take(&wire.Sample{TID: tid, TimeUnixNano: 5, WallNanos: period, CPUNanos: period,
				Frames: []wire.Frame{{Kind: unwind.KindNative, Flags: wire.FrameExact, IP: tid}}})
		}
	}
	for _, u := range usages {
		p.Take(u)
	}
	return p
}

// accounted builds the profile of processes and returns the time of each name at a leaf.
func accounted(all ...*Process) (*export.Profile, map[string]uint64) {
	b := newBuilder(all)
	b.p.RateHz = 100
	for _, p := range all {
		b.process(p)
	}
	leaves := map[string]uint64{}
	for i := range b.p.Stacks {
		s := &b.p.Stacks[i]
		if len(s.Frames) > 0 {
			leaves[b.p.Frames[s.Frames[0]].Name] += uint64(s.CPUNanos)
		}
	}
	return b.p, leaves
}

func usageOf(tid, cpu, kernel uint64, cause uint8) *wire.Usage {
	return &wire.Usage{TID: tid, CPUNanos: cpu * ms, KernelNanos: kernel * ms, Cause: cause}
}

// The profile of a process adds up to its clock to the nanosecond, and every part goes
// where it belongs.
func TestAccount(t *testing.T) {
	const one, two, three = "unknown code at 0x1", "unknown code at 0x2", "unknown code at 0x3"
	short := map[uint64]int{1: 50}
	var shorts []*wire.Usage
	for tid := uint64(100); tid < 200; tid++ {
		shorts = append(shorts, usageOf(tid, 5, 0, wire.CauseNone))
		if tid%4 == 0 {
			short[tid] = 1
		}
	}
	for _, c := range []struct {
		name    string
		samples map[uint64]int
		usages  []*wire.Usage
		want    map[string]uint64 // milliseconds
	}{
		{"scaled to each thread's clock", map[uint64]int{1: 50, 2: 50},
			[]*wire.Usage{usageOf(1, 1000, 0, 0), usageOf(2, 400, 0, 0), usageOf(0, 1400, 0, 0)},
			map[string]uint64{one: 1000, two: 400}},
		{"the kernel's part", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 1000, 300, 0), usageOf(0, 1000, 0, 0)},
			map[string]uint64{one: 700, export.KernelTime: 300}},
		{"more in the kernel than there is", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 1000, 5000, 0), usageOf(0, 1000, 0, 0)},
			map[string]uint64{one: 0, export.KernelTime: 1000}},
		{"causes", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 500, 0, 0), usageOf(2, 10, 0, wire.CauseShort),
				usageOf(3, 20, 0, wire.CauseUnproven),
				usageOf(4, 30, 9, wire.CauseStartup), usageOf(5, 40, 0, wire.CauseNoRoom),
				usageOf(6, 50, 0, wire.CauseTool), usageOf(7, 60, 0, 77),
				usageOf(8, 70, 0, wire.CauseTicks), usageOf(0, 785, 0, wire.CauseStartup)},
			map[string]uint64{one: 500, "[short threads]": 10, "[before verification]": 20, "[start-up]": 35,
				"[no room]": 40, "[tool too slow]": 110, "[between ticks]": 70}},
		{"a cause of a thread that has samples is none", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 600, 0, wire.CauseNoRoom), usageOf(0, 600, 0, 0)},
			map[string]uint64{one: 600}},
		{"watched and not watched time of one thread", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 100, 0, wire.CauseStartup),
				usageOf(1, 500, 0, 0), usageOf(0, 600, 0, 0)},
			map[string]uint64{one: 500, "[start-up]": 100}},
		{"a busy thread without samples", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(1, 500, 0, 0), usageOf(2, 200, 0, 0), usageOf(0, 700, 0, 0)},
			map[string]uint64{one: 500, "[tool too slow]": 200}},
		{"a busy thread with too few samples", map[uint64]int{1: 50, 2: 3},
			[]*wire.Usage{usageOf(1, 500, 0, 0), usageOf(2, 5071, 0, 0), usageOf(0, 5571, 0, 0)},
			map[string]uint64{one: 500, two: 120, "[tool too slow]": 4951}},
		{"too few by what most samples stand for", map[uint64]int{1: 50, 2: 12, 3: 3},
			[]*wire.Usage{usageOf(1, 1000, 0, 0), usageOf(2, 100, 0, 0),
				usageOf(3, 500, 0, 0), usageOf(0, 1600, 0, 0)},
			map[string]uint64{one: 1000, two: 100, three: 240, "[tool too slow]": 260}},
		{"the remainder", map[uint64]int{1: 50}, []*wire.Usage{usageOf(1, 500, 0, 0), usageOf(0, 800, 0, 0)},
			map[string]uint64{one: 500, "[short threads]": 300}},
		{"short threads together", short, append(shorts, usageOf(1, 500, 0, 0), usageOf(0, 1000, 0, 0)),
			map[string]uint64{one: 500, "unknown code at 0x64": 20}},
		{"short threads without samples", map[uint64]int{1: 50},
			append(shorts, usageOf(1, 500, 0, 0), usageOf(0, 1000, 0, 0)),
			map[string]uint64{one: 500, "[short threads]": 500}},
		{"little time without samples", nil,
			[]*wire.Usage{usageOf(1, 40, 0, 0), usageOf(2, 50, 0, 0), usageOf(0, 90, 0, 0)},
			map[string]uint64{"[rate too low]": 90}},
		{"no sample at all", nil,
			[]*wire.Usage{usageOf(1, 150, 0, 0),
				usageOf(2, 50, 10, wire.CauseStartup), usageOf(0, 230, 0, 0)},
			map[string]uint64{"[tool too slow]": 150, "[start-up]": 50, "[short threads]": 30}},
		{"the process's clock alone, more than the samples", map[uint64]int{1: 50, 2: 10},
			[]*wire.Usage{usageOf(0, 700, 0, wire.CauseTool)},
			map[string]uint64{one: 500, two: 100, "[tool too slow]": 100}},
		{"the process's clock alone, less than the samples", map[uint64]int{1: 50, 2: 10},
			[]*wire.Usage{usageOf(0, 300, 0, 0)},
			map[string]uint64{one: 250, two: 50}},
		{"a thread without a clock", map[uint64]int{1: 50, 2: 10},
			[]*wire.Usage{usageOf(1, 600, 0, 0), usageOf(0, 700, 0, 0)},
			map[string]uint64{one: 600, two: 100}},
		{"the process's clock of the end counts", map[uint64]int{1: 50},
			[]*wire.Usage{usageOf(0, 99, 0, 0), usageOf(1, 500, 0, 0), usageOf(0, 500, 0, 0)},
			map[string]uint64{one: 500}},
		{"a thread ID given again", map[uint64]int{3: 50},
			[]*wire.Usage{usageOf(3, 100, 0, 0), usageOf(3, 400, 100, 0), usageOf(0, 500, 0, 0)},
			map[string]uint64{three: 400, export.KernelTime: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, leaves := accounted(clocked(c.samples, c.usages...))
			for name, want := range c.want {
				got := leaves[name]
				expect.True(t, (got+ms/2)/ms == want, "%s: %d ns, want %d ms", name, got, want)
			}
			var sum, missing int64
			for i := range p.Stacks {
				s := &p.Stacks[i]
				sum += s.CPUNanos
				if p.Frames[s.Frames[len(s.Frames)-1]].Name == export.NotSampled {
					missing += s.CPUNanos
				}
			}
			cpu := p.Stats.CPU
			expect.True(t, sum == cpu.Process && cpu.Profile+missing == cpu.Process,
				"%d in the profile and %d not sampled, sum %d, of %d", cpu.Profile, missing, sum, cpu.Process)
			expect.Equal(t, p.Check(), nil)
		})
	}
}

// A process is sampled more often while it starts. A thread that used less time than ten samples of the
// requested rate lacks samples because of the rate, and a busier one because of the tool.
func TestAccountRate(t *testing.T) {
	const rate, slow = "[rate too low]", "[tool too slow]"
	for _, c := range []struct {
		millihertz uint64
		cause      string
	}{{100_000, slow}, {50_000, slow}, {49_000, rate}, {100, rate}, {0, slow}, {1 << 63, slow}} {
		p := clocked(map[uint64]int{1: 50},
			usageOf(1, 500, 0, 0), usageOf(2, 200, 0, 0), usageOf(0, 700, 0, 0))
		p.hello.RateMilliHz = c.millihertz
		_, leaves := accounted(p)
		expect.Equal(t, leaves[c.cause], 200*ms, "%s at %d mHz", c.cause, c.millihertz)
	}
}

// Without the clock of the process no time is invented.
func TestAccountUnknown(t *testing.T) {
	p, leaves := accounted(clocked(map[uint64]int{1: 50, 2: 3}))
	expect.True(t, p.Stats.CPU == nil && len(p.Stacks) == 2 && leaves["unknown code at 0x1"] == 500*ms &&
		len(p.Stats.Notes) == 0, "an old stream: %+v %v %q", p.Stats.CPU, leaves, p.Stats.Notes)
	p, leaves = accounted(clocked(map[uint64]int{1: 50}, usageOf(1, 700, 0, 0),
		usageOf(2, 300, 0, wire.CauseShort)))
	expect.True(t, p.Stats.CPU == nil && len(p.Stacks) == 1 && leaves["unknown code at 0x1"] == 700*ms &&
		len(p.Stats.Notes) == 1, "clocks of threads alone: %+v %v %q", p.Stats.CPU, leaves, p.Stats.Notes)
}

// Each of several processes has its own sum below its own root, and the reported clock is the worst.
func TestAccountOfTwo(t *testing.T) {
	one, two := clocked(map[uint64]int{1: 50}, usageOf(1, 500, 0, 0), usageOf(0, 600, 0, 0)),
		clocked(map[uint64]int{1: 10}, usageOf(0, 150, 0, wire.CauseStartup))
	two.PID = 8
	for key, value := range map[string]uint64{"clock_random": 1, "clock_kept": 7,
		"clock_rejected": 3, "clock_late_ns": 5} {
		one.Take(&wire.Stats{Key: wire.StatEngine + key, Value: value})
	}
	two.Take(&wire.Stats{Key: wire.StatEngine + "clock_perf", Value: 1})
	two.Take(&wire.Stats{Key: wire.StatEngine + "clock_stretches", Value: 1})
	two.Take(&wire.Stats{Key: wire.StatEngine + "clock_timers", Value: 1})
	p, leaves := accounted(one, two)
	want := export.CPUTime{Process: 750 * int64(ms), Profile: 600 * int64(ms)}
	got := p.Stats.CPU
	expect.True(t, got.Process == want.Process && got.Profile == want.Profile &&
		leaves["[short threads]"] == 100*ms && leaves["[start-up]"] == 50*ms, "%+v %v", got, leaves)
	if c := p.Stats.Clock; *c != (export.Clock{Kind: export.ClockRandom, Stretches: 1, Timers: 1,
		Processes: 2, LateP90: 5, Hits: 10, Rejected: 3}) {
		t.Errorf("%+v", c)
	}
	for i := range p.Stacks {
		if name := p.Frames[p.Stacks[i].Frames[len(p.Stacks[i].Frames)-1]].Name; name != "process app (7)" &&
			name != "process app (8)" {
			t.Errorf("stack %d has no root", i)
		}
	}
}

// A process whose samples come in two streams, one after the other, is one process with one set of threads,
// with and without another process.
func TestTwoStreamsOfOne(t *testing.T) {
	streams := []*Process{clocked(map[uint64]int{1: 10, 2: 10}, usageOf(0, 200, 0, 0)),
		clocked(map[uint64]int{2: 10, 3: 10}, usageOf(0, 200, 0, 0))}
	other := clocked(map[uint64]int{1: 10}, usageOf(0, 100, 0, 0))
	other.PID = 8
	for _, c := range []struct {
		name           string
		all            []*Process
		threads, roots int
		process        int64
	}{{"alone", streams, 3, 0, 400}, {"beside another", append(streams, other), 4, 2, 500}} {
		p := Build(&Info{RateHz: 100}, c.all, nil)
		roots := 0
		for i := range p.Frames {
			if strings.HasPrefix(p.Frames[i].Name, "process ") {
				roots++
			}
		}
		expect.True(t, len(p.Threads) == c.threads && roots == c.roots &&
			p.Stats.CPU.Process == c.process*int64(ms) && (p.PID == 7) == (c.roots == 0),
			"%s: threads %v, %d roots, PID %d, %+v", c.name, p.Threads, roots, p.PID, p.Stats.CPU)
	}
}

// Impossible times are bounded, and there is no division by zero.
func TestAccountHostile(t *testing.T) {
	const most = 1<<64 - 1
	p := clocked(map[uint64]int{1: 2}, &wire.Usage{TID: 1, CPUNanos: most, KernelNanos: most},
		&wire.Usage{TID: 2, CPUNanos: most, Cause: 255}, &wire.Usage{CPUNanos: most, Cause: 9})
	for i := range uint64(300) {
		p.Take(&wire.Sample{TID: 3, CPUNanos: most, Frames: []wire.Frame{{IP: i}}})
		p.Take(&wire.Sample{TID: 4, CPUNanos: most})
		p.Take(&wire.Usage{TID: 3, CPUNanos: most})
	}
	got, _ := accounted(p)
	for i := range got.Stacks {
		s := &got.Stacks[i]
		expect.True(t, s.CPUNanos >= 0, "stack %d has %d ns", i, s.CPUNanos)
	}
}

// Every type has its exact total. The error of a place is at most the dropped weight.
func TestDropped(t *testing.T) {
	p := NewProcess(1, "p")
	at := func(ip uint64, e *wire.Event) {
		e.Frames = []wire.Frame{{Kind: unwind.KindManaged, Method: uint32(ip), IP: ip}}
		p.Take(e)
	}
	long := strings.Repeat("n", 300)
	for range 3 {
		at(1, event(wire.EventAllocation, 1, 0, 100, "A", ""))
	}
	at(2, event(wire.EventAllocation, 1, 0, 101, "A", ""))
	at(3, event(wire.EventAllocation, 1, 0, 7, "B", ""))
	at(3, event(wire.EventAllocation, 1, 0, 9, long, ""))
	for range 2 {
		at(4, event(wire.EventException, 1, 0, 0, "A", "x"))
	}
	for _, d := range []wire.Dropped{
		{Kind: wire.EventAllocation, Name: "A", Count: 1, Bytes: 1},
		{Kind: wire.EventAllocation, Name: "A", Count: 10, Bytes: 1000}, // replaces
		{Kind: wire.EventAllocation, Name: long[:wire.MaxDroppedName], Count: 1, Bytes: 5},
		{Kind: wire.EventAllocation, Name: "none", Count: 2, Bytes: 50},
		{Kind: wire.EventAllocation, Count: 1, Bytes: 60},
		{Kind: wire.EventException, Name: "A", Count: 5},
		{Kind: wire.EventWait, Name: "A", Count: 5},
	} {
		p.Take(&d)
	}
	b := newBuilder(nil)
	b.process(p)
	b.events(p, []export.Event{export.EventAllocation, export.EventException})
	type total struct {
		event export.Event
		name  string
	}
	counts, sums := map[total]int64{}, map[total]int64{}
	for i := range b.p.Stacks {
		s := &b.p.Stacks[i]
		counts[total{s.Event, s.Type}] += s.Count
		sums[total{s.Event, s.Type}] += s.Sum
	}
	for _, c := range []struct {
		total
		count, sum int64
	}{
		{total{export.EventAllocation, "A"}, 14, 1401}, {total{export.EventAllocation, "B"}, 1, 7},
		{total{export.EventAllocation, long}, 2, 14},
		{total{export.EventAllocation, "none"}, 2, 50}, {total{export.EventAllocation, otherTypes}, 1, 60},
		{total{export.EventException, "A"}, 7, 0},
	} {
		expect.True(t, counts[c.total] == c.count && sums[c.total] == c.sum,
			"%v: %d events, %d bytes, want %d and %d", c.total, counts[c.total], sums[c.total], c.count,
			c.sum)
	}
	s := b.p.Stacks[0].Sum
	expect.True(t, s >= 300+740 && s <= 300+760, "the place with three quarters of A has %d bytes", s)
	if s := b.p.Stats.Events[0]; s.Sum != 1401+7+14+50+60 || s.Count != 6 {
		t.Errorf("%+v", s)
	}
	notes := strings.Join(b.p.Stats.Notes, "\n")
	expect.True(t, strings.Contains(notes, "the stacks of 19 events were dropped") &&
		strings.Contains(notes, "at most: A 0.0 MB, (other types) 0.0 MB"), "%v", notes)
	expect.Equal(t, b.p.Check(), nil)
}

// No sum, however large, breaks the division.
func TestApportionBounds(t *testing.T) {
	for _, a := range []apportion{{}, {of: 1, add: 1 << 56}, {of: 1<<64 - 1, add: 1 << 56}, {of: 5}} {
		a.share(1 << 63)
		a.share(1<<64 - 1)
	}
}

// TestSampledNote: if objects are sampled at random, the note bounds the error by the number of samples,
// including dropped ones.
func TestSampledNote(t *testing.T) {
	p := NewProcess(7, "p")
	for range 90 {
		p.Take(event(wire.EventAllocation, 1, 0, 100, "A", ""))
	}
	p.Take(event(wire.EventAllocation, 1, 0, 5, "B", ""))
	p.Take(&wire.Dropped{Kind: wire.EventAllocation, Name: "A", Count: 810, Bytes: 81000})
	notes := func() []string {
		b := newBuilder([]*Process{p})
		b.process(p)
		return b.p.Stats.Notes
	}
	n := notes()
	expect.True(t, len(n) == 1, "ticks: %q", n)
	p.counters[wire.StatEngine+"event_alloc_sampled"] = 91
	n = notes()
	expect.True(t, len(n) == 2 && strings.HasSuffix(n[1], ": A 10 %, B 300 %"), "samples: %q", n)
}

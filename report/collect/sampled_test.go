package collect

import (
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The number of samples, and what was not sampled, in words: each cause has its line, and there is no line
// without its cause.
func TestTakenLines(t *testing.T) {
	var stood, lost wire.Histogram
	lost.Add(90_000_000)
	for range 100 {
		stood.Add(3000)
	}
	for _, c := range []struct {
		name     string
		counters map[string]int64
		handler  *wire.Histogram
		want     []string
	}{
		{"the old way counts nothing", nil, &stood, nil},
		{"samples a thread, standing still",
			map[string]int64{"timed": 180, "overruns": 20, "outside": 50, "rests": 7,
				"busy_ns": 1e9, "asked": 4, "armed": 3,
				"thread_min": 1, "thread_median": 9, "thread_max": 120}, &stood,
			[]string{"samples by kind: 180 CPU, 50 blocked (read without a signal), 7 idle",
				"a thread was stopped for 3 µs (p50), 3 µs (p99)",
				"signals: 180 by the clock (3 threads), 4 sent by seedwalk"}},
		{"a thread that lost its CPU meanwhile", map[string]int64{}, &lost,
			[]string{"samples by kind: 0 CPU, 0 blocked (read without a signal), 0 idle",
				"a thread was stopped for 90,000 µs (p50), 90,000 µs (p99); this includes time without a CPU",
				"signals: 0 sent by seedwalk"}},
		{"memory that the probe read",
			map[string]int64{"suspended": 1, "reads": 40, "read_ns": 2_400_000,
				"read_copy_ns": 120_000, "reads_lost": 2},
			&wire.Histogram{}, []string{"threads stopped 1 time; 0 samples of idle threads taken without a stop",
				"memory read through the probe: 40 reads, 60 µs each, 3 µs of that in the program",
				"2 memory reads that no thread answered"}},
		{"threads that were stopped", map[string]int64{"suspended": 5, "rests": 2}, &wire.Histogram{},
			[]string{"threads stopped 5 times; 2 samples of idle threads taken without a stop"}},
		{"one of each", map[string]int64{"timed": 1, "armed": 1, "thread_min": 1, "thread_median": 1,
			"thread_max": 1, "changed": 1, "dropped": 1,
			"event_waits": 1, "event_copies": 1, "event_copy_ns": 2000, "event_brief": 1}, &wire.Histogram{},
			[]string{"samples by kind: 1 CPU, 0 blocked (read without a signal), 0 idle",
				"signals: 1 by the clock (1 thread), 0 sent by seedwalk",
				"1 sample dropped: the ring buffer was full (50.0 % of the samples)",
				"1 read of a blocked thread discarded: the thread woke up; retried later",
				"events: 1 wait, 0 locks, 0 allocation samples, 0 exceptions; 0 lost",
				"1 stack copied in 2.0 µs on average",
				"1 wait or lock shorter than --wait-min: counted only"}},
		{"whether lost samples matter",
			map[string]int64{"timed": 20, "outside": 9_000, "rests": 977, "late": 3, "unreadable": 200},
			&wire.Histogram{},
			[]string{"samples by kind: 20 CPU, 9,000 blocked (read without a signal), 977 idle",
				"signals: 20 by the clock (0 threads), 0 sent by seedwalk",
				"3 samples skipped: the process had ended (less than 0.1 % of the samples)",
				"200 stacks skipped: the memory could not be read (2.0 % of the samples)"}},
		{"large numbers", map[string]int64{"timed": 12345, "armed": 1, "asked": 1000, "changed": 2000},
			&wire.Histogram{},
			[]string{"samples by kind: 12,345 CPU, 0 blocked (read without a signal), 0 idle",
				"signals: 12,345 by the clock (1 thread), 1,000 sent by seedwalk",
				"2,000 reads of blocked threads discarded: the thread woke up; retried later"}},
		{"copies by the kernel", map[string]int64{"timed": 5, "copied": 3, "armed": 2}, &wire.Histogram{},
			[]string{"samples by kind: 5 CPU (3 copied by the kernel), 0 blocked (read without a signal), 0 idle",
				"signals: 2 by the clock (2 threads), 0 sent by seedwalk"}},
		{"no free processor", map[string]int64{"delayed_ns": 1_500_000_000}, &wire.Histogram{},
			[]string{"samples by kind: 0 CPU, 0 blocked (read without a signal), 0 idle",
				"threads were ready to run but had no CPU for 1,500 ms",
				"signals: 0 sent by seedwalk"}},
		{"a processor nearly always", map[string]int64{"delayed_ns": 99_000_000}, &wire.Histogram{},
			[]string{"samples by kind: 0 CPU, 0 blocked (read without a signal), 0 idle",
				"signals: 0 sent by seedwalk"}},
		{"no signal by the clock", map[string]int64{"outside": 3, "armed": 7, "asked": 1}, &wire.Histogram{},
			[]string{"samples by kind: 0 CPU, 3 blocked (read without a signal), 0 idle",
				"signals: 1 sent by seedwalk"}},
		{"why threads were not sampled",
			map[string]int64{"suspended": 1, "deaf": 2, "unsent": 3, "no_slot": 4, "timer_refused": 5,
				"dropped": 6, "hidden": 7}, &wire.Histogram{},
			[]string{"threads stopped 1 time; 0 samples of idle threads taken without a stop",
				"6 samples dropped: the ring buffer was full (85.7 % of the samples)",
				"2 signals not sent: the thread blocks it or has one pending",
				"3 signals refused by the kernel",
				"5 threads without a timer: the kernel refused it",
				"4 threads not sampled: the probe has room for 4,096 threads",
				"7 reads of threads' states refused by the kernel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmptest.Same(t, c.want, sampledLines(c.counters, c.handler))
		})
	}
}

// Counters of two processes are added; for values per thread the least and the most are kept.
func TestTakenOfTwo(t *testing.T) {
	b := newBuilder(nil)
	b.sampled(&Process{counters: map[string]uint64{"probe_timed": 5, "probe_thread_min": 3,
		"probe_thread_max": 7, "probe_clock_late_ns": 40, "other": 1}})
	b.sampled(&Process{counters: map[string]uint64{"probe_timed": 6, "probe_thread_min": 2,
		"probe_thread_max": 4, "probe_clock_late_ns": 30}})
	want := map[string]int64{"timed": 11, "thread_min": 2, "thread_max": 7, "clock_late_ns": 40}
	cmptest.Same(t, want, b.p.Stats.Counters)
}

type fakeNamer struct{}

func (fakeNamer) Name(path, buildID string, addr uint64) (string, bool) { return "", false }

func (fakeNamer) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	return 0, 0, false
}

type fakeFiler struct{ fakeNamer }

func (fakeFiler) DebugFile(path, _ string) string {
	if path == filepath.FromSlash("/opt/libcoreclr.so") {
		return "libcoreclr.so.dbg"
	}
	return ""
}

func TestUnsymbolized(t *testing.T) {
	profile := func(named, nameless, elsewhere int64) *export.Profile {
		return &export.Profile{
			Modules: []export.Module{{Path: filepath.FromSlash("/opt/libcoreclr.so")},
				{Path: "/lib/libother.so"}},
			Frames: []export.Frame{
				{Name: "App.Main", ModuleIndex: -1, Class: export.ClassManaged},
				{Name: "libcoreclr.so+0x10", Module: "libcoreclr.so",
					ModuleIndex: 0, Class: export.ClassRuntime},
				{Name: "libother.so+0x10", Module: "libother.so", ModuleIndex: 1, Class: export.ClassNative}},
			Stacks: []export.Stack{{Frames: []int32{0}, Count: named}, {Frames: []int32{1}, Count: nameless},
				{Frames: []int32{2}, Count: elsewhere}},
		}
	}
	hint := func(server string) string {
		return "add --symbols " + server + " to seedwalk record or report, or put libcoreclr.so.dbg into " +
			filepath.FromSlash("/opt") + ", to name the functions of libcoreclr.so: "
	}
	want := hint("https://msdl.microsoft.com/download/symbols")
	other := profile(36, 64, 0)
	other.Frames[1].Class = export.ClassNative
	callers := profile(1, 0, 0)
	callers.Stacks[0].Frames = []int32{0, 1}
	for _, c := range []struct {
		name string
		p    *export.Profile
		n    Namer
		want string
	}{
		{"many", profile(36, 64, 0), fakeFiler{}, want + "64 % of the frames, and 64 % of the leaves, have no name"},
		{"most are elsewhere, where nothing is known to help",
			profile(36, 4, 60), fakeFiler{}, want + "64 % of the frames, and 64 % of the leaves, have no name"},
		{"not of the runtime", other, fakeFiler{},
			hint("URL") + "64 % of the frames, and 64 % of the leaves, have no name"},
		{"only below the leaf", callers, fakeFiler{}, want + "50 % of the frames, and 0 % of the leaves, have no name"},
		{"few", profile(96, 4, 0), fakeFiler{}, ""},
		{"no file known", profile(36, 0, 64), fakeFiler{}, ""},
		{"a namer that knows no files", profile(0, 100, 0), fakeNamer{}, ""},
		{"nothing", &export.Profile{}, fakeFiler{}, ""},
	} {
		expect.Equal(t, unsymbolized(c.p, c.n), c.want, c.name)
	}
}

// The summary explains how to see inlined methods only if none was seen and the runtime can keep them.
func TestHidesInlined(t *testing.T) {
	managed := export.Frame{Name: "A.B", Class: export.ClassManaged}
	inlined := export.Frame{Name: "A.C (inlined)", Class: export.ClassManaged}
	for _, c := range []struct {
		name, runtime, way string
		frames             []export.Frame
		want               bool
	}{
		{"not kept", ".NET 9.0.5", "probe", []export.Frame{managed}, true},
		{"kept", ".NET 9.0.5", "probe", []export.Frame{managed, inlined}, false},
		{"nothing managed", ".NET 9.0.5", "probe", nil, false},
		{"cannot be kept", ".NET 8.0.6", "probe", []export.Frame{managed}, false},
		{"by the profiling API", ".NET 9.0.5", "snapshot", []export.Frame{managed}, false},
	} {
		got := hidesInlined(&export.Profile{Runtime: c.runtime, Frames: c.frames,
			Stats: export.Stats{Way: c.way}})
		expect.True(t, got == c.want, "%s: %v", c.name, got)
	}
}

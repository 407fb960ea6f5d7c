package export

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The summary mentions time without samples, but not the nanoseconds that rounding leaves.
func TestCPULines(t *testing.T) {
	for _, c := range []struct {
		name    string
		missing int64
		want    string
	}{
		{"rounding", 2, "1.11 of 1.11 s of the process's CPU time are in the profile (100.0 %)"},
		{"little", 3_000, "1.11 of 1.11 s of the process's CPU time are in the profile (99.9 %)\n" +
			"not sampled: short threads 3.00 µs"},
		{"much", 1_110_000_000, "WARNING: only 1.11 of 2.22 s of the process's CPU time are in the profile (50.0 %)\n" +
			"not sampled: short threads 1.11 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := CPUTime{Profile: 1_110_000_000, NotSampled: []int64{1: c.missing}}
			u.Process = u.Profile + c.missing
			p := Profile{RateHz: 99, Stats: Stats{CPU: &u}}
			got := strings.Join(p.cpuLines(), "\n")
			expect.True(t, got == c.want, "got %q, want %q", got, c.want)
		})
	}
}

// A process that used less CPU time than is between two samples lacks nothing: the summary says so, and does
// not warn.
func TestBarelyRan(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		nanos int64
		want  string
		warns bool
	}{
		{99, 6_080_000, "the process used 6.08 ms, less than the 10.1 ms between two samples; to sample it, record for longer, or with a higher --rate", false},
		{19, 30_000_000, "the process used 30.0 ms, less than the 52.6 ms between two samples; to sample it, record for longer, or with a higher --rate", false},
		{99, 30_000_000, "WARNING: only 0.00 of 30.0 ms of the process's CPU time are in the profile (0.0 %)\nnot sampled: rate too low 30.0 ms", true},
	} {
		p := Profile{RateHz: c.rate}
		p.Stats.CPU = &CPUTime{Process: c.nanos, NotSampled: []int64{7: c.nanos}}
		expect.Equal(t, strings.Join(p.cpuLines(), "\n"), c.want)
		expect.Equal(t, p.lacksCPU(), c.warns, c.want)
	}
}

// A few missing samples may be chance: the summary does not warn.
func TestFewMissing(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		rate             float64
		profile, missing int64
		warns            bool
	}{
		{99, 1072 * ms, 68 * ms, false},
		{99, 1072 * ms, 102 * ms, true},
		{99, 9900 * ms, 102 * ms, false}, // but 1 % of the time
		{1000, 1072 * ms, 68 * ms, true},
		{1000, 50 * ms, 9 * ms, false},
		{99, 0, 68 * ms, true},
	} {
		p := Profile{RateHz: c.rate}
		p.Stats.CPU = &CPUTime{Process: c.profile + c.missing, Profile: c.profile,
			NotSampled: []int64{7: c.missing}}
		expect.Equal(t, p.lacksCPU(), c.warns, "%+v: %q", c, p.cpuLines())
	}
}

// Without the process's CPU time, the summary says whether another --mode measures it.
func TestCPUNotMeasured(t *testing.T) {
	for way, want := range map[string]string{
		WaySnapshot: "not measured for the whole process (--mode snapshot cannot), so the share in the profile is unknown",
		"":          "not measured for the whole process, so the share in the profile is unknown"} {
		p := &Profile{Stats: Stats{Samples: 1, Complete: 1, Way: way}, Threads: []Thread{{ID: 1}},
			Frames: []Frame{{Name: "f", ModuleIndex: -1}},
			Stacks: []Stack{{Frames: []int32{0}, Count: 1, CPUCount: 1, CPUNanos: 5, Complete: true}}}
		var out strings.Builder
		must.Do(t, WriteSummary(&out, p, TextOptions{}))
		expect.Contains(t, out.String(), "\ncpu          "+want+"\n")
		p.Stacks[0].CPUCount, p.Stacks[0].CPUNanos = 0, 0 // record --events wall
		out.Reset()
		must.Do(t, WriteSummary(&out, p, TextOptions{}))
		expect.True(t, !strings.Contains(out.String(), "\ncpu "), "%s", out.String())
	}
}

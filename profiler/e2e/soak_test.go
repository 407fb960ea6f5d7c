package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
)

var soakTime = flag.Duration("soak", 30*time.Second, "length of the soak")

// summary is the line that record --json prints.
type summary struct {
	export.Recording
}

// recordSummary runs a command under record and gives its summary.
func recordSummary(t *testing.T, limit time.Duration, rate string, argv ...string) (summary, result) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.json")
	r := run(t, limit, nil, append([]string{tool(t), "record", "--mode", "snapshot", "--json", "--rate", rate, "--output", out, "--"}, argv...)...)
	return findSummary(t, r.stderr), r
}

func findSummary(t *testing.T, stderr string) (s summary) {
	t.Helper()
	for _, line := range strings.Split(stderr, "\n") {
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &s) == nil {
			return s
		}
	}
	t.Fatalf("no summary:\n%s", stderr)
	return s
}

// The program's output and exit code must be what they are without a profiler,
// through everything that hurts one.
func TestSoak(t *testing.T) {
	exe := need(t, "out", "samples", "Soak.exe")
	plain := run(t, time.Minute, nil, app(t, "Soak", "3", exe)...)
	if plain.code != 42 {
		t.Fatalf("the program itself fails: %d\n%s%s", plain.code, plain.stdout, plain.stderr)
	}
	seconds := fmt.Sprint(soakTime.Seconds())
	s, r := recordSummary(t, *soakTime+2*time.Minute, "100", app(t, "Soak", seconds, exe)...)
	if r.code != plain.code || r.stdout != plain.stdout {
		t.Errorf("exit code %d and output\n%swithout the profiler %d and\n%s%s", r.code, r.stdout, plain.code, plain.stdout, r.stderr)
	}
	took := time.Duration(s.DurationNanos).Seconds()
	t.Logf("%s: %.0f s, %d samples (%.0f a second), %d complete (%.2f %%), gaps %v, lost %d",
		s.Runtime, took, s.Samples, float64(s.Samples)/took, s.Complete, 100*float64(s.Complete)/float64(s.Samples), s.Gaps, s.Lost)
	t.Logf("%d suspensions, %d retries; suspended p50 %v p99 %v max %v", s.Suspended.Count, s.Retries,
		s.Suspended.P50, s.Suspended.P99, s.Suspended.Max)
	if float64(s.Samples) < 200*took {
		t.Errorf("%d samples in %.0f s: below 200 a second", s.Samples, took)
	}
	if s.Complete*100 < s.Samples*97 {
		t.Errorf("only %d of %d stacks are complete", s.Complete, s.Samples)
	}
	for _, line := range strings.Split(strings.TrimSpace(r.stderr), "\n") {
		if strings.HasPrefix(line, "soak: ") {
			t.Log(line)
		}
	}
}

// Overhead is printed, not judged: it depends on the machine. The work must be
// the same.
func TestOverhead(t *testing.T) {
	const runs = 5
	bench := app(t, "Bench")
	var ratios []float64
	for range runs {
		plain := run(t, time.Minute, nil, bench...)
		out := filepath.Join(t.TempDir(), "out.json")
		under := run(t, 2*time.Minute, nil, append([]string{tool(t), "record", "--mode", "snapshot", "--quiet", "--rate", "100", "--output", out, "--"}, bench...)...)
		if under.code != plain.code || under.stdout != plain.stdout {
			t.Fatalf("under the profiler: %d %q, without: %d %q", under.code, under.stdout, plain.code, plain.stdout)
		}
		ratios = append(ratios, under.took.Seconds()/plain.took.Seconds())
	}
	slices.Sort(ratios)
	t.Logf("time at 100 Hz over time without profiler, start-up and writing included: median %.3f, from %.3f to %.3f, %d pairs",
		ratios[runs/2], ratios[0], ratios[runs-1], runs)
}

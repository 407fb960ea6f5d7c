package e2e

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var (
	samplerAll = flag.Bool("sampler-all", false,
		"both sample profilers, linked either way, on each runtime: make check has two of these eight")
	samplerSeconds = flag.Int("sampler-seconds", 0,
		"how long each run of TestSampler and TestWindowsSampler is, tens of seconds; 0: as short as suits make test")
)

// samplerLength is a program's argument: its seconds.
func samplerLength(usual string) string {
	if *samplerSeconds == 0 {
		return usual
	}
	return fmt.Sprint(*samplerSeconds)
}

const smallest = "smallest_sampler.cpp"

// combination is a sample profiler, linked one way, in a runtime.
type combination struct{ runtime, example, kind string }

func (c *combination) name() string { return c.runtime + "/" + c.example + "/" + c.kind }

// combinations are all of two sample profilers, or two of them, which differ in everything. own is the one
// with a protocol of its own.
func combinations(runtimes []string, own, shared string) (out []combination) {
	for r, runtime := range runtimes {
		for e, example := range []string{smallest, own} {
			for k, kind := range []string{shared, "libseedwalk.a"} {
				if *samplerAll || r == k && e != k {
					out = append(out, combination{runtime, example, kind})
				}
			}
		}
	}
	return out
}

// line is a row of the table that all tests of samplers print. The tests have failed before if a program's
// end or output was not as without a profiler. Completeness is printed with and without the threads that got
// no processor in time.
func (c *combination) line(samples, complete, checked, wrong int, gaps map[merge.Gap]int, outside int) {
	var why []string
	for _, g := range slices.Sorted(maps.Keys(gaps)) {
		why = append(why, fmt.Sprintf("%v %d", g, gaps[g]))
	}
	if why == nil {
		why = []string{"none"}
	}
	if outside > 0 {
		why = append(why, fmt.Sprintf("%d of them in Wine's own code, not counted", outside))
	}
	fmt.Printf("SAMPLER %-45s samples %6d, complete %6.2f %% (without no-answer %6.2f %%), compared %6d, wrong %d, gaps: %s\n",
		c.name(), samples, percent(complete, samples), percent(complete, samples-gaps[merge.GapNoAnswer]),
		checked, wrong, strings.Join(why, ", "))
}

// leastStorm is the least number of samples in a storm of some seconds. The number is small because the test
// is about the program's survival; in Wine forty threads share two cores.
const leastStorm = 5

const (
	stormCode = 42 // exit code of Storm.cs
	maxStorms = 10
)

// stormed checks a run of Storm.cs. The program must have computed all results correctly. At most one stack
// in 100, plus one, may be incomplete. Two kinds of threads do not count: those that got no processor in
// time, and those in Wine's part of a system call.
func stormed(t *testing.T, which combination, samples []*raw.Sample, res result) {
	t.Helper()
	must.True(t, res.code == stormCode,
		"the program ended with %d, without a profiler with 42; it said %q\n%s", res.code, res.stdout,
		res.stderr)
	gaps, asked, complete := map[merge.Gap]int{}, 0, 0
	for _, s := range samples {
		switch g := s.Result.Gap; {
		case g == merge.GapNone:
			asked++
			complete++
		case g == merge.GapNoAnswer:
			gaps[g]++
		case !inWine(s):
			asked++
			gaps[g]++
		}
	}
	which.line(asked+gaps[merge.GapNoAnswer], complete, 0, 0, gaps, 0)
	expect.True(t, len(samples) >= leastStorm && asked-complete <= 1+asked/100,
		"%d samples, %d of %d complete", len(samples), complete, asked)
}

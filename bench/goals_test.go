package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The goals of speed, each with the figure of this run and a verdict. Ratios are medians
// of rounds in one run; instructions are those that bench/work holds the code to.

// goal is a figure that may be at most limit; one without a figure says why.
type goal struct {
	work   string
	limit  float64
	unit   string
	figure func() (v float64, ok bool)
	why    string
}

const noFramehop = "scripts/framehop.sh has built no framehop"

var goals = []goal{
	{work: "hot ELF stack of 32 frames", limit: 2.2, unit: "x replay of known rows",
		figure: beside("deep-32/warm", "replay")},
	{work: "the same", limit: 0.7, unit: "x framehop",
		figure: besideFastest("deep-32/warm", "framehop"), why: noFramehop},
	{work: "hot ELF stack of 8 frames", limit: 1, unit: "x framehop",
		figure: besideFastest("deep-8/warm", "framehop"), why: noFramehop},
	{work: "1,500 stacks of a C++ compiler, once", limit: 0.6, unit: "x framehop",
		figure: besideFastest("compiler/cold", "framehop"), why: noFramehop},
	{work: "the same, p99, just copied", limit: 20, unit: "us", figure: of(tails, "compiler")},
	{work: "the same, p99, not just copied", limit: 20, unit: "us", figure: of(farTails, "compiler")},
	{work: "native frames of a .NET process, once", limit: 0.035, unit: "x libunwind",
		figure: beside("dotnet-0/cold", "libunwind")},
	{work: "JIT-compiled frame, hot", limit: 10, unit: "ns/frame",
		why: "BenchmarkWalk of ./clr/managed prints it"},
	{work: "PE x64 warm", limit: 0.15, unit: "x RtlVirtualUnwind",
		why: "make test-windows prints both; no peer here"},
	{work: "PE x64 miss", limit: 1, unit: "x RtlVirtualUnwind", why: "the same"},
	{work: "ELF miss", limit: 0.8, unit: "x libgcc's step", figure: beside("deep-32/off", "libgcc")},
	{work: "live from C, 29 frames", limit: 1.3, unit: "x unw_backtrace",
		figure: beside("live/walk", "unw_backtrace")},
	{work: "the same, by seedwalk_walk_batch", limit: 1.1, unit: "x unw_backtrace",
		figure: beside("live/batch", "unw_backtrace")},
	{work: "seed, judged", limit: 1.2, unit: "x the plain walk", figure: beside("dotnet-0/seed", "walk")},
	{work: "libcoreclr, all records read", limit: 6, unit: "ms", figure: of(loads, "libcoreclr.so")},
	{work: "the same, allocations", limit: 99, figure: of(loadAllocations, "libcoreclr.so")},
	{work: "20 modules before the first frame", limit: 0.2, unit: "ms", figure: of(loads, twentyModules)},
	{work: "instructions a frame, ARM64 / x86-64", limit: 1.3, unit: "x",
		figure: instructions("ARM64 ELF warm", "x86-64 ELF warm")},
	{work: "instructions a frame, x86-64, half of 285", limit: 142,
		figure: instructions("x86-64 ELF warm", "")},
	{work: "instructions a frame, ARM64, half of 428", limit: 214,
		figure: instructions("ARM64 ELF warm", "")},
}

// verdict is what the run says of a goal.
func (g *goal) verdict() (figure, verdict string) {
	if g.figure == nil {
		return "-", "not measured: " + g.why
	}
	v, ok := g.figure()
	switch {
	case !ok && g.why != "":
		return "-", "not run: " + g.why
	case !ok:
		return "-", "not run"
	case v <= g.limit:
		return fmt.Sprintf("%.3g", v), "met"
	}
	return fmt.Sprintf("%.3g", v), fmt.Sprintf("%.2f times the goal", v/g.limit)
}

func printGoals(w io.Writer) {
	fmt.Fprintf(w, "\n%-42s %-32s %8s   %s\n", "work", "goal", "figure", "verdict")
	for i := range goals {
		figure, verdict := goals[i].verdict()
		fmt.Fprintf(w, "%-42s %-32s %8s   %s\n", goals[i].work,
			strings.TrimSpace(fmt.Sprintf("<= %v %s", goals[i].limit, goals[i].unit)), figure, verdict)
	}
}

// measured finds a result of this run.
func measured(name, peer string) (result, bool) {
	for _, r := range table {
		if r.name == name && r.peer == peer {
			return r, true
		}
	}
	return result{}, false
}

// beside is our time by a peer's.
func beside(name, peer string) func() (float64, bool) {
	return func() (float64, bool) {
		r, ok := measured(name, peer)
		if !ok {
			return 0, false
		}
		return 1 / r.ratios[len(r.ratios)/2], true
	}
}

// besideFastest is our time by that of the fastest of the peers whose names begin so.
func besideFastest(name, kind string) func() (float64, bool) {
	return func() (most float64, ok bool) {
		for i := range table {
			if strings.HasPrefix(table[i].peer, kind) && table[i].name == name {
				v, _ := beside(name, table[i].peer)()
				most, ok = max(most, v), true
			}
		}
		return most, ok
	}
}

// loads are the fastest loads of this run, ms by file name.
var loads = map[string]float64{}

// of is a figure by name, once it is there.
func of(all map[string]float64, name string) func() (float64, bool) {
	return func() (float64, bool) {
		v, ok := all[name]
		return v, ok
	}
}

// loadAllocations are the allocations of a load, by file name.
var loadAllocations = map[string]float64{}

// instructions is a number that bench/work has written down, by another's if it is given.
func instructions(name, by string) func() (float64, bool) {
	return func() (float64, bool) {
		n, ok := writtenDown(name)
		if by == "" || !ok {
			return n, ok
		}
		d, ok := writtenDown(by)
		return n / d, ok
	}
}

func writtenDown(name string) (float64, bool) {
	data, err := os.ReadFile(filepath.Join("work", "testdata", "instructions.txt"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "\t"); key == name {
			n, err := strconv.ParseFloat(value, 64)
			return n, err == nil && n > 0
		}
	}
	return 0, false
}

func TestGoals(t *testing.T) {
	was := table
	defer func() { table = was; delete(loads, "libcoreclr.so") }()
	table = []result{
		{name: "deep-32/warm", peer: "libunwind", ours: 9, ratios: []float64{30, 40, 50}},
		{name: "deep-32/warm", peer: "replay", ours: 9, ratios: []float64{0.4, 0.5, 0.6}},
		{name: "deep-32/warm", peer: "framehop", ours: 9, ratios: []float64{1, 2, 3}},
		{name: "deep-32/warm", peer: "framehop-4093", ours: 9, ratios: []float64{0.7, 0.8, 0.9}},
	}
	loads["libcoreclr.so"] = 15
	for _, c := range []struct{ work, unit, figure, verdict string }{
		{"hot ELF stack of 32 frames", "x replay of known rows", "2", "met"},
		{"JIT-compiled frame, hot", "ns/frame", "-", "not measured: BenchmarkWalk of ./clr/managed prints it"},
		{"native frames of a .NET process, once", "x libunwind", "-", "not run"},
		{"the same", "x framehop", "1.25", "1.79 times the goal"},
		{"1,500 stacks of a C++ compiler, once", "x framehop", "-", "not run: " + noFramehop},
		{"libcoreclr, all records read", "ms", "15", "2.50 times the goal"},
	} {
		found := false
		for i := range goals {
			if g := &goals[i]; g.work == c.work && g.unit == c.unit {
				found = true
				if figure, verdict := g.verdict(); figure != c.figure || verdict != c.verdict {
					t.Errorf("%s: %s, %s; want %s, %s", c.work, figure, verdict, c.figure, c.verdict)
				}
			}
		}
		expect.True(t, found, "no goal %s in %s", c.work, c.unit)
	}
	for _, name := range []string{"ARM64 ELF warm", "x86-64 ELF warm"} {
		if n, ok := writtenDown(name); !ok || n > 1000 {
			t.Errorf("%s: %v instructions, %v", name, n, ok)
		}
	}
}

package worlds

import (
	"flag"
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

var (
	world = flag.Uint64("world", 0, "run this world only, and tell its story")
	count = flag.Int("worlds", 3000, "how many worlds TestWorlds runs")
	bad   = flag.Uint64("damaged", 150,
		"how many worlds TestBadSeeds damages in each way, on each architecture")
)

// TestWorld runs the world of the flag.
func TestWorld(t *testing.T) {
	if *world == 0 {
		return
	}
	r := Run(*world, Options{Trace: true})
	fmt.Println(r.Result.Timeline())
	expect.Equal(t, r.Err(), nil)
}

// counted is what a group of worlds came to.
type counted struct {
	worlds, steps int
	tally         sim.Tally
	results       map[string]int
}

// TestWorlds runs worlds 1 to *count, two at a time.
func TestWorlds(t *testing.T) {
	if *world != 0 {
		return
	}
	n := *count
	if testing.Short() {
		n = 500
	}
	var (
		mu     sync.Mutex
		groups = map[string]*counted{}
		next   atomic.Uint64
		failed atomic.Int32
		wg     sync.WaitGroup
	)
	for range 2 {
		wg.Go(func() {
			for failed.Load() < 5 {
				run := next.Add(1)
				if run > uint64(n) {
					return
				}
				r := Run(run, Options{})
				if err := r.Err(); err != nil {
					failed.Add(1)
					t.Error(err)
				}
				mu.Lock()
				key := fmt.Sprintf("%v/%v", r.Setup.Variant, r.Setup.Arch)
				if groups[key] == nil {
					groups[key] = &counted{results: map[string]int{}}
				}
				groups[key].add(&r)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Log("\n" + table(groups))
	if len(groups) != 10 && n >= 500 {
		t.Errorf("%d kinds of worlds, not 10", len(groups))
	}
	redirected := 0
	for key, g := range groups {
		redirected += g.tally.Redirected
		expect.True(t, g.tally.Complete*2 >= g.tally.Samples,
			"%s: of %d samples only %d are complete: the worlds or the sampler are poor", key,
			g.tally.Samples, g.tally.Complete)
	}
	if redirected == 0 && n >= 500 {
		t.Error("no collection has redirected a thread that the sampler held")
	}
}

func (c *counted) add(r *Report) {
	c.worlds++
	c.steps += r.Result.Steps
	c.tally.Add(&r.Tally)
	for hr, n := range r.Counts.Results {
		c.results[hr.String()] += n
	}
}

// table prints what came of the worlds, per variant.
func table(groups map[string]*counted) string {
	var keys []string
	for k := range groups {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	fmt.Fprintf(&b, "%-24s %6s %9s %8s %8s %9s %7s %6s %6s %6s %7s %9s %s\n", "variant", "worlds", "steps",
		"samples", "complete", "native", "gaps", "gone", "seeds", "redir.",
		"unrep.", "doubtful", "gaps by reason")
	for _, k := range keys {
		g := groups[k]
		y := &g.tally
		pc := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(1, y.Samples))) }
		fmt.Fprintf(&b, "%-24s %6d %9d %8d %8s %9s %7s %6d %6d %6d %7d %9d ", k, g.worlds, g.steps, y.Samples,
			pc(y.Complete), pc(y.Native), pc(y.Gaps), y.Gone, y.Seeds, y.Redirected, y.Unreported, y.Doubtful)
		for i, n := range y.ByGap {
			if i != 0 && n != 0 {
				fmt.Fprintf(&b, " %v:%d", merge.Gap(i), n)
			}
		}
		b.WriteString("\n")
	}
	for _, k := range keys {
		fmt.Fprintf(&b, "%-24s %v\n", k, groups[k].results)
	}
	return b.String()
}

// The same number gives the same world, byte for byte.
func TestDeterministic(t *testing.T) {
	if *world != 0 {
		return
	}
	for run := uint64(1); run <= 40; run++ {
		a, b := Run(run, Options{Trace: true}), Run(run, Options{Trace: true})
		plain := Run(run, Options{})
		expect.True(t, a.Result.Hash == b.Result.Hash && a.Result.Hash == plain.Result.Hash,
			"world %d: hashes %#x, %#x, without a trace %#x", run, a.Result.Hash, b.Result.Hash,
			plain.Result.Hash)
		expect.Equal(t, a.Result.Timeline(), b.Result.Timeline(), "world %d: two timelines", run)
		expect.True(t, a.Tally == b.Tally && a.Tally == plain.Tally,
			"world %d: two tallies:\n%+v\n%+v", run, a.Tally, b.Tally)
		if a.Result.Outcome != sched.Done {
			t.Errorf("world %d: %v", run, a.Err())
		}
	}
}

// A thread that gets no processor while the runtime is suspended makes its copy after that, and the copy
// agrees with what the CLR reported during the suspension.
func TestLateCopies(t *testing.T) {
	late, complete := 0, 0
	for run := uint64(1); run <= 120; run++ {
		r := Run(run, Options{Prepare: func(w *sim.World) { w.Host.AllLate = true }})
		expect.Equal(t, r.Err(), nil)
		late, complete = late+r.Counts.Late, complete+r.Tally.Complete
	}
	t.Logf("%d late copies", late)
	expect.True(t, late >= 60 && complete >= late, "%d late copies, %d complete stacks", late, complete)
}

// Neither seed nor merge allocates on any capture of a sample of worlds.
func TestNothingIsAllocated(t *testing.T) {
	if *world != 0 {
		return
	}
	captures := 0
	for run := uint64(1); run <= 60; run++ {
		r := Run(run, Options{Prepare: func(w *sim.World) {
			seeder, merger := toolsOf(w)
			out := make([]merge.Frame, 512)
			w.Host.Judge = func(c *clr.Capture, _ []machine.Frame) {
				captures++
				var v seed.Verdict
				expect.Equal(t, testing.AllocsPerRun(1, func() { v = seeder.Seed(c) }), 0,
					"world %d: seed, %v: allocations", run, v)
				var res merge.Result
				expect.Equal(t, testing.AllocsPerRun(1, func() { res = merger.Merge(c, out) }), 0,
					"world %d: merge, %+v: allocations", run, res)
			}
		}})
		expect.Equal(t, r.Err(), nil)
	}
	expect.True(t, captures >= 200, "%d captures only", captures)
}

// toolsOf makes the product's seeder and merger for a world.
func toolsOf(w *sim.World) (snapshot.Seeder, *merge.Merger) {
	u := managed.NewWalker(machine.Arch(w.Arch))
	m := merge.New(u, w.Host)
	m.SetTable(w.Kit.Table)
	m.SetSpecials(w.Specials)
	return snapshot.NewSeeder(u, w.Specials), m
}

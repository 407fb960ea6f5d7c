package rules

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// atLeast is how many different states the kept worlds must have.
const atLeast = 100_000

// leastMet is in how many orders with a judged sample a kept side must have met its hazard,
// unless every order was tried.
const leastMet = 400

var long = flag.Bool("explore", false, "try the bounded worlds with one preemption more, and compare with all runs of large worlds")

var machines = []image.Arch{image.AMD64, image.ARM64}

// Every rule, broken, shows what it warns of, on both architectures.
func TestBroken(t *testing.T) {
	for _, r := range Each() {
		for _, a := range machines {
			t.Run(r.Name+"/"+a.String(), func(t *testing.T) {
				r.Setup.Arch = a
				rep := r.Fail()
				must.True(t, rep.First != nil && rep.First.Outcome == r.Wants,
					"wants %v, found nothing of it in %d interleavings: %+v", r.Wants, rep.Interleavings, rep)
				says := rep.First.Fault + graphText(rep.First)
				expect.True(t, strings.Contains(says, r.Says), "it says %q, without %q", says, r.Says)
				again := r.Run(true, sched.Replay(rep.First.Choices))
				expect.Equal(t, again.Timeline(), rep.First.Timeline(), "the same choices tell another story")
			})
		}
	}
}

// Every rule, kept, shows nothing in any order of steps within its bound.
func TestKept(t *testing.T) {
	total, states, results, skipped := 0.0, 0, 0, 0 // skipped: subtests that -run leaves out
	for _, rule := range All() {
		if rule.Idle {
			fmt.Printf("%-22s cannot be broken by the sampler; enforced by: %s\n", rule.Name, rule.Enforced)
			continue
		}
		for _, a := range machines {
			skipped++
			t.Run(rule.Name+"/"+a.String(), func(t *testing.T) {
				skipped--
				r := *rule
				r.Setup.Arch = a
				bound := r.Preemptions()
				if bound > 0 && *long {
					bound++
				}
				r.Reach = bound
				rep := r.Explore()
				if rep.First != nil {
					t.Fatalf("%v: %s\n%s\n%s", rep.First.Outcome, rep.First.Fault,
						graphText(rep.First), rep.First.Timeline())
				}
				expect.True(t, rep.Exhausted, "not every order within the bounds was tried")
				n := rep.Orders
				if n.Met < leastMet && bound > 0 || n.Met == 0 {
					t.Errorf("%.0f orders with a judged sample met the hazard (%s): this side proves little",
						n.Met, r.Hazard)
				}
				total += n.Judged
				states += rep.States
				results += len(rep.Results)
				fmt.Printf("%-22s %-5v bound %2d (0, -1: whole): %.0f orders through %d states, %.0f judged, %3d distinct results, %.0f met: %s; %d steps; broken: %v\n",
					r.Name, a, bound, n.All, rep.States, n.Judged, len(rep.Results), n.Met, r.Hazard,
					rep.MaxDepth, r.Wants)
			})
		}
	}
	fmt.Printf("%.0f orders with a judged sample, %d distinct results: nothing found\n", total, results)
	if testing.CoverMode() == "" && skipped == 0 && states < atLeast {
		t.Errorf("%d states in all, want %d", states, atLeast)
	}
}

// Cutting runs at equal states loses nothing: an exploration that makes every run finds as many runs, and as
// many distinct results, as the cut one counts. Each rule is compared within the bound of its broken side,
// and without a bound if that is feasible.
func TestWhole(t *testing.T) {
	most, n := 100_000.0, 0
	switch {
	case *long:
		most = 12_000_000 // minutes
	case testing.Short():
		most = 9_000
	}
	for _, r := range All() {
		for _, bound := range slices.Compact([]int{r.Bounds.Preemptions, r.Preemptions()}) {
			t.Run(fmt.Sprint(r.Name, "/", bound), func(t *testing.T) {
				r.Reach, r.Bounds.Preemptions, r.Bounds.Workers = bound, bound, runtime.NumCPU()
				cut := r.Explore()
				if cut.Orders.All > most {
					t.Skipf("SKIPPED-CHECK: %.0f runs are too many; make explore makes them all", cut.Orders.All)
				}
				all := r.MakeEachRun(false)
				expect.Equal(t, cut.Orders, all.Orders, "complete runs")
				expect.Equal(t, len(cut.Results), len(all.Results), "distinct results")
				t.Logf("%.0f runs, %d states", all.Orders.All, cut.States)
				n++
			})
		}
	}
	expect.True(t, n >= 10, "only %d worlds were compared", n)
}

// Names are what people type, and texts are what they read.
func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		if r.Name == "" || seen[r.Name] || r.Line == "" || len(r.Text) < 80 || r.Source == "" ||
			r.Broken == nil || r.Kept == nil || r.Wants == sched.Done || r.Enforced == "" ||
			r.Provoked == "" {
			t.Errorf("rule %q: a part is missing, or the name is taken", r.Name)
		}
		seen[r.Name] = true
		got, err := Find(r.Name)
		expect.True(t, err == nil && got.Line == r.Line, "%s is not found: %v", r.Name, err)
	}
	for _, r := range Each() {
		if r.Line == "" || len(r.Text) < 80 || r.Source == "" || r.Says == "" && r.Wants == sched.Deadlock ||
			r.Enforced == "" || r.Provoked == "" {
			t.Errorf("rule %q: a part is missing", r.Name)
		}
		got, err := Find(r.Name)
		expect.True(t, err == nil && got.Line == r.Line, "%s is not found: %v", r.Name, err)
		seen[r.Name] = true
	}
	for name := range keeps {
		expect.True(t, seen[name], "%s is no rule, and something is said to keep it", name)
	}
	for _, r := range TextRules() {
		expect.True(t, !seen[r.Name] && r.Line != "" && len(r.Text) >= 80 && r.Enforced != "" &&
			r.Provoked != "", "rule %q, told only: a part is missing, or the name is taken", r.Name)
		seen[r.Name] = true
	}
	_, err := Find("no-such-rule")
	expect.True(t, err != nil, "an unknown name is found")
}

func graphText(r *sched.Result) string {
	if r.Graph == nil {
		return ""
	}
	return r.Graph.Text()
}

// The figure's process runs to its end on both architectures, and its sample is
// the figure's stack, whole.
func TestGoodSample(t *testing.T) {
	for _, a := range machines {
		r := Good()
		r.Setup.Arch = a
		var w *sim.World
		inner := r.Kept
		r.Kept = func(in *sim.World) { w = in; inner(in) }
		res := r.Run(false, sched.Random(1))
		must.True(t, res.Outcome == sched.Done, "%v: %v: %s\n%s", a, res.Outcome, res.Fault, res.Timeline())
		text := res.Timeline()
		expect.True(t, strings.Contains(text, "DoStackSnapshot: S_OK"), "%v: no frames:\n%s", a, text)
		expect.True(t, w != nil && image.Arch(a) == w.Arch, "%v: another world", a)
		t.Logf("\n%s", res.Timeline())
	}
}

// Neither half of the cure is enough: the first call of all is made of a thread
// that nobody has looked at, and a watchdog alone costs a second at each meeting.
func TestSnapshotLock(t *testing.T) {
	for _, c := range []struct {
		name             string
		careful          bool
		watchdog         bool
		stuck            bool // some order never ends
		rescues, without bool // some order needs the watchdog; some sample is not asked for
	}{
		{"neither", false, false, true, false, false},
		{"the check only", true, false, true, false, true},
		{"the watchdog only", false, true, false, true, false},
		{"both", true, true, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := snapshotLock()
			rescues, skipped := 0, 0
			rep := sched.Explore(r.Bounds, func(s *sched.World) {
				r.build(s, r.Setup, func(w *sim.World) {
					table := w.LoaderTable(c.careful)
					w.SpawnManaged("target", func(t *sim.Thread) { t.Load(table) })
					if c.watchdog {
						w.Host.Watchdog()
					}
					w.Host.Sampler(func(*sched.Actor) {
						w.Host.SampleAll(2)
						rescues += w.Host.Counts.Rescues
						skipped += w.Host.Counts.Loading
					})
				})
			})
			t.Logf("%d of %d interleavings never end; %d rescues, %d samples not asked for", rep.Deadlocks,
				rep.Interleavings, rescues, skipped)
			expect.True(t, rep.Deadlocks > 0 == c.stuck && rep.Faults+rep.StepLimits == 0 &&
				rescues > 0 == c.rescues && skipped > 0 == c.without && rep.Exhausted,
				"want stuck %v, rescues %v, without %v", c.stuck, c.rescues, c.without)
		})
	}
}

// The tests that are said to enforce rules are there.
func TestEnforcersExist(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	must.Do(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "out"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return err
	}))
	named, n := regexp.MustCompile(`\bTest[A-Z]\w+`), 0
	check := func(rule, text string) {
		for _, name := range named.FindAllString(text, -1) {
			n++
			expect.True(t, there[name], "%s is said to be enforced by %s, which is nowhere", rule, name)
		}
	}
	for _, r := range Each() {
		check(r.Name, r.Enforced)
	}
	for _, r := range All() {
		expect.True(t, (r.Hazard == "" || r.Met == nil) == r.Idle, "%s: idle %v, and hazard %q",
			r.Name, r.Idle, r.Hazard)
	}
	for _, r := range TextRules() {
		check(r.Name, r.Enforced)
	}
	expect.True(t, n >= 20, "%d tests are named only", n)
}

//go:build linux && amd64

package native

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// world is a file of worlds/ with its parameters.
type world struct {
	name, file string
	from       string // the folder of the product's sources, "": the probe's
	defines    []string
	outcomes   []string // all of them
	races      []string // known data races; each involves a plain access
	faults     []fault  // changes of the product that the world finds
	limit      int      // executions, 0: two million
	long       bool     // only with -explore
	arm64      bool     // compiled for ARM64
}

// fault is a change of the product's source. A file with "=" in it is a macro of the world instead.
type fault struct {
	name, file string
	edits      [][2]string // a text that occurs once, and what replaces it; or "@offset" and "old>new"
	finds      string      // in the first failure; "race": a data race that the world has not else
}

var long = flag.Bool("explore", false, "explore the large worlds too, and weaken every memory order")

// weaken returns the edit that makes an operation relaxed.
func weaken(operation string) [][2]string {
	return [][2]string{{operation, order.ReplaceAllString(operation, "__ATOMIC_RELAXED")}}
}

var order = regexp.MustCompile(`__ATOMIC_\w+`)

var worlds = slices.Concat(libraryWorlds, probeWorlds)

func slug(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, ",", ""), " ", "-") }

// Every world is explored whole, finds nothing in the product's C, and finds each fault.
func TestWorlds(t *testing.T) {
	for _, w := range worlds {
		if w.long && !*long {
			continue
		}
		t.Run(slug(w.name), func(t *testing.T) {
			check(t, w)
			for _, f := range w.faults {
				t.Run(slug(f.name), func(t *testing.T) { find(t, w, f) })
			}
		})
	}
}

// check explores a world of the product as it is.
func check(t *testing.T, w world) {
	r := explore(t, w, "weak", fault{})
	t.Log(r)
	if r.Failures > 0 {
		t.Fatalf("%s\n%s", r.Why, strings.Join(r.Trace, "\n"))
	}
	if (!r.Whole && !w.long) || !slices.Equal(r.Outcomes, w.outcomes) {
		t.Errorf("whole %v, outcomes %q, want %q", r.Whole, r.Outcomes, w.outcomes)
	}
	expect.Slices(t, r.Races, w.races, "data races")
}

// The probe for ARM64 has other system calls, registers, and frames of signals.
func TestWorldsARM64(t *testing.T) {
	if !*long {
		t.Skip("SKIPPED-CHECK: the probe for ARM64 is explored with -explore only (make explore)")
	}
	for _, w := range worlds {
		if w.from == "" && !w.long {
			w.arm64 = true
			t.Run(slug(w.name), func(t *testing.T) { check(t, w) })
		}
	}
}

// find puts a fault into the product and explores: the world must find it.
func find(t *testing.T, w world, f fault) {
	exe, failures := compile(t, w, f), 1
	if f.finds == "race" {
		failures = mostFailures
	}
	for _, mode := range []string{"strong", "weak"} {
		r := run(t, w, mode, exe, failures)
		if f.finds == "race" && !slices.Equal(r.Races, w.races) {
			t.Logf("%s: %d races: %s", mode, len(r.Races), r.Races[0])
			return
		}
		if r.Failures > 0 {
			t.Logf("%s: execution %d, %.2f s: %s", mode, r.Executions, r.Time.Seconds(), r.Why)
			expect.Contains(t, r.Why, f.finds)
			return
		}
	}
	t.Errorf("the world does not find it: %v", f.edits)
}

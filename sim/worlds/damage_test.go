package worlds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// seeded makes a world one whose CLR takes seeds.
func seeded(a image.Arch) func(s *sim.Setup) {
	return func(s *sim.Setup) {
		s.Variant, s.Arch = vm.Variants()[s.Run%3], a
	}
}

// certain are the kinds that no bad seed passes.
var certain = map[string]bool{"wrong thread": true, "misaligned sp": true, "foreign sp": true,
	"non-canonical address": true}

// twins are upper bounds of the seeds of a twin, in percent of the bad contexts of a kind. Nothing
// distinguishes these contexts from good ones: see twin.go. A kind that is not listed has none.
var twins = map[image.Arch]map[string]float64{
	image.AMD64: {"bit flip in ip": 0.1, "bit flip in sp": 0.1, "bit flip in fp": 0.1,
		"ip one byte less": 0.1, "stale context": 2, "sp off by words": 0.5,
		"ip in other unmanaged code": 0.5, "another return address": 1.5, "fp off by a frame record": 0.3,
		"two contexts mixed": 0.5, "stale copy of the stack": 1.5},
	image.ARM64: {"bit flip in ip": 0.4, "bit flip in sp": 0.2, "bit flip in fp": 0.1,
		"bit flip in the stack's copy": 0.3, "stale context": 2, "sp off by words": 1.5,
		"ip in other unmanaged code": 6, "ip in a stub": 2.5, "stack changes under the walk": 0.2,
		"another return address": 4, "fp off by a frame record": 0.7, "two contexts mixed": 1.5,
		"stale copy of the stack": 0.7},
}

// redirectedDeaths is an upper bound of the deaths by a kind of damage that makes another ip look interrupted
// in a method, in percent: see Damage.Confirmed.
var redirectedDeaths = map[string]float64{"bit flip in ip": 0.1}

// Bad contexts of every kind: what is caught, and what comes of the rest. In half of the worlds, the seeder
// learns managed code as it meets it. Every seed that passes is a good one or that of a twin, and none that
// the witnesses have confirmed kills the CLR.
func TestBadSeeds(t *testing.T) {
	if *world != 0 {
		return
	}
	n := *bad
	if testing.Short() {
		n = 60
	}
	for _, arch := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(arch.String(), func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, "%-34s %6s %6s | %7s %8s %7s %7s | %7s %6s %6s\n", "kind", "tries", "same",
				"caught", "harmless", "lost", "refused", "twins", "deaths", "wrong")
			for i := range Kinds {
				t.Run(Kinds[i].Name, func(t *testing.T) {
					s := damaged(t, &Kinds[i], n, arch)
					b.WriteString(s.row(Kinds[i].Name))
					s.check(t, Kinds[i].Name, twins[arch][Kinds[i].Name], n)
				})
			}
			t.Log("\n" + b.String())
		})
	}
}

// bad returns how many of the contexts are bad.
func (s *Sorts) bad() int { return max(1, s.Tries+s.Faults-s.Same) }

func (s *Sorts) percent(n int) float64 { return 100 * float64(n) / float64(s.bad()) }

func (s *Sorts) row(kind string) string {
	pc := func(n int) string { return fmt.Sprintf("%.2f%%", s.percent(n)) }
	return fmt.Sprintf("%-34s %6d %6d | %7s %8s %7s %7s | %7s %6d %6d\n", kind, s.Tries, s.Same, pc(s.Caught),
		pc(s.Harmless), pc(s.Lost), pc(s.Refused), pc(s.Twins), s.Faults, s.Wrong)
}

// check compares the counts of n worlds with what is allowed.
func (s *Sorts) check(t *testing.T, kind string, twins float64, n uint64) {
	expect.True(t, s.Tries >= int(n)/10, "%s: %d tries only", kind, s.Tries)
	if certain[kind] && s.Caught+s.Same != s.Tries {
		t.Errorf("%s: %d of %d are caught", kind, s.Caught, s.Tries-s.Same)
	}
	expect.True(t, s.Deaths == 0 && s.Wrong == 0, "%s: %d seeds kill the CLR, and %d are wrong",
		kind, s.Deaths, s.Wrong)
	s.atMost(t, kind+": twins", s.Twins, twins)
	s.atMost(t, kind+": deaths", s.Faults-s.Deaths, redirectedDeaths[kind])
}

func (s *Sorts) atMost(t *testing.T, what string, count int, percent float64) {
	allowed := percent * float64(s.bad()) / 100
	if percent != 0 {
		allowed += 2 // the tries of one world resemble each other
	}
	expect.True(t, float64(count) <= allowed, "%s: %d of %d, more than %v %%", what, count, s.bad(), percent)
}

// damaged runs n worlds with one kind of damage.
func damaged(t *testing.T, k *Kind, n uint64, a image.Arch) (sum Sorts) {
	for run := uint64(1); run <= n; run++ {
		d := &Damage{Kind: k}
		r := Run(run, Options{Damage: d, Setup: seeded(a)})
		if r.Result.Outcome == sched.Fault && strings.Contains(r.Result.Fault, "80131506") {
			d.Sorts.Faults++
			t.Logf("%s: world %d: %s", k.Name, run, r.Result.Fault)
			if d.Confirmed() {
				d.Sorts.Deaths++
			}
		} else if err := r.Err(); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if d.Sorts.Wrong > 0 {
			t.Logf("%s: world %d: %d wrong seeds", k.Name, run, d.Sorts.Wrong)
		}
		sum.add(&d.Sorts)
	}
	return sum
}

func (s *Sorts) add(o *Sorts) {
	s.Tries += o.Tries
	s.Same += o.Same
	s.Caught += o.Caught
	s.Unused += o.Unused
	s.Refused += o.Refused
	s.True += o.True
	s.Lost += o.Lost
	s.Twins += o.Twins
	s.Wrong += o.Wrong
	s.Harmless += o.Harmless
	s.Faults += o.Faults
	s.Deaths += o.Deaths
}

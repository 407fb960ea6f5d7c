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

// shares are upper bounds of the results of a kind of damage, in percent of the bad contexts. A kind that is
// not listed has 0 of each.
type shares struct {
	twins     float64 // nothing distinguishes these contexts from good ones: see twin.go
	unchecked float64 // wrong in worlds whose seeder has no unwind data of methods
}

var most = map[image.Arch]map[string]shares{
	image.AMD64: {
		"bit flip in ip":                   {twins: 0.1, unchecked: 0.1},
		"bit flip in sp":                   {twins: 0.1, unchecked: 0.1},
		"bit flip in fp":                   {twins: 0.1, unchecked: 0.3},
		"bit flip in a preserved register": {twins: 0.1, unchecked: 0.1}, // RBP is one of them
		"bit flip in the stack's copy":     {unchecked: 0.5},
		"ip one byte less":                 {twins: 0.1, unchecked: 0.1},
		"stale context":                    {twins: 2, unchecked: 1},
		"sp off by words":                  {twins: 0.5, unchecked: 0.2},
		"ip in other unmanaged code":       {twins: 0.5, unchecked: 0.3},
		"stack changes under the walk":     {unchecked: 0.2},
		"another return address":           {twins: 1.5, unchecked: 5},
		"fp off by a frame record":         {twins: 0.3, unchecked: 1},
		"two contexts mixed":               {twins: 0.5, unchecked: 0.5},
		"stale copy of the stack":          {twins: 1.5, unchecked: 0.3},
	},
	image.ARM64: {
		"bit flip in ip":                   {twins: 0.4, unchecked: 0.4},
		"bit flip in sp":                   {twins: 0.2, unchecked: 0.2},
		"bit flip in fp":                   {twins: 0.1, unchecked: 0.2},
		"bit flip in a preserved register": {twins: 0.1, unchecked: 0.1},
		"bit flip in the stack's copy":     {twins: 0.3, unchecked: 1},
		"stale context":                    {twins: 2, unchecked: 1},
		"sp off by words":                  {twins: 1.5, unchecked: 1},
		"ip in other unmanaged code":       {twins: 6, unchecked: 2.5},
		"ip in a stub":                     {twins: 2.5, unchecked: 1},
		"stack changes under the walk":     {twins: 0.2, unchecked: 0.2},
		"another return address":           {twins: 4, unchecked: 5},
		"fp off by a frame record":         {twins: 0.7, unchecked: 0.5},
		"two contexts mixed":               {twins: 1.5, unchecked: 1},
		"stale copy of the stack":          {twins: 0.7, unchecked: 0.2},
	},
}

// Every mode of the seeder runs with every variant of the CLR.
func TestSeedModes(t *testing.T) {
	type mode struct {
		tables, learns bool
		variant        vm.Variant
	}
	seen := map[mode]bool{}
	for run := range uint64(90) {
		Run(run, Options{Rounds: 1, Setup: seeded(image.AMD64), Prepare: func(w *sim.World) {
			seen[mode{w.SeedTables, w.SeedLearns, w.Variant}] = true
		}})
	}
	expect.Equal(t, len(seen), 9, "%v", seen)
}

// Bad contexts of every kind: what is caught, and what comes of the rest. A third of the worlds has the
// runtime's tables. In another third, the seeder learns managed code as it meets it. In both, every seed that
// passes is a good one or that of a twin. In the last third, the seeder has only the code before a seed. The
// C library on Windows has no more of methods that it has not seen. No seed kills the CLR in any of them.
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
			fmt.Fprintf(&b, "%-34s %6s %6s | %7s %8s %7s %7s | %7s %9s %6s %6s\n", "kind", "tries", "same",
				"caught", "harmless", "lost", "refused", "twins", "unchecked", "deaths", "wrong")
			for i := range Kinds {
				t.Run(Kinds[i].Name, func(t *testing.T) {
					s := damaged(t, &Kinds[i], n, arch)
					b.WriteString(s.row(Kinds[i].Name))
					s.check(t, Kinds[i].Name, most[arch][Kinds[i].Name], n)
				})
			}
			t.Log("\n" + b.String())
		})
	}
}

// bad returns how many of the contexts are bad.
func (s *Sorts) bad() int { return max(1, s.Tries+s.Deaths-s.Same) }

func (s *Sorts) percent(n int) float64 { return 100 * float64(n) / float64(s.bad()) }

func (s *Sorts) row(kind string) string {
	pc := func(n int) string { return fmt.Sprintf("%.2f%%", s.percent(n)) }
	return fmt.Sprintf("%-34s %6d %6d | %7s %8s %7s %7s | %7s %9s %6d %6d\n", kind, s.Tries, s.Same, pc(s.Caught),
		pc(s.Harmless), pc(s.Lost), pc(s.Refused), pc(s.Twins), pc(s.Unchecked), s.Deaths, s.Wrong)
}

// check compares the counts of n worlds with what is allowed.
func (s *Sorts) check(t *testing.T, kind string, m shares, n uint64) {
	expect.True(t, s.Tries >= int(n)/10, "%s: %d tries only", kind, s.Tries)
	if certain[kind] && s.Caught+s.Same != s.Tries {
		t.Errorf("%s: %d of %d are caught", kind, s.Caught, s.Tries-s.Same)
	}
	expect.True(t, s.Deaths == 0, "%s: %d seeds kill the CLR", kind, s.Deaths)
	s.atMost(t, kind+": twins", s.Twins, m.twins)
	s.atMost(t, kind+": unchecked", s.Unchecked, m.unchecked)
	expect.True(t, s.Wrong == 0, "%s: %d wrong seeds are confirmed", kind, s.Wrong)
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
			d.Sorts.Deaths++
			t.Logf("%s: world %d: %s", k.Name, run, r.Result.Fault)
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
	s.Unchecked += o.Unchecked
	s.Wrong += o.Wrong
	s.Harmless += o.Harmless
	s.Deaths += o.Deaths
}

package worlds

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

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
				if n := testing.AllocsPerRun(1, func() { v = seeder.Seed(c) }); n != 0 {
					t.Errorf("world %d: seed, %v: %v allocations", run, v, n)
				}
				var res merge.Result
				if n := testing.AllocsPerRun(1, func() { res = merger.Merge(c, out) }); n != 0 {
					t.Errorf("world %d: merge, %+v: %v allocations", run, res, n)
				}
			}
		}})
		if err := r.Err(); err != nil {
			t.Error(err)
		}
	}
	if captures < 200 {
		t.Errorf("%d captures only", captures)
	}
}

// toolsOf makes the product's seeder and merger for a world.
func toolsOf(w *sim.World) (snapshot.Seeder, *merge.Merger) {
	u := managed.NewWalker(machine.Arch(w.Arch))
	m := merge.New(u, w.Host)
	m.SetTable(w.Kit.Table)
	m.SetSpecials(w.Specials)
	return snapshot.NewSeeder(u, w.Specials), m
}

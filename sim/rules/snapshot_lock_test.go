package rules

import (
	"testing"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
)

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
			t.Logf("%d of %d interleavings never end; %d rescues, %d samples not asked for", rep.Deadlocks, rep.Interleavings, rescues, skipped)
			if rep.Deadlocks > 0 != c.stuck || rep.Faults+rep.StepLimits > 0 || rescues > 0 != c.rescues || skipped > 0 != c.without || !rep.Exhausted {
				t.Errorf("want stuck %v, rescues %v, without %v", c.stuck, c.rescues, c.without)
			}
		})
	}
}

package rules

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
)

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
		if res.Outcome != sched.Done {
			t.Fatalf("%v: %v: %s\n%s", a, res.Outcome, res.Fault, res.Timeline())
		}
		if text := res.Timeline(); !strings.Contains(text, "DoStackSnapshot: S_OK") {
			t.Errorf("%v: no frames:\n%s", a, text)
		}
		if w == nil || image.Arch(a) != w.Arch {
			t.Errorf("%v: another world", a)
		}
		t.Logf("\n%s", res.Timeline())
	}
}

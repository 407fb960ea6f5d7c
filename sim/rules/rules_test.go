package rules

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/sched"
)

// Every rule, broken, shows what it warns of; kept, it shows nothing in any
// order of steps within its bounds.
func TestRules(t *testing.T) {
	for _, r := range All() {
		t.Run(r.Name+"/broken", func(t *testing.T) {
			rep := r.Explore(true)
			if rep.First == nil || rep.First.Outcome != r.Wants {
				t.Fatalf("found nothing in %d interleavings: %+v", rep.Interleavings, rep)
			}
			if says := rep.First.Fault + graphText(rep.First); !strings.Contains(says, r.Says) {
				t.Errorf("it says %q, without %q", says, r.Says)
			}
		})
		t.Run(r.Name+"/kept", func(t *testing.T) {
			rep := r.Explore(false)
			if rep.First != nil {
				t.Fatalf("%v: %s\n%s", rep.First.Outcome, rep.First.Fault, graphText(rep.First))
			}
			if !rep.Exhausted {
				t.Errorf("not every order within the bounds was tried")
			}
			t.Logf("%d interleavings, deepest %d steps", rep.Interleavings, rep.MaxDepth)
		})
	}
}

func graphText(r *sched.Result) string {
	if r.Graph == nil {
		return ""
	}
	return r.Graph.Text()
}

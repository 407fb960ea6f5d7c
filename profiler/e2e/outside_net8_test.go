package e2e

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// A program of .NET 8, which publishes nothing of its structures. Its tables prove the layout
// that is known for its release, so that its stacks are walked from outside. With --mode
// snapshot, and where no layout is proven, its threads say themselves what their stacks are.
func TestNet8(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags string
		says  []string
	}{
		{"from outside", "", []string{".NET 8.0.6", "from outside", "never suspended"}},
		{"snapshot", "--mode snapshot", []string{".NET 8.0.6", "snapshot", "biased to safe points"}},
	} {
		t.Run(c.name, func(t *testing.T) { testNet8(t, c.flags, c.says) })
	}
}

func testNet8(t *testing.T, flags string, says []string) {
	c := newChecker(t)
	r := recordRaw(t, "--rate 100 "+flags, on(t, needs.Net8, "Truth", "6")...)
	r.well(t, 0, "TRUTH DONE\n")
	t.Log("\n" + r.stderr)
	c.recorded(t, r)
	c.want, c.last, c.whole = 0, 7, 100
	c.verdict(t)
	for _, say := range says {
		if !strings.Contains(r.stderr, say) {
			t.Errorf("the summary does not say %q", say)
		}
	}
}

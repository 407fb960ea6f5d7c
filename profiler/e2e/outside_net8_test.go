package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
)

// A program of .NET 8, which publishes nothing of its structures. Its tables prove the layout
// that is known for its release, so that its stacks are walked from outside. With --mode
// snapshot, and where no layout is proven, its threads say themselves what their stacks are.
func TestNet8(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		says  []string
	}{
		{"from outside", nil, []string{".NET 8.0.6", "from outside", "never suspended"}},
		{"snapshot", []string{"--mode", "snapshot"}, []string{".NET 8.0.6", "snapshot", "biased to safe points"}},
	} {
		t.Run(c.name, func(t *testing.T) { testNet8(t, c.flags, c.says) })
	}
}

func testNet8(t *testing.T, flags, says []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	c, table := newChecker(t), map[uint64]*tally{}
	samples, rd, r := recordWith(t, 2*time.Minute, append([]string{"--rate", "100"}, flags...), need(t, "out", "samples", "Truth8"), "6")
	if r.code != 0 || r.stdout != "TRUTH DONE\n" {
		t.Fatalf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
	}
	t.Log("\n" + r.stderr)
	c.methods = rd.Names()
	c.compare(t, table, samples)
	whole, unanswered := 0, 0
	for scenario := range uint64(8) {
		row := table[scenario]
		if row == nil {
			row = &tally{}
		}
		t.Logf("scenario %d: %d samples, %d complete, %d compared, %d wrong, gaps %v", scenario, row.samples, row.complete, row.checked, row.wrong, row.gaps)
		whole, unanswered = whole+row.complete, unanswered+row.gaps[merge.GapNoAnswer]
		if scenario > 0 && row.checked == 0 {
			t.Errorf("scenario %d was never compared", scenario)
		}
	}
	if whole*100 < (len(samples)-unanswered)*99 {
		t.Errorf("%d of %d stacks are whole, %d threads did not answer", whole, len(samples), unanswered)
	}
	for _, say := range says {
		if !strings.Contains(r.stderr, say) {
			t.Errorf("the summary does not say %q", say)
		}
	}
}

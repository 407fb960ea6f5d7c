package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/merge"
)

// A program of .NET 8, which publishes nothing of its structures and whose debuggers'
// table is of another release than any that is known: nothing can be proven. It is
// sampled in the old way, is told so, and its stacks are what its threads say of
// themselves.
func TestNet8(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	c, table := newChecker(t), map[uint64]*tally{}
	samples, rd, r := recordWith(t, 2*time.Minute, []string{"--rate", "100"}, need(t, "out", "samples", "Truth8"), "6")
	if r.code != 0 || r.stdout != "TRUTH DONE\n" {
		t.Fatalf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
	}
	t.Log("\n" + r.stderr)
	c.methods = rd.Names()
	c.compare(t, table, samples)
	whole, unanswered := 0, 0
	for scenario := range uint64(6) {
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
	if len(samples) < 100 || whole*100 < (len(samples)-unanswered)*97 {
		t.Errorf("%d of %d stacks are whole, %d threads did not answer", whole, len(samples), unanswered)
	}
	for _, says := range []string{".NET 8.0.6", "snapshot", "biased to safe points"} {
		if !strings.Contains(r.stderr, says) {
			t.Errorf("the summary does not say %q", says)
		}
	}
}

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Return addresses that the runtime has replaced by its own, to stop a thread when its
// method returns, are met in copied stacks and set right, by the bytes of the runtime's
// Thread that were copied with them.
func TestProbePatched(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	app9, app10 := truthApps(t)
	for _, c := range []struct {
		name string
		app  func(args ...string) []string
	}{{"net9", app9}, {"net10", app10}} {
		t.Run(c.name, func(t *testing.T) { probePatched(t, c.app("5", "hijack")) })
	}
}

func probePatched(t *testing.T, argv []string) {
	c := newChecker(t)
	c.want, c.first, c.last = 100, 61, 63
	table := map[uint64]*tally{}
	var met, patched int64
	for runs := 0; runs < 8 && met == 0; runs++ {
		samples, rd, r := recordWith(t, 2*time.Minute, []string{"--mode", "probe", "--rate", "1000", "--json"}, argv...)
		if r.code != 0 || r.stdout != "TRUTH DONE\n" {
			t.Fatalf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
		}
		var sum struct {
			Stats struct{ Counters map[string]int64 }
		}
		if err := json.Unmarshal([]byte(r.stderr[max(0, strings.IndexByte(r.stderr, '{')):]), &sum); err != nil {
			t.Fatalf("%v\n%s", err, r.stderr)
		}
		met += sum.Stats.Counters["returns"]
		patched += sum.Stats.Counters["patched"]
		c.methods = rd.Names()
		c.compare(t, table, samples)
	}
	c.verdict(t, table)
	t.Logf("%d replaced return addresses set right, in %d stacks that had one", met, patched)
	if met == 0 {
		t.Error("none was met")
	}
}

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Another vendor's profiler has its own session for the same events: each session receives them, and each
// event is counted once.
func TestEventsBesideSession(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	isMain, isBeside := secondAs(second)
	for _, c := range []struct {
		name    string // what the other is
		env     map[string]string
		runtime string
		judge   func(t *testing.T, runtime string)
	}{
		{"net9 main waits", isMain, needs.Net9, waitsBeside},
		{"net10 beside waits", isBeside, needs.Net10, waitsBeside},
		{"net9 beside allocations", isBeside, needs.Net9, allocationsBeside},
		{"net10 main allocations", isMain, needs.Net10, allocationsBeside},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			t.Setenv("SECOND_EVENTS", "1")
			c.judge(t, c.runtime)
		})
	}
}

func recordBeside(t *testing.T, events string, argv []string) *recording {
	t.Helper()
	counts := filepath.Join(tempdir.New(t), "counts")
	t.Setenv("SECOND_COUNTS", counts)
	r := record(t, "--wait-min 0 --events "+events, argv...)
	if h := readHeard(t, counts); r.code != 7 || h.events < 100 {
		t.Errorf("exit code %d; the other's session gave it %d events\n%s", r.code, h.events, r.stderr)
	}
	r.wholeEvents(t)
	return r
}

func waitsBeside(t *testing.T, runtime string) {
	r := recordBeside(t, "waits,locks", on(t, runtime, "Waits", "mutex,monitor,many"))
	r.judge(t, r.truth(t, 20))
}

func allocationsBeside(t *testing.T, runtime string) {
	r := recordBeside(t, "alloc,exception", on(t, runtime, "Events"))
	r.allocated(t, r.stdout, "Events", "Events.Part", "Events.All", "Events.Main")
}

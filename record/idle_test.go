package record

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/wire"
)

// A process without samples has a line that says why: best by its clocks.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name     string
		counters map[string]uint64
		usages   []*wire.Usage
		farewell string
		want     string
	}{
		{"a library", nil, nil, "", ""},
		{"the process ended", map[string]uint64{"probe_rounds": 0}, nil, "the process ended.", ""},
		{"nothing looked at", map[string]uint64{"probe_rounds": 9}, nil, "stopped", "looked at 9 times"},
		{"not permitted", map[string]uint64{"probe_rounds": 9, "probe_visits": 3, "probe_hidden": 3}, nil, "stopped", "does not permit"},
		{"nothing ran", map[string]uint64{"probe_rounds": 9, "probe_visits": 3}, nil, "stopped", "looked at 9 times"},
		{"nearly no time", nil, []*wire.Usage{usageOf(1, 3, 0, 0), usageOf(0, 3, 0, 0)}, "the process ended.",
			"process 7 (app) used 3ms of processor time while it was recorded, less than the 10ms between two samples"},
		{"time by cause", nil, []*wire.Usage{usageOf(1, 1200, 0, wire.CauseStartup), usageOf(2, 7, 0, 0), usageOf(0, 1210, 0, 0)}, "the process ended.",
			"process 7 (app) used 1.21s of processor time, and none of it was sampled: short threads 10ms, start-up 1.2s"},
	} {
		p := newProcess(7, "app")
		p.hello = &wire.Hello{RateMilliHz: 100_000}
		for _, u := range c.usages {
			p.take(u)
		}
		p.farewell = c.farewell
		for k, v := range c.counters {
			p.counters[k] = v
		}
		if got := p.idle(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

package collect

import (
	"io"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/report/wire"
)

// A process without samples has a line with the reason, preferably from its clocks.
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
		p := NewProcess(7, "app")
		p.hello = &wire.Hello{RateMilliHz: 100_000}
		for _, u := range c.usages {
			p.Take(u)
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

// The most certain cause is the one reported.
func TestWhyEmpty(t *testing.T) {
	used := usageOf(0, 3, 0, 0)
	for _, c := range []struct {
		name    string
		prepare func(p *Process)
		want    string
	}{
		{"nothing known", func(p *Process) {}, ""},
		{"a note", func(p *Process) { p.notes = []string{"no threads"} }, "no threads"},
		{"a note of something else", func(p *Process) { p.notes, p.clock = []string{"the probe reads the memory"}, used }, "process 7 (app) used 3ms"},
		{"cut off", func(p *Process) { p.notes, p.clock, p.ended = []string{"no threads"}, used, io.ErrUnexpectedEOF }, "process 7 (app) was cut off"},
	} {
		p := NewProcess(7, "app")
		p.hello = &wire.Hello{RateMilliHz: 100_000}
		c.prepare(p)
		if got := p.WhyEmpty(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

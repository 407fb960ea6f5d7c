package record

import (
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/cmptest"
)

func TestClockLines(t *testing.T) {
	for _, c := range []struct {
		counters map[string]int64
		want     []string
	}{
		{nil, nil},
		{map[string]int64{"clock_perf": 2}, []string{"clock: perf_event, high-resolution timers"}},
		{map[string]int64{"clock_perf": 1, "clock_user_only": 1}, []string{"clock: perf_event, high-resolution timers; the kernel permits no samples of itself"}},
		{map[string]int64{"clock_random": 1, "clock_kept": 60, "clock_rejected": 20, "clock_late_ns": 71600},
			[]string{"clock: random, by the tool; lateness p90 72 us, 25 % of hits rejected"}},
		{map[string]int64{"clock_random": 1}, []string{"clock: random, by the tool; lateness p90 0 us, 0 % of hits rejected"}},
		{map[string]int64{"clock_timer": 1, "clock_perf": 1}, []string{"clock: perf_event, high-resolution timers",
			"clock: CPU timers, tick-bound: work locked to the kernel's tick is invisible"}},
	} {
		if d := cmptest.Diff(c.want, clockLines(c.counters)); d != "" {
			t.Errorf("%v: %s", c.counters, d)
		}
	}
}

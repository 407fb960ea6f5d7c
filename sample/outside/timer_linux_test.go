package outside

import (
	"testing"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// Timers sample at the requested rate or, if the kernel's tick is slower, at each tick. Every sample
// represents the same time, and the share of kept samples times that time equals the time between expiries.
func TestPlanTimers(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		period, tick int64
		want         timerPlan
	}{
		{10 * ms, 4 * ms, timerPlan{ms, 1638, 10 * ms}},
		{10 * ms, 10 * ms, timerPlan{ms, probe.Thinning, 10 * ms}},
		{10 * ms, ms, timerPlan{ms, 409, 10 * ms}},
		{ms, 4 * ms, timerPlan{ms, probe.Thinning, 4 * ms}},
		{ms, ms, timerPlan{ms, probe.Thinning, ms}},
		{ms / 10, 4 * ms, timerPlan{ms / 10, probe.Thinning, 4 * ms}},
		{ms / 2, ms / 4, timerPlan{ms / 2, probe.Thinning, ms / 2}},
		{10000 * ms, 4 * ms, timerPlan{ms, 1, 10000 * ms}},
	} {
		if got := planTimers(c.period, c.tick); got != c.want {
			t.Errorf("period %d, tick %d: %+v, want %+v", c.period, c.tick, got, c.want)
		}
	}
}

package outside

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The engine uses the clock that the user has chosen. Only perf and auto depend on the kernel.
func TestChooseClock(t *testing.T) {
	e, _, _, _ := asking(t)
	for _, c := range append(slices.Clone(sampler.Clocks), sampler.ClockOverrun) {
		if c == sampler.ClockAuto || c == sampler.ClockPerf {
			continue
		}
		e.Config.Clock = c
		got := e.chooseClock()
		expect.True(t, got == c, "--clock %s: the engine uses %s", c, got)
	}
}

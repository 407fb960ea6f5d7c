package outside

import (
	"testing"

	"github.com/seedwalk/seedwalk/sample/sampler"
)

// The engine uses the clock that the user has chosen. Only perf and auto depend on the kernel.
func TestChooseClock(t *testing.T) {
	e, _, _, _ := asking(t)
	for _, c := range sampler.Clocks {
		if c == sampler.ClockAuto || c == sampler.ClockPerf {
			continue
		}
		e.Config.Clock = c
		if got := e.chooseClock(); got != c {
			t.Errorf("--clock %s: the engine uses %s; chooseClock needs a case", c, got)
		}
	}
}

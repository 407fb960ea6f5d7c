package target_test

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The registers that a call preserves are those of the system on which the process ran, not of the system
// that walks the copies.
func TestCalled(t *testing.T) {
	const argument = 1<<context.RSI | 1<<context.RDI
	for system, want := range map[string]uint32{"linux": 0, "windows": argument} {
		g := target.Called(context.ArchAMD64, make([]uint64, 17), system)
		expect.Equal(t, g.AMD64.Known&argument, want, system)
		expect.Equal(t, g.AMD64.Known>>context.RBX&1, uint32(1), system)
	}
}

// One run that a busy machine interrupts raises the estimate at most to twice the last one.
func TestJobTime(t *testing.T) {
	var estimate target.JobTime
	for i, c := range []struct{ took, want time.Duration }{
		{time.Microsecond, time.Microsecond}, {time.Second, 2 * time.Millisecond},
		{time.Microsecond, time.Microsecond},
		{time.Second, 2 * time.Millisecond}, {time.Second, 4 * time.Millisecond},
		{5 * time.Millisecond, 5 * time.Millisecond},
	} {
		expect.Equal(t, estimate.Add(c.took), c.want, i)
	}
}

// Runs that a busy machine interrupts again and again do not delay the next run for long.
func TestJobPause(t *testing.T) {
	const rest, most = 20, 100 * time.Millisecond
	var estimate target.JobTime
	for i, want := range []time.Duration{40, 80, 100, 100, 100, 100, 100} {
		expect.Equal(t, estimate.Pause(time.Second, rest, most), want*time.Millisecond, i)
	}
	expect.Equal(t, estimate.Pause(time.Millisecond, rest, most), rest*time.Millisecond, "after a fast run")
}

package outside

import (
	"os"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Without room for the events of a stretch, the process gets its usual events. Without room for its kernel
// time either, the recording says so, and the engine tries again after a minute.
func TestStretchesWithoutRoom(t *testing.T) {
	e, _, _, _ := asking(t)
	e.Period, e.Config.WallEvery, e.cpuClock = slowPeriod, maxSleep, sampler.ClockPerf
	defer e.kernelTime.Close()
	s, k := &e.stretches, &e.kernelTime
	s.On, s.Open, k.all, k.kernel, k.threads = true, true, true, true, 0
	e.PID = 1 << 30 // no process, so its kernel time cannot be copied
	now := time.Now()
	s.Wanted(now, 0) // for the next seconds they are
	e.updateStretches(now)
	must.True(t, !s.On && !s.Open && !k.all, "the process is still sampled in stretches")
	expect.True(t, !k.kernel && s.Reopen && !s.Ready(now), "samples of the kernel: %v, %+v", k.kernel, *s)
	e.PID = os.Getpid()
	e.updateStretches(now.Add(30 * time.Second))
	expect.True(t, !k.kernel, "tried again too soon")
	e.updateStretches(now.Add(2 * time.Minute))
	if os.Geteuid() == 0 {
		expect.True(t, k.kernel && !s.Reopen, "not tried again: %v, %+v", k.kernel, *s)
	}
	failed := kernelClock{kernel: true, tried: time.Now()} // so it is too soon to open the rings
	failed.open(e.PID, e.Period)
	expect.True(t, failed.rings == nil && !failed.kernel, "without rings, the kernel is sampled")
}

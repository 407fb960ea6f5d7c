package outside

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/startup"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// startupRings returns rings that sample a thread as those of a process's start do.
func startupRings(t *testing.T, tid uint32) *cpuring.Sampler {
	t.Helper()
	rings, err := cpuring.New(cpuring.Config{PID: os.Getpid(), Kernel: true, Period: startup.Period,
		Stack: cpuring.StackCopy})
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skipf("SKIPPED-CHECK: %v", err)
	}
	must.Do(t, err)
	must.Do(t, rings.AddBoth(tid))
	return rings
}

// The startup samples of a thread end when the engine opens the thread's event. Those until then are kept.
func TestStartupEndsAtEvent(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	this := uint32(unix.Gettid())
	e, _, _, _ := asking(t)
	e.Period, e.perf.most = int64(time.Hour), 1
	rings := startupRings(t, this)
	defer rings.Close()
	e.startup = &startup.Sampler{Rings: rings}
	k := &threads.Task{TID: this, Stat: -1, Place: -1, Slot: -1}
	e.Tasks[this] = k

	burn(t, 20*time.Millisecond)
	must.True(t, e.armEvent(k), "the event is not open")
	defer e.closeEvent(k)
	opened, before, after := perfevent.Now(), 0, 0
	burn(t, 20*time.Millisecond)
	rings.Read(func(r *perfevent.Record) {
		if r.Time <= opened {
			before++
		} else {
			after++
		}
	})
	expect.True(t, before >= 5 && after == 0, "%d samples before the event, %d after", before, after)
}

// A living thread that is newer than the last listing keeps its time for the engine, which accounts for it at
// the thread's end. The time of a thread that has ended is sent.
func TestStartedOnce(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	this := uint32(unix.Gettid())
	for _, lives := range []bool{true, false} {
		e, _, _, dir := asking(t)
		rings := startupRings(t, this)
		e.startup = &startup.Sampler{Rings: rings}
		burn(t, 20*time.Millisecond)
		if lives {
			describe(t, dir, this, map[string]string{"schedstat": "30000000 0 1\n"})
		}
		e.adoptStarted()
		e.endStartup()
		if k := e.Tasks[this]; lives {
			must.True(t, k != nil, "it is not adopted")
			k.Last, _ = e.Kernel.Counters(k)
			e.account(k, false)
		}
		e.Stream.Out.Usage(&wire.Usage{TID: uint64(this), CPUNanos: 1}) // the end
		u := sentUsage(t, e, uint64(this))
		expect.True(t, lives == (u.CPUNanos == 30e6) && u.CPUNanos >= 15e6, "lives: %v, %d ns", lives,
			u.CPUNanos)
	}
}

// burn uses CPU time of this thread.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	used := func() time.Duration {
		var ts unix.Timespec
		must.Do(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts))
		return time.Duration(ts.Nano())
	}
	for end := used() + d; used() < end; {
	}
}

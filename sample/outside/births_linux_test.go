package outside

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// bearing returns an engine with a period of an hour, so that no thread gets older than half of it. born
// stores the birth of a thread that this thread creates now, and returns its time.
func bearing(t *testing.T) (e *Engine, born func(tid uint32) int64) {
	t.Helper()
	e, _, _, _ = asking(t)
	e.Period, e.Table.Came, e.Alarm = int64(time.Hour), e.came, alarm.New()
	t.Cleanup(e.Alarm.Close)
	rings, err := cpuring.NewNewborns(os.Getpid(), uint64(e.Period))
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skipf("SKIPPED-CHECK: %v", err)
	}
	must.Do(t, err)
	rings.Close()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	this := uint32(unix.Gettid())
	e.Tasks[this] = &threads.Task{TID: this, Stat: -1, Place: -1, Slot: -1} // one has to be watched
	e.births.Open()
	delete(e.Tasks, this)
	t.Cleanup(e.births.Close)
	must.True(t, e.births.IsOpen(), "new threads are not watched")
	pid := uint32(os.Getpid())
	return e, func(tid uint32) int64 {
		at := perfevent.Now()
		e.births.Note(&perfevent.Record{Type: perfevent.Fork, PID: pid, TID: tid, Parent: this, Time: at})
		e.readNewborns(int64(at))
		return int64(at)
	}
}

// copyOf returns a copy that the kernel made of a thread's stack.
func copyOf(tid uint32) *perfevent.Record {
	return &perfevent.Record{Type: perfevent.Sample, TID: tid, Regs: make([]byte, 17*8),
		Stack: make([]byte, 8)}
}

// At a low rate, the event of a new thread whose copies sample its first period begins with a period that is
// not short. At a high rate, such a thread is opened at once, because it may use several periods meanwhile.
func TestBeginningBorn(t *testing.T) {
	e, born := bearing(t)
	born(1)
	e.Add(2, born(2)) // the listing finds it first
	k := e.Tasks[2]
	must.True(t, k.Birth != nil, "no copies: %+v", k)
	phase, period, keep := e.beginning(k, k.Born)
	whole := k.Period(e.Period)
	expect.True(t, phase == threads.Young && period >= whole/17 && period <= whole/8 &&
		uint64(keep)*whole/probe.Thinning == period,
		"phase %d, %d of %d overflows, each %d ns", phase, keep, probe.Thinning, period)
	e.Period = 1e6
	born(3)
	must.True(t, e.Tasks[3] != nil, "a thread waits")
	phase, period, _ = e.beginning(e.Tasks[3], e.Tasks[3].Born)
	expect.True(t, phase == threads.Young && period <= probe.MostYoung, "phase %d, %d ns", phase, period)
}

// A sample of a thread that waits counts as one of its samples once the thread is added.
func TestBirthsWeighed(t *testing.T) {
	e, born := bearing(t)
	born(1)
	at := born(2)
	born(3)
	e.copied(copyOf(2), 0, e.Period)
	e.Add(2, at)   // the listing has found it
	e.Period = 1e6 // at a high rate, no thread waits
	e.readNewborns(at)
	e.Period = int64(time.Hour)
	must.True(t, e.Tasks[2] != nil && e.Tasks[3] != nil, "threads are missing")
	expect.Equal(t, e.Tasks[2].Weighed, uint64(e.Period), "thread 2")
	expect.Equal(t, e.Tasks[3].Weighed, 0, "thread 3")
	e.copied(copyOf(3), 0, e.Period)
	expect.Equal(t, e.Tasks[3].Weighed, uint64(e.Period), "thread 3 after its sample")
}

// Of a copied thread whose first period is sampled, the first copy is not used, unless the thread had used
// that period before it got its clock.
func TestFirstCopy(t *testing.T) {
	e, born := bearing(t)
	born(1)
	born(2)
	birth := e.births.BirthOf(2)
	for atEvent, want := range map[uint64][]uint64{
		0:                    {0, 1, 2},
		uint64(e.Period) - 1: {0, 1, 2},
		uint64(e.Period):     {1, 2, 3},
	} {
		k := &threads.Task{TID: 2, Stat: -1, Place: -1, Slot: -1, KernelHits: true, KernelEvery: 1,
			Copied: true, Birth: birth, AtEvent: atEvent}
		e.Tasks[2] = k
		for i, periods := range want {
			e.inKernel(copyOf(2))
			expect.Equal(t, k.Weighed, periods*uint64(e.Period), "%d ns at first, %d copies", atEvent, i+1)
		}
	}
}

// The hits of a thread's own event in its first period are not used, because its copies sample that period.
// The thread may have ended before its hits are read.
func TestFirstHit(t *testing.T) {
	e, born := bearing(t)
	born(1)
	born(2)
	hit := probe.Record{TID: 2, Why: probe.ClockHit, Time: perfevent.Now(), Regs: make([]uint64, 17)}
	e.births.Close() // the copies end before the hits are read
	later := perfevent.Now()
	for _, c := range []struct {
		name string
		tid  uint32
		time uint64
		used int64 // CPU time at the hit
		want int
	}{
		{"in the first period", 2, hit.Time, e.Period, 0},
		{"in the second period", 2, hit.Time, e.Period + 1, 1},
		{"after the copies", 2, later, e.Period, 1},
		{"without copies", 1, hit.Time, 1, 1},
	} {
		e.Stats.Timed = 0
		hit.TID, hit.Time, hit.Since = c.tid, c.time, uint64(c.used)
		e.record(&hit)
		expect.Equal(t, int(e.Stats.Timed), c.want, "%s: hits of a thread that has ended", c.name)
	}
}

package cpuring

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// HitCost is the CPU time by which hits make work longer, and its hits are not passed on.
func TestHitCost(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := open(t, Config{PID: os.Getpid(), Kernel: true, Period: costPeriod, Stack: perfevent.MaxStack})
	var slower, measured []float64 // by each hit, in nanoseconds
	rounds, tid := 10*roundsOf(), uint32(unix.Gettid())
	for range 9 {
		work := func() (nanos int64) {
			began := threadTime()
			early(rounds)
			return threadTime() - began
		}
		measured = append(measured, float64(s.HitCost()))
		s.Read(func(r *perfevent.Record) { t.Errorf("a hit of thread %d", r.TID) })
		alone := work()
		must.Do(t, s.AddBoth(tid))
		sampled := work()
		hits := 0
		s.Read(func(*perfevent.Record) { hits++ })
		s.Remove(tid)
		slower = append(slower, float64(sampled-alone)/float64(max(hits, 1)))
	}
	slices.Sort(slower)
	slices.Sort(measured)
	cost, want := measured[4], slower[4]
	expect.True(t, cost > 0 && cost < 3*max(want, 0)+20_000 && 3*cost+20_000 > want,
		"a hit takes %.0f ns, HitCost says %.0f", want, cost)
	t.Logf("a hit takes %.0f ns, HitCost says %.0f", want, cost)
}

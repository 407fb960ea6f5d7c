package cpuring

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

const (
	costPeriod = 150_000               // nanoseconds between two hits while their cost is measured
	costHits   = 32                    // hits that are measured
	costTime   = 20 * time.Millisecond // at most, for all of it
	leastGap   = time.Microsecond      // the loop that is interrupted needs less
)

// HitCost measures how many nanoseconds of a thread's time the kernel takes for a hit. The calling thread is
// sampled for some milliseconds and reads the clock in a loop. When a hit interrupts the loop, two readings
// are far apart, and their distance is the cost. It was 50 us on a virtual machine, and 5 us of it were for
// the copy of a 64 KB stack. HitCost returns 0 if there were too few hits. Read does not pass them on.
func (s *Sampler) HitCost() uint64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := s.attr()
	a.Period, a.Stack, a.ExcludeUser, a.Wake = costPeriod, perfevent.MaxStack, false, false
	for i, cpu := range s.cpus {
		e, err := perfevent.OpenClock(unix.Gettid(), cpu, a)
		if err != nil {
			return 0
		}
		defer e.Close()
		if s.owners[i].Share(e) != nil || e.Enable() != nil {
			return 0
		}
	}
	var gaps [costHits]time.Duration
	n, began := 0, time.Now()
	for last := began; n < costHits && last.Sub(began) < costTime; {
		now := time.Now()
		if gap := now.Sub(last); gap >= leastGap {
			gaps[n] = gap
			n++
		}
		last = now
	}
	if n < costHits/2 {
		return 0
	}
	slices.Sort(gaps[:n])
	cost := uint64(gaps[n/4]) // other threads make some of the pauses longer
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hitCost = cost
	return cost
}

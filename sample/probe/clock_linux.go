package probe

import "sync/atomic"

// Thinning is the denominator of keep in SetClock and SetTimerKeep.
const Thinning = 4096

// SetClock tells the handler that overflows of a perf event signal the thread. file is the tool's
// descriptor of the event. Of Thinning overflows, keep are samples, chosen at random; 0 means all. With first,
// the next overflow is a sample in any case. It returns false if the descriptor or keep is too large for a
// slot.
func (f *File) SetClock(i, file int, keep uint32, first bool) bool {
	if file+1 >= clockFirst || keep >= Thinning {
		return false
	}
	clock := uint32(file) + 1 | keep<<clockBits
	if first {
		clock |= clockFirst
	}
	atomic.StoreUint32(&f.slots[i].clock, clock)
	return true
}

// ClearClock tells the handler that a thread's event is closed.
func (f *File) ClearClock(i int) { atomic.StoreUint32(&f.slots[i].clock, 0) }

// Near reports whether the handler finds a thread's slot by the thread's number alone, which it needs for
// signals without a cookie.
func (f *File) Near(i int) bool {
	return (uint32(i)-atomic.LoadUint32(&f.slots[i].tid))%Slots < near
}

// TimerPlan is how CPU timers sample at one rate.
type TimerPlan struct {
	Period int64  // of the timers, nanoseconds of CPU time
	Keep   uint32 // how many of Thinning expiries are samples
	Each   int64  // nanoseconds of CPU time that a sample represents
}

// shortTimer is the period of timers, nanoseconds. It is so short that the timer of a running thread has
// expired at every tick, on kernels with up to 1,000 ticks a second.
const shortTimer = int64(1e6)

// PlanTimers plans one sample per period, on a kernel with ticks of the given length. A sample shows where a
// thread is at a tick; how much time it has used since the last tick does not matter.
func PlanTimers(period, tick int64) TimerPlan {
	p := TimerPlan{Period: min(period, shortTimer)}
	expiry := max(p.Period, tick)
	if p.Each = max(period, expiry); p.Each == expiry {
		p.Keep = Thinning
		return p
	}
	p.Keep = uint32(max(expiry*Thinning/period, 1))
	return p
}

// The period of a young thread without copies is a random number of nanoseconds between these. A thread that
// lives shorter than its period gets no sample, and each overflow costs the thread a signal of 2 us.
const LeastYoung, MostYoung = 100000, 400000

// YoungPeriod returns the period of a young thread's event, and how many of Thinning overflows become
// samples (0: all of them). The period is random, from least to most, so that threads with the same work are
// sampled at different places.
func YoungPeriod(least, most, period uint64, random func(n uint64) uint64) (young uint64, keep uint32) {
	young = least + random(most-least)
	keep = uint32(max(young*Thinning/period, 1))
	if keep >= Thinning/2 {
		return period, 0
	}
	return period * uint64(keep) / Thinning, keep
}

// FirstPeriod returns a random period, up to the full one, for a thread that is not young. The thread's first
// overflow is a sample. Of the next ones, keep of Thinning are samples, until the engine sets the full
// period. So the chance that a thread gets a sample grows with its CPU time, even if it uses less than
// one period. If the full period is short, FirstPeriod returns it, and 0 for keep.
func FirstPeriod(period uint64, random func(n uint64) uint64) (first uint64, keep uint32) {
	if period <= MostYoung {
		return period, 0
	}
	least := LeastYoung*Thinning/period + 1
	k := min(max(random(Thinning)+1, least), Thinning-1)
	return period * k / Thinning, uint32(k)
}

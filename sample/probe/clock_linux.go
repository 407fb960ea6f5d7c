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
	Period int64  // of the timers, nanoseconds of processor time
	Keep   uint32 // how many of Thinning expiries are samples
	Each   int64  // nanoseconds of processor time that a sample represents
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

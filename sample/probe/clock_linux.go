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

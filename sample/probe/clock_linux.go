package probe

import "sync/atomic"

// Thinning is what the numbers of SetClock are of.
const Thinning = 4096

// SetClock tells the handler that a thread has an event whose overflow signals it, the
// tool's descriptor file, and that keep of Thinning overflows are samples, chosen at random;
// 0: all are. False: the descriptor is too large for a slot.
func (f *File) SetClock(i, file int, keep uint32) bool {
	if file+1 >= 1<<clockBits || keep >= Thinning {
		return false
	}
	atomic.StoreUint32(&f.slots[i].clock, uint32(file)+1|keep<<clockBits)
	return true
}

// ClearClock tells the handler that a thread's event is closed.
func (f *File) ClearClock(i int) { atomic.StoreUint32(&f.slots[i].clock, 0) }

// Near reports whether the handler finds a thread's slot by the thread's number alone, as
// it has to where a signal carries no cookie.
func (f *File) Near(i int) bool {
	return (uint32(i)-atomic.LoadUint32(&f.slots[i].tid))%Slots < near
}

//go:build linux || windows

package probe

import (
	"sync/atomic"
	"unsafe"
)

// Want tells the probe which events are wanted, and how many nanoseconds a wait takes
// that is worth a stack. It is for the time before the probe goes on.
func (f *File) Want(events uint32, waitMin uint64) {
	atomic.StoreUint64(&f.h.waitMin, waitMin)
	atomic.StoreUint32(&f.h.events, events)
}

// Wanted is what Want was told.
func (f *File) Wanted() uint32 { return atomic.LoadUint32(&f.h.events) }

// EndEvents ends the events: none is recorded from now on, and the probe's own thread
// ends the session soon.
func (f *File) EndEvents() {
	atomic.StoreUint32(&f.h.events, 0)
	atomic.StoreUint32(&f.h.leave, 1)
	f.wake()
}

// Sessions a probe may have.
const (
	NoSession    = 0
	SessionOpen  = 1
	SessionEnded = 2
)

// Session is the state of the probe's session, one of those above, and the HRESULT of
// the runtime if it got none.
func (f *File) Session() (state, failed uint32) {
	return atomic.LoadUint32(&f.h.session), atomic.LoadUint32(&f.h.failed)
}

// Helper is the kernel's number of the probe's own thread, 0 if there is none.
func (f *File) Helper() uint32 { return atomic.LoadUint32(&f.h.helper) }

// Taken is how much of the ring is taken, in bytes.
func (f *File) Taken() uint64 { return atomic.LoadUint64(&f.h.head) - f.tail }

// EventCounts are the probe's own counters of events.
type EventCounts struct {
	Waits, WaitStops, Locks, LockStops, Allocs, Exceptions uint64
	Brief, BriefNanos                                      uint64 // shorter than the least that is wanted
	Inner                                                  uint64 // waits that are a lock's own
	Early                                                  uint64 // stops without a start
	Crowded                                                uint64 // starts for which there was no room
	Missed                                                 uint64 // events for which the ring had none
	Copies, Nanos                                          uint64 // copies made, and the time they took
}

// EventCounts reads them; each by itself, so that sums may be off by events under way.
func (f *File) EventCounts() EventCounts {
	h := f.h
	get := atomic.LoadUint64
	return EventCounts{get(&h.waits), get(&h.waitStops), get(&h.locks), get(&h.lockStops), get(&h.allocs), get(&h.exceptions),
		get(&h.brief), get(&h.briefNanos), get(&h.inner), get(&h.early), get(&h.crowded), get(&h.missed), get(&h.copies), get(&h.eventNanos)}
}

// Waiting is a wait that has not ended.
type Waiting struct {
	TID     uint32
	Event   uint32
	Since   uint64
	Payload []byte
}

// Waiting gives every outermost wait that is open to g. The threads go on: one that has
// changed meanwhile is left out.
func (f *File) Waiting(g func(Waiting)) {
	for i := range f.waits {
		w := &f.waits[i]
		tid, depth := atomic.LoadUint32(&w.tid), atomic.LoadUint32(&w.depth)
		since := atomic.LoadUint64(&w.open[0].since)
		if tid == 0 || depth == 0 || since == 0 { // 0: the entry is being written
			continue
		}
		o := w.open[0].load()
		if atomic.LoadUint32(&w.tid) == tid && atomic.LoadUint32(&w.depth) >= 1 && atomic.LoadUint64(&w.open[0].since) == since {
			g(Waiting{f.outer(tid), o.id, since, append([]byte(nil), o.payload[:min(o.size, startRoom)]...)})
		}
	}
}

// load copies an entry that the target may be writing. Each load is atomic, so that no load
// moves behind the check of since that follows, on ARM64 either.
func (o *open) load() (out open) {
	from, to := (*[openWords]uint64)(unsafe.Pointer(o)), (*[openWords]uint64)(unsafe.Pointer(&out))
	for i := range from {
		to[i] = atomic.LoadUint64(&from[i])
	}
	return out
}

// openWords is the size of an entry in words.
const openWords = unsafe.Sizeof(open{}) / 8

// Beat tells the probe that the tool lives.
func (f *File) Beat() { atomic.StoreUint64(&f.h.heartbeat, Clock()) }

// SetPatch sets the address of the hijack stub, which the runtime writes over a return
// address; 0 if it is not known.
func (f *File) SetPatch(addr uint64) { atomic.StoreUint64(&f.h.patch, addr) }

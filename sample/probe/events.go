//go:build linux || windows

package probe

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Want selects the events, and the shortest wait that gets a stack, in nanoseconds. Call it before the probe
// continues.
func (f *File) Want(events uint32, waitMin uint64) {
	atomic.StoreUint64(&f.h.waitMin, waitMin)
	atomic.StoreUint32(&f.h.events, events)
}

// Wanted returns the events selected by Want.
func (f *File) Wanted() uint32 { return atomic.LoadUint32(&f.h.events) }

// EndEvents ends the events: no more are recorded, and the probe's own thread ends the session soon.
func (f *File) EndEvents() {
	atomic.StoreUint32(&f.h.events, 0)
	atomic.StoreUint32(&f.h.leave, 1)
	f.wake()
}

// States of the probe's session.
const (
	NoSession    = 0
	SessionOpen  = 1
	SessionEnded = 2
)

// Session returns the state of the probe's session, and the HRESULT of the runtime if it refused one.
func (f *File) Session() (state, failed uint32) {
	return atomic.LoadUint32(&f.h.session), atomic.LoadUint32(&f.h.failed)
}

// Helper returns the ID of the probe's own thread in our pid namespace, or 0.
func (f *File) Helper() uint32 { return f.outer(atomic.LoadUint32(&f.h.helper)) }

// Taken returns the used bytes of the ring.
func (f *File) Taken() uint64 { return atomic.LoadUint64(&f.h.head) - f.tail }

// EventCounts are the probe's counters of events.
type EventCounts struct {
	Waits, WaitStops, Locks, LockStops, Allocs, Exceptions uint64
	Brief, BriefNanos                                      uint64 // waits shorter than the minimum
	Inner                                                  uint64 // waits inside a lock's own code
	Early                                                  uint64 // stops without a start
	Crowded                                                uint64 // starts without room in the table of waits
	Missed                                                 uint64 // events for which the ring was full
	Copies, Nanos                                          uint64 // copies made, and the time they took
}

// EventCounts reads the counters one by one. Sums may be off by the events in progress.
func (f *File) EventCounts() EventCounts {
	h := f.h
	get := atomic.LoadUint64
	return EventCounts{get(&h.waits), get(&h.waitStops), get(&h.locks), get(&h.lockStops),
		get(&h.allocs), get(&h.exceptions),
		get(&h.brief), get(&h.briefNanos), get(&h.inner), get(&h.early), get(&h.crowded), get(&h.missed),
		get(&h.copies), get(&h.eventNanos)}
}

// Waiting is an open wait.
type Waiting struct {
	TID     uint32
	Event   uint32
	Since   uint64
	Payload []byte
}

// Waiting calls g for every open outermost wait. The threads keep running; an entry that changes meanwhile is
// skipped.
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
			g(Waiting{f.outer(tid), o.id, since - f.ahead,
				append([]byte(nil), o.payload[:min(o.size, startRoom)]...)})
		}
	}
}

// Holder returns our number of the thread that holds a lock, by the target's number in an event. 0 = unknown.
func (f *File) Holder(tid uint64) uint64 {
	if tid>>32 != 0 {
		return 0
	}
	return uint64(f.outer(uint32(tid)))
}

// load copies an entry that the target may be writing. Each load is atomic, so that none moves behind the
// following check of since, on ARM64 either.
func (o *open) load() (out open) {
	from, to := (*[openWords]uint64)(unsafe.Pointer(o)), (*[openWords]uint64)(unsafe.Pointer(&out))
	for i := range from {
		to[i] = atomic.LoadUint64(&from[i])
	}
	return out
}

// openWords is the size of an entry in words.
const openWords = unsafe.Sizeof(open{}) / 8

// Beat updates the heartbeat that shows the probe that the tool is alive.
func (f *File) Beat() { atomic.StoreUint64(&f.h.heartbeat, Clock()+f.ahead) }

// SetSilence sets how long the tool may be silent before the probe takes it for dead.
func (f *File) SetSilence(d time.Duration) { atomic.StoreUint64(&f.h.stale, uint64(d)) }

// SetPatch sets the address of the hijack stub, with which the runtime replaces return addresses; 0 if
// unknown.
func (f *File) SetPatch(addr uint64) { atomic.StoreUint64(&f.h.patch, addr) }

package trace

import (
	"cmp"
	"slices"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/export"
)

// maxQueued bounds the work items that wait at one time.
const maxQueued = 1 << 18

// pool pairs work items that were queued with those that were taken. Events of different threads may
// come out of order, so an item may be taken before it is queued.
type pool struct {
	queued map[uint64]work
	taken  map[uint64]uint64 // timestamps
}

// work is a queued item.
type work struct {
	key  foldKey
	when uint64
}

// work adds the time of an item in the queue, when both of its events are known. An item that a
// collection moved in between has two addresses: nothing is known of it.
func (f *file) work(kind clrevent.Kind, e *nettrace.Event) bool {
	item, ok := clrevent.DecodeWork(e.Payload, f.Trace.PointerSize)
	if !ok {
		return false
	}
	p := &f.pool
	if p.queued == nil || len(p.queued)+len(p.taken) >= maxQueued {
		*p = pool{queued: map[uint64]work{}, taken: map[uint64]uint64{}}
	}
	if kind == clrevent.WorkTaken {
		if w, ok := p.queued[item]; ok && w.when <= e.Timestamp {
			delete(p.queued, item)
			f.timed(w.key, w.when, e.Timestamp)
		} else {
			p.taken[item] = e.Timestamp
		}
		return true
	}
	k := foldKey{event: export.EventQueue, thread: e.Thread, stack: f.StackOf(e)}
	until, ok := p.taken[item]
	delete(p.taken, item)
	if ok && until >= e.Timestamp && f.Trace.Nanos(until-e.Timestamp) < outOfOrder {
		f.timed(k, e.Timestamp, until)
		return true
	}
	p.queued[item] = work{k, e.Timestamp}
	return true
}

// outOfOrder bounds how long an item was queued that was read as taken before: in nanoseconds.
const outOfOrder = 1e9

// adjusted adds a starvation of the thread pool.
func (f *file) adjusted(e *nettrace.Event) bool {
	a, ok := clrevent.DecodeAdjustment(e.Payload)
	if ok && a.Starved {
		f.timed(foldKey{event: export.EventStarved, thread: e.Thread, stack: f.StackOf(e)}, e.Timestamp, e.Timestamp)
	}
	return ok
}

// timed adds an event of the runtime that began and ended, and lists it.
func (f *file) timed(k foldKey, from, to uint64) {
	nanos := f.Trace.Nanos(to - from)
	f.add(k, from, nanos)
	list := append(f.lists[k.event], export.Wait{Stack: int(f.at(k, from)), Start: f.Trace.Time(from), Nanos: nanos})
	if len(list) >= 2*maxWaits {
		slices.SortFunc(list, func(a, b export.Wait) int { return cmp.Compare(b.Nanos, a.Nanos) })
		f.unlisted += int64(len(list) - maxWaits)
		list = list[:maxWaits]
	}
	f.lists[k.event] = list
}

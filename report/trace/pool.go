package trace

import (
	"cmp"
	"slices"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/export"
)

// work adds the time of an item in the thread pool's queue, when both of its events are known.
func (f *file) work(kind clrevent.Kind, e *nettrace.Event) bool {
	item, ok := clrevent.DecodeWork(e.Payload, f.Trace.PointerSize)
	if !ok {
		return false
	}
	f.queue.Late = f.Trace.Frequency
	if kind == clrevent.WorkTaken {
		if k, since, ok := f.queue.Taken(item, e.Timestamp); ok {
			f.timed(k, since, e.Timestamp)
		}
		return true
	}
	k := foldKey{event: export.EventQueue, thread: e.Thread, stack: f.StackOf(e)}
	if taken, ok := f.queue.Queued(item, e.Timestamp, k); ok {
		f.timed(k, e.Timestamp, taken)
	}
	return true
}

// adjusted adds a starvation of the thread pool.
func (f *file) adjusted(e *nettrace.Event) bool {
	a, ok := clrevent.DecodeAdjustment(e.Payload)
	if ok && a.Starved {
		f.timed(foldKey{event: export.EventStarved, thread: e.Thread, stack: f.StackOf(e)}, e.Timestamp,
			e.Timestamp)
	}
	return ok
}

// timed adds an event of the runtime that began and ended, and lists it.
func (f *file) timed(k foldKey, from, to uint64) {
	nanos := f.Trace.Nanos(to - from)
	f.add(k, from, nanos)
	list := append(f.lists[k.event],
		export.Wait{Stack: int(f.at(k, from)), Start: f.Trace.Time(from), Nanos: nanos})
	if len(list) >= 2*maxWaits {
		slices.SortFunc(list, func(a, b export.Wait) int { return cmp.Compare(b.Nanos, a.Nanos) })
		f.unlisted += int64(len(list) - maxWaits)
		list = list[:maxWaits]
	}
	f.lists[k.event] = list
}

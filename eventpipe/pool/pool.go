// Package pool measures how long work items wait in the queue of .NET's thread pool. It also finds
// the times when the pool starves. Its callers pass it the runtime's events, from a trace or from a
// running process.
//
// Sources: dotnet/runtime src/libraries/System.Private.CoreLib/src/System/Diagnostics/Tracing/
// FrameworkEventSource.cs (events 30 and 31), ClrEtwAll.man (55, 61, 62), and
// System/Threading/PortableThreadPool.GateThread.cs, release 9.0.
//
// Glossary. An item is queued, and later taken by a thread of the pool. The pool starves when no
// thread takes queued work for half a second; it then adds a thread.
//
// Strategy. The events of an item name it by its address. An item that a collection moved in between
// has two addresses and is not measured. Events of different threads come out of order, so an item
// may be read as taken before it is read as queued.
//
// Known gaps: items of the pool's own kinds, such as timers, count as items of the program.
// Items that are still queued at the end are not measured. On a machine without an idle processor,
// the pool adds no thread, so that only the queue shows its starvation.
package pool

// maxItems bounds the remembered items.
const maxItems = 1 << 18

// Queue pairs the events of items. T is the caller's data about a queued item.
type Queue[T any] struct {
	// Late is a time in ticks of the clock. An item may be read as taken before it is read as queued. Both
	// events are then paired only if they are at most Late apart.
	Late uint64

	queued map[uint64]queued[T]
	taken  map[uint64]uint64 // timestamps
}

type queued[T any] struct {
	what T
	when uint64
}

// Queued records that an item was queued. If the item was already read as taken, Queued returns that time and
// true, and forgets the item. Otherwise ok is false, and Taken reports the item later.
func (q *Queue[T]) Queued(item, when uint64, what T) (taken uint64, ok bool) {
	q.room()
	taken, ok = q.taken[item]
	delete(q.taken, item)
	if ok && taken >= when && taken-when <= q.Late {
		return taken, true
	}
	q.queued[item] = queued[T]{what, when}
	return 0, false
}

// Taken records that an item was taken. It returns the item's data and when it was queued, and forgets the
// item. ok is false if the queueing was not read yet: Queued then reports the item.
func (q *Queue[T]) Taken(item, when uint64) (what T, since uint64, ok bool) {
	q.room()
	if w, known := q.queued[item]; known && w.when <= when {
		delete(q.queued, item)
		return w.what, w.when, true
	}
	q.taken[item] = when
	return what, 0, false
}

// room drops all items if there are too many, because moved or lost items are never removed.
func (q *Queue[T]) room() {
	if q.queued == nil || len(q.queued)+len(q.taken) >= maxItems {
		q.queued, q.taken = map[uint64]queued[T]{}, map[uint64]uint64{}
	}
}

package tasks

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/objects"
)

// Bounds of the thread pool's queues.
const (
	maxSegments = 1 << 12 // of one queue
	maxQueued   = 1 << 22 // work items of all queues
)

// readQueues finds the work items in the queues of the thread pool: the shared ones, and those of each
// worker. An item that was taken is no longer in its slot.
//
// Source: System.Private.CoreLib, ThreadPoolWorkQueue.cs and ConcurrentQueueSegment.cs.
func (g *graph) readQueues() {
	g.queued = map[uint64]bool{}
	shared, whole := false, true
	for _, at := range g.queues {
		q, ok := g.load(at)
		whole = g.readItems(q.Field("m_array"), nil) && ok && whole // of one worker
		for _, name := range []string{"workItems", "highPriorityWorkItems", "lowPriorityWorkItems"} {
			whole = g.readQueue(q.Field(name)) && whole
		}
		shared = shared || q.Field("workItems") != 0
		ok = g.readItems(q.Field("_assignableWorkItemQueues"),
			func(at uint64) { whole = g.readQueue(at) && whole })
		whole = whole && ok
	}
	g.out.Queued, g.out.QueueRead = len(g.queued), shared && whole
}

// readQueue reads a ConcurrentQueue<object>, if at is not 0. It reports whether all of it could be read.
func (g *graph) readQueue(at uint64) bool {
	q, ok := g.load(at)
	if !ok {
		return at == 0
	}
	next := q.Field("_head")
	for range maxSegments {
		segment, ok := g.load(next)
		if !ok {
			return next == 0
		}
		if !g.readItems(segment.Field("_slots"), nil) {
			return false
		}
		next = segment.Field("_nextSegment")
	}
	return false
}

// readItems reads the objects of an array, which may be inside structs, if the address is not 0. It marks
// them as queued, or passes each to use. It reports whether all of the array could be read.
func (g *graph) readItems(array uint64, use func(uint64)) bool {
	const first = 16 // offset of an array's first item
	a, ok := g.load(array)
	if !ok {
		return array == 0
	}
	b := make([]byte, 1<<12)
	for at := array + first; at < array+a.Size && len(g.queued) < maxQueued; at += uint64(len(b)) {
		part := b[:min(uint64(len(b)), array+a.Size-at)]
		n := g.src.Memory.ReadSome(part, at)
		ok, part = ok && n == len(part), part[:n]
		for ; len(part) >= 8; part = part[8:] {
			switch item := binary.LittleEndian.Uint64(part); {
			case !g.heap.Holds(item):
			case use != nil:
				use(item)
			default:
				g.queued[item] = true
			}
		}
	}
	return ok
}

// wait records the threads that block on tasks.
func (g *graph) wait() {
	g.waiting = map[uint32]bool{}
	for _, p := range g.all {
		for _, b := range p.blocks {
			g.waiting[g.stacks[b]] = true
		}
	}
}

// isQueue reports whether a type is one of the thread pool's queues.
func isQueue(t *objects.Type) bool {
	return t.Name == "System.Threading.ThreadPoolWorkQueue" ||
		t.Name == "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue"
}

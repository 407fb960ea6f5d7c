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
	for _, at := range g.queues {
		q, ok := g.load(at)
		if !ok {
			continue
		}
		g.readItems(q.Field("m_array"), nil) // of one worker
		for _, name := range []string{"workItems", "highPriorityWorkItems", "lowPriorityWorkItems"} {
			g.out.QueueRead = g.readQueue(q.Field(name)) || g.out.QueueRead
		}
		g.readItems(q.Field("_assignableWorkItemQueues"), func(at uint64) { g.readQueue(at) })
	}
	g.out.Queued = len(g.queued)
}

// readQueue reads a ConcurrentQueue<object>. It reports whether all of it could be read.
func (g *graph) readQueue(at uint64) bool {
	q, ok := g.load(at)
	if !ok {
		return false
	}
	next := q.Field("_head")
	for range maxSegments {
		segment, ok := g.load(next)
		if !ok {
			return next == 0
		}
		g.readItems(segment.Field("_slots"), nil)
		next = segment.Field("_nextSegment")
	}
	return false
}

// readItems reads the objects of an array, which may be inside structs. It marks them as queued, or passes
// each to use.
func (g *graph) readItems(array uint64, use func(uint64)) {
	const first = 16 // offset of an array's first item
	a, ok := g.load(array)
	if !ok {
		return
	}
	b := make([]byte, 1<<12)
	for at := array + first; at < array+a.Size && len(g.queued) < maxQueued; at += uint64(len(b)) {
		part := b[:min(uint64(len(b)), array+a.Size-at)]
		part = part[:g.src.Memory.ReadSome(part, at)]
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
	return t.Name == "System.Threading.ThreadPoolWorkQueue" || t.Name == "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue"
}

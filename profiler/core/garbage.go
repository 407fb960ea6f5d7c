package core

import (
	"runtime"
	"runtime/metrics"
)

// garbage collects Go's garbage between suspensions. A collection that goes on
// while a thread is suspended stops the sampler at two points, until each thread of
// Go's has answered; one that is just being made cannot, if the suspended thread
// owns the loader's lock: the sampler would never resume it. So the profiler
// switches Go's own collections off where it suspends threads itself, and this
// takes their place.
type garbage struct {
	heap  [1]metrics.Sample
	limit uint64 // bytes in use that make a collection due
}

// leastGarbage is the smallest limit, bytes.
const leastGarbage = 8 << 20

func (g *garbage) init() {
	g.heap[0].Name = "/memory/classes/heap/objects:bytes"
	g.limit = leastGarbage
}

func (g *garbage) inUse() uint64 {
	metrics.Read(g.heap[:])
	return g.heap[0].Value.Uint64()
}

// collect does so if as much as was live after the last time has been allocated
// since. Nothing may be suspended.
func (g *garbage) collect() {
	if g.inUse() < g.limit {
		return
	}
	runtime.GC()
	g.limit = max(leastGarbage, 2*g.inUse())
}

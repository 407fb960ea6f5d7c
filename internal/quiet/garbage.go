package quiet

import (
	"runtime"
	"runtime/metrics"
	"sync"
)

// Garbage replaces Go's own collections. New makes one; the zero value does not work. It is
// safe for concurrent use.
type Garbage struct {
	mu    sync.Mutex
	heap  [1]metrics.Sample
	limit uint64 // bytes in use that make a collection due
}

// least is the smallest limit, bytes.
const least = 8 << 20

// New returns a Garbage.
func New() *Garbage {
	g := &Garbage{limit: least}
	g.heap[0].Name = "/memory/classes/heap/objects:bytes"
	return g
}

func (g *Garbage) inUse() uint64 {
	metrics.Read(g.heap[:])
	return g.heap[0].Value.Uint64()
}

// Collect runs a collection if the heap is twice as large as after the last one, and at
// least 8 MiB. No thread may be suspended. It does nothing if another thread is in Collect.
func (g *Garbage) Collect() {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if g.inUse() < g.limit {
		return
	}
	runtime.GC()
	g.limit = max(least, 2*g.inUse())
}

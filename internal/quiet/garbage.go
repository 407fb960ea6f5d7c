package quiet

import (
	"runtime"
	"runtime/metrics"
	"sync"
)

// Garbage takes the place of Go's own collections. The zero value is not ready:
// see New. It is safe for concurrent use.
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

// Collect makes a collection if as much as was live after the last one has been
// allocated since. No thread may be suspended. If another thread is at it
// already it does nothing.
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

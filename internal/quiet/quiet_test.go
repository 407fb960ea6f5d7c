package quiet

import (
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

var litter []byte

// With Go's own collections off: garbage goes, what is live stays, and nothing is
// done where nothing is due.
func TestGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	g := New()
	g.Collect()
	begin := collections()
	g.Collect()
	expect.Equal(t, collections()-begin, 0, "collections with nothing allocated")
	const block = 1 << 20
	blocks := int(4*g.limit/block) + 1
	for range blocks {
		litter = make([]byte, block)
		g.Collect()
	}
	litter = nil
	n := int(collections() - begin)
	expect.True(t, n >= 2 && n <= 8, "%d collections of %d MB of garbage", n, blocks)
	now := g.inUse()
	expect.True(t, now <= 2*g.limit, "%d bytes in use, limit %d", now, g.limit)
	expect.Equal(t, testing.AllocsPerRun(100, g.Collect), 0, "allocations of a look")
	g.mu.Lock()
	g.limit = 0
	before := collections()
	g.Collect()
	expect.Equal(t, collections()-before, 0, "two collect at once")
}

func threads() int { return pprof.Lookup("threadcreate").Count() }

// So many threads at once need no new one afterwards.
func TestThreads(t *testing.T) {
	const n = 40
	Threads(n)
	made := threads()
	expect.True(t, made >= n, "%d threads, want %d", made, n)
	for range 20 {
		Threads(n - 10)
	}
	expect.Equal(t, threads(), made, "threads that were made")
}

// Nothing is collected that is not asked for.
func TestBegin(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	off()
	begin := collections()
	for range 100 {
		litter = make([]byte, 1<<20)
	}
	litter = nil
	expect.Equal(t, collections()-begin, 0, "collections")
}

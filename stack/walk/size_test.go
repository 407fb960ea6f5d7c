package walk

import (
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// A Walker that has met no deep stack is small: the agent has one for each process. One that meets
// a deep stack has room for it, up to the bound.
func TestWalkerSize(t *testing.T) {
	const most = 512 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := New(context.ArchAMD64)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d bytes, of %d", n, most)
	}
	n := 0
	for w.put(merge.Frame{IP: uint64(n)}) {
		n++
	}
	if w.put(merge.Frame{Kind: unwind.KindGap}); n != maxFrames-1 || w.n != maxFrames || w.out[n-1].IP != uint64(n-1) || w.out[n].Kind != unwind.KindGap {
		t.Errorf("%d frames of %d, %d with the gap", n, maxFrames, w.n)
	}
}

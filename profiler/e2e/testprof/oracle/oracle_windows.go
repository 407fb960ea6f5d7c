//go:build oracle

// The profiler library with RtlVirtualUnwind as a second walker, for the tests
// alone: overlay.json puts these files among those of package host.
package host

/*
#include "oracle.h"
#include "shim.h"
*/
import "C"

import (
	"bufio"
	"hash/fnv"
	"os"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/sample/agent"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// oracle is a host that lets RtlVirtualUnwind walk too and writes what it says to
// SEEDWALK_ORACLE: a test's, see oracle_windows.c. Its clock stands still
// meanwhile, so that the times of a sample are the product's.
type oracle struct {
	*host
	out    *bufio.Writer
	lost   int64    // nanoseconds taken away from the clock
	asked  [2]int64 // the clock's last two answers: around our own walk
	walked bool     // the top of the thread that is suspended
	seeder *snapshot.WalkSeeder
	walker *amd64.Unwinder
	again  clr.Capture
}

func init() {
	wrap = func(h *host) agent.ThreadHost {
		f, err := os.Create(os.Getenv("SEEDWALK_ORACLE"))
		if err != nil {
			return h
		}
		o := &oracle{host: h, out: bufio.NewWriterSize(f, 1<<20), walker: managed.NewAMD64()}
		o.seeder = snapshot.NewSeeder(o.walker, nil)
		return o
	}
}

func (o *oracle) Now() int64 {
	o.asked = [2]int64{o.asked[1], o.host.Now() - o.lost}
	return o.asked[1]
}

// exclude takes the time since begin out of what the clock shows.
func (o *oracle) exclude(begin int64) { o.lost += o.host.Now() - begin }

func (o *oracle) Table() *module.Table {
	t := o.host.Table()
	if t == nil {
		return t
	}
	bases := make([]C.uint64_t, t.Len()+1)
	for i := range t.Len() {
		bases[i] = C.uint64_t(t.At(i).Start)
	}
	C.sw_oracle_images(&bases[0], C.int(t.Len()))
	o.walker.SetTable(t)
	o.seeder.SetSpecials(o.Specials())
	return t
}

func (o *oracle) Suspend(slot int, t clr.Thread) clr.SuspendStatus {
	o.walked = false
	C.sw_oracle_reset()
	return o.host.Suspend(slot, t)
}

func (o *oracle) DoStackSnapshot(slot int, c *clr.Capture) {
	if begin := o.host.Now(); !o.walked {
		o.top(c)
		o.exclude(begin)
	}
	o.host.DoStackSnapshot(slot, c)
	begin := o.host.Now()
	C.sw_oracle_blocks()
	o.exclude(begin)
}

// top walks the block on top: RtlVirtualUnwind, then we once more.
func (o *oracle) top(c *clr.Capture) {
	o.walked = true
	w := C.sw_oracle_top()
	if w == nil {
		return
	}
	o.again = *c
	o.seeder.Seed(&o.again) // RtlVirtualUnwind had such a first walk, too
	begin := o.host.Now()
	for range C.SW_ORACLE_AGAIN {
		o.seeder.Seed(&o.again)
	}
	w.own = C.uint64_t(o.asked[1] - o.asked[0])
	w.own_again = C.uint64_t((o.host.Now() - begin) / C.SW_ORACLE_AGAIN)
}

func (o *oracle) Resume(slot int, t clr.Thread) {
	o.host.Resume(slot, t)
	begin := o.host.Now()
	C.sw_oracle_lookup()
	o.write()
	o.exclude(begin)
}

// write appends the walks, each cut behind its last frame.
func (o *oracle) write() {
	var n C.int
	first := C.sw_oracle_walks(&n)
	walks := unsafe.Slice(first, int(n))
	s, sum := C.sw_slot_at(0), fnv.New64a()
	sum.Write(bytesOf(s.stack, s.stack_len))
	for i := range walks {
		w := &walks[i]
		w.stack = C.uint64_t(sum.Sum64())
		size := unsafe.Offsetof(w.frames) + uintptr(w.count)*unsafe.Sizeof(w.frames[0])
		o.out.Write(unsafe.Slice((*byte)(unsafe.Pointer(w)), int(size)))
	}
}

// Stopping is asked last when the process ends.
func (o *oracle) Stopping() bool {
	stop := o.host.Stopping()
	if stop {
		o.out.Flush()
	}
	return stop
}

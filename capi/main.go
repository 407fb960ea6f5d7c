// Command capi is the C library: package main built with -buildmode=c-shared
// or c-archive. Its interface is seedwalk.h.
package main

/*
#cgo CFLAGS: -O2 -Wall -Wextra -Werror -Wno-unused-parameter
#include "types.h"

_Static_assert(sizeof(seedwalk_frame) == 40, "layout of seedwalk_frame");
_Static_assert(sizeof(seedwalk_snapshot_frame) == 112, "layout of clr.SnapshotFrame");
*/
import "C"

import (
	"runtime"
	"sync/atomic"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

func main() {} // a library has none, but Go wants one

const (
	ok          = 0
	badHandle   = -1
	badArgument = -2
	unreadable  = -3
)

// instance is what a handle stands for.
type instance struct {
	handle  C.seedwalk_handle
	walker  unwind.Walker
	merger  *merge.Merger
	scan    scanner // made at the first seedwalk_scan
	modules []module.Module
	managed []memory.Range
	scanned *module.Table
	table   *module.Table // of the last commit
	gen     uint32
	ask     question
	capture clr.Capture
	window  memory.Window
	bounds  unwind.Bounds
	at      unwind.State // of capture.Seed
	native  [512]unwind.Frame
	merged  []merge.Frame
}

// instances are those that are open: no lock on the way of a walk. The low bits of
// a handle are its place here plus one, the others tell it from those that had the
// place before.
var instances [64]atomic.Pointer[instance]

const placeBits = 8

// opened counts the handles that were given away.
var opened atomic.Uint64

// place is where a handle's instance stands, nil if it is no handle.
func place(h C.seedwalk_handle) *atomic.Pointer[instance] {
	i := h&(1<<placeBits-1) - 1
	if i >= C.seedwalk_handle(len(instances)) {
		return nil
	}
	return &instances[i]
}

func find(h C.seedwalk_handle) *instance {
	p := place(h)
	if p == nil {
		return nil
	}
	if in := p.Load(); in != nil && in.handle == h {
		return in
	}
	return nil
}

//export seedwalk_open
func seedwalk_open() C.seedwalk_handle {
	if runtime.GOARCH == "arm64" {
		return seedwalk_open_for(C.SEEDWALK_ARM64)
	}
	return seedwalk_open_for(C.SEEDWALK_AMD64)
}

// garbage is collected where the header says that no thread may be suspended.
var garbage = quiet.New()

//export seedwalk_open_for
func seedwalk_open_for(arch C.int32_t) C.seedwalk_handle {
	restore()
	quiet.Begin()
	garbage.Collect()
	in := &instance{merged: make([]merge.Frame, 16384), table: module.NewTable(0, nil, nil)}
	switch arch {
	case C.SEEDWALK_AMD64:
		in.walker = managed.NewWalker(context.ArchAMD64)
	case C.SEEDWALK_ARM64:
		in.walker = managed.NewWalker(context.ArchARM64)
	default:
		return 0
	}
	in.merger = merge.New(in.walker, &in.ask)
	in.merger.SetTable(in.table)
	serial := C.seedwalk_handle(opened.Add(1)) << placeBits
	for i := range instances {
		in.handle = serial | C.seedwalk_handle(i) + 1
		if instances[i].CompareAndSwap(nil, in) {
			return in.handle
		}
	}
	return 0
}

//export seedwalk_close
func seedwalk_close(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil || !place(h).CompareAndSwap(in, nil) {
		return badHandle
	}
	return ok
}

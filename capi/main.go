// Command capi is the C library: package main built with -buildmode=c-shared or c-archive by build.sh. Its
// interface is seedwalk.h.
//
// Sources: seedwalk.h, which the examples and the tests are compiled against; the cgo command's documentation
// ("Passing pointers", //export).
//
// Glossary. A *handle* identifies an instance: a module table with a walker and a merger over it. A
// structure's *size* is its first member: the size with which the caller was compiled, so that an older
// caller works with a newer library and the other way round.
//
// Strategy. init and commit prepare everything that a call needs while a thread is suspended. A call copies
// the caller's structures once, checks every size and pointer that it can, and returns a number. It keeps no
// pointer to a sample's memory.
//
// Known gaps: a wrong pointer that is not NULL crashes the process, as in any C library; at most 64
// instances.
package main

/*
#cgo CFLAGS: -O2 -Wall -Wextra -Werror -Wno-unused-parameter
#cgo archive CFLAGS: -DSW_ARCHIVE
#include "types.h"

_Static_assert(sizeof(seedwalk_frame) == 40, "layout of seedwalk_frame");
_Static_assert(sizeof(seedwalk_snapshot_frame) == 112, "layout of clr.SnapshotFrame");
_Static_assert(offsetof(seedwalk_sample, low) == 48, "what a sample must have");
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

func main() {} // required by Go, never called

// version is the library's version; the linker sets it in a release.
var version = "development"

// instance is the object behind a handle.
type instance struct {
	handle   C.seedwalk_handle
	busy     atomic.Bool // a call is in progress
	own      bool        // stacks are of this process
	walker   unwind.Walker
	merger   *merge.Merger
	scan     scanner // made at the first seedwalk_scan
	modules  []module.Module
	managed  []memory.Range
	scanned  *module.Table
	changed  bool          // since the last commit
	table    *module.Table // of the last commit
	gen      uint32
	stubs    managed.Entrances
	specials managed.Specials
	isMethod func(ip uint64) bool // a function that calls ask
	runtime  tables
	ask      question
	request  request
	batch    C.seedwalk_batch // consecutive walks in request
	raw      rawFile
	capture  clr.Capture
	window   memory.Window
	bounds   unwind.Bounds
	witness  seed.Witness
	at       unwind.State // state at capture.Seed
	merged   []merge.Frame
}

// instances are the open ones. They are atomic pointers, so that a walk takes no lock. The low bits of a
// handle are its index here plus one; the others distinguish it from earlier handles at this index.
var instances [64]atomic.Pointer[instance]

const placeBits = 8

// opened counts all handles ever opened.
var opened atomic.Uint64

// place returns the entry of a handle, nil if it is not a handle.
func place(h C.seedwalk_handle) *atomic.Pointer[instance] {
	i := h&(1<<placeBits-1) - 1
	if i >= C.seedwalk_handle(len(instances)) {
		return nil
	}
	return &instances[i]
}

// enter begins a call with a handle; if it returns OK, leave ends the call.
func enter(h C.seedwalk_handle) (*instance, C.int) {
	p := place(h)
	if p == nil {
		return nil, badHandle
	}
	in := p.Load()
	switch {
	case in == nil || in.handle != h:
		return nil, badHandle
	case !in.busy.CompareAndSwap(false, true):
		return nil, busy
	case p.Load() != in: // closed meanwhile
		in.leave()
		return nil, badHandle
	}
	return in, ok
}

func (in *instance) leave() { in.busy.Store(false) }

// garbage is collected only in calls during which, by the header's rules, no thread is suspended.
var garbage = quiet.New()

//export seedwalk_version
func seedwalk_version(out *C.char, room C.int32_t) C.uint32_t {
	put(version, out, room)
	return C.SEEDWALK_ABI
}

// leastOptions is the least size of the options: up to the architecture.
const leastOptions = 8

//export seedwalk_open
func seedwalk_open(options *C.coptions, handle *C.seedwalk_handle) C.int {
	restore()
	quiet.Begin()
	garbage.Collect()
	if handle == nil {
		return badArgument
	}
	*handle = 0
	var o C.seedwalk_options
	if options != nil {
		if err := sized(unsafe.Pointer(&o), unsafe.Sizeof(o), leastOptions,
			unsafe.Pointer(options)); err != ok {
			return err
		}
	}
	arch := context.Arch(0)
	switch o.architecture {
	case 0:
		arch = context.ArchOf(runtime.GOARCH)
	case C.SEEDWALK_AMD64:
		arch = context.ArchAMD64
	case C.SEEDWALK_ARM64:
		arch = context.ArchARM64
	}
	walker := managed.NewWalker(arch)
	switch {
	case walker == nil || o.reserved != 0:
		return badArgument
	case o.flags&^C.SEEDWALK_OTHER_PROCESS != 0:
		return unknownField
	}
	in := newInstance(walker)
	if in.own = o.flags&C.SEEDWALK_OTHER_PROCESS == 0 && arch == context.ArchOf(runtime.GOARCH); in.own {
		in.witness.Code = newCode()
	}
	return in.register(handle)
}

func newInstance(w unwind.Walker) *instance {
	in := &instance{walker: w, merged: make([]merge.Frame, 16384), table: module.NewTable(0, nil, nil)}
	in.isMethod = in.method
	in.merger = merge.New(w, &in.ask)
	in.merger.SetSpecials(&in.specials)
	in.merger.SetTable(in.table)
	return in
}

// register gives an instance an entry and a handle.
func (in *instance) register(handle *C.seedwalk_handle) C.int {
	serial := C.seedwalk_handle(opened.Add(1)) << placeBits
	for i := range instances {
		in.handle = serial | C.seedwalk_handle(i) + 1
		if instances[i].CompareAndSwap(nil, in) {
			*handle = in.handle
			return ok
		}
	}
	return tooMany
}

//export seedwalk_close
func seedwalk_close(h C.seedwalk_handle) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	place(h).Store(nil)
	in.raw.w.Close() // after an error, a reader sees that the file is cut
	return ok
}

// Package host is the process that seedwalk's library is loaded into, as the C half presents it: agent.Host
// on Linux, agent.ThreadHost on Windows, on a real CLR of x86-64.
//
// The C half (shim.h) answers the CLR on application threads; the Go half runs on one thread, the sampler. A
// process has one sampler, so the C half has no handle.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl and docs/design/coreclr/botr/profilability.md, releases
// 2.0 to 10.0; signal(7) and sigaltstack(2); more in the headings of the C files.
//
// Glossary. A *slot* is a thread's place for one capture: context, stack, outcome. To *pin* is to delay the
// unloading of modules while their methods are named. The *guard* restores the signal handlers that Go
// replaces when it starts.
//
// Strategy. Application threads run only C: they record events in fixed storage without a lock, and the
// sampler reads it. Threads copy themselves in a signal handler on Linux, and are suspended one at a time on
// Windows.
//
// Known gaps: x86-64; one profiler per process; after a detach the library stays mapped.
package host

/*
// cgo's own code has unused parameters; `make lint` compiles ours without the exception.
#cgo CFLAGS: -O2 -Wall -Wextra -Werror -Wno-unused-parameter -fvisibility=hidden
#cgo linux LDFLAGS: -lpthread -ldl
#cgo windows LDFLAGS: -lsynchronization
#include "shim.h"
_Static_assert(sizeof(struct sw_frame) == 112, "clr.SnapshotFrame has 112 bytes");
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/agent"
)

// Slots is the most threads in one round.
const Slots = C.SW_SLOTS

// process is the process as the C half presents it on every platform: agent.Process.
type process struct {
	threads []C.struct_sw_thread
	name    []byte
	module  []byte
	types   types
	il      ilMap
}

func newProcess() process {
	return process{threads: make([]C.struct_sw_thread, C.SW_THREADS),
		name: make([]byte, 4096), module: make([]byte, 4096)}
}

func (h *process) PID() uint64                 { return uint64(os.Getpid()) }
func (h *process) Arch() context.Arch          { return context.ArchOf(runtime.GOARCH) }
func (h *process) Pin()                        { C.sw_resolve_enter() }
func (h *process) Unpin()                      { C.sw_resolve_leave() }
func (h *process) Stopping() bool              { return C.sw_stopping() != 0 }
func (h *process) LoaderChanges() uint64       { return uint64(C.sw_loader_changes()) }
func (h *process) Pause(nanos int64)           { time.Sleep(time.Duration(nanos)) }
func (h *process) ThreadCPU(tid uint64) uint64 { return uint64(C.sw_thread_cpu_ns(C.uint64_t(tid))) }

// frames reads the recorded frames of a slot's last DoStackSnapshot.
func frames(slot int, c *clr.Capture) {
	s := C.sw_slot_at(C.int(slot))
	c.Full = s.full != 0
	c.Frames = unsafe.Slice((*clr.SnapshotFrame)(unsafe.Pointer(s.frames)), int(s.frame_count))
}

func (h *process) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	var f C.uint64_t
	hr := C.sw_function_from_ip(C.uint64_t(ip), &f)
	return clr.FunctionID(f), clr.HRESULT(hr)
}

// text returns the zero-terminated string at the start of b.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func (h *process) Threads(buf []agent.Thread) []agent.Thread {
	n := int(C.sw_threads_copy(&h.threads[0], C.int(len(h.threads))))
	for i := range h.threads[:n] {
		t := &h.threads[i]
		buf = append(buf, agent.Thread{
			Thread: clr.Thread{ID: clr.ThreadID(t.thread_id), TID: uint64(t.tid),
				StackLow: uint64(t.stack_low), StackHigh: uint64(t.stack_high)},
			Name: C.GoString(&t.name[0]),
		})
	}
	return buf
}

func (h *process) Event() (agent.EventKind, bool) {
	var e C.struct_sw_event
	if C.sw_event_next(&e) == 0 {
		return 0, false
	}
	return agent.EventKind(e.kind), true
}

func (h *process) Version() string {
	var v [4]C.int
	C.sw_runtime_version(&v[0])
	return fmt.Sprintf(".NET %d.%d.%d", v[0], v[1], v[2])
}

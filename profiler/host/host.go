// Package host is the process that a library of ours is loaded into, as the C half
// shows it: agent.Host of Linux, agent.ThreadHost of Windows, on a real CLR of x86-64.
//
// The C half (shim.h) answers the CLR on application threads; the Go half runs on one
// thread, the sampler. There is one sampler a process, so the C half has no handle.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl and
// docs/design/coreclr/botr/profilability.md, releases 2.0 to 10.0; signal(7) and
// sigaltstack(2); more in the headings of the C files.
//
// Glossary. A *slot* is a thread's place for one capture: context, stack, outcome. To
// *pin* is to hold the unloading of modules off while their code is named. The
// *guard* puts back the signal handlers that Go takes at its start.
//
// Strategy. Application threads run C alone: they note what happened in fixed storage
// without a lock, and the sampler drains it. Threads copy themselves in a signal
// handler on Linux, and are suspended one at a time on Windows.
//
// Known gaps: x86-64; one profiler a process; after a detach the library stays mapped.
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

// Slots is how many threads a round can take at most.
const Slots = C.SW_SLOTS

// process is what the C half shows of the process on every platform:
// agent.Process.
type process struct {
	threads []C.struct_sw_thread
	name    []byte
	module  []byte
	types   types
	il      ilMap
}

func newProcess() process {
	return process{threads: make([]C.struct_sw_thread, C.SW_THREADS), name: make([]byte, 4096), module: make([]byte, 4096)}
}

func (h *process) PID() uint64                 { return uint64(os.Getpid()) }
func (h *process) Arch() context.Arch          { return context.ArchOf(runtime.GOARCH) }
func (h *process) Pin()                        { C.sw_resolve_enter() }
func (h *process) Unpin()                      { C.sw_resolve_leave() }
func (h *process) Stopping() bool              { return C.sw_stopping() != 0 }
func (h *process) LoaderChanges() uint64       { return uint64(C.sw_loader_changes()) }
func (h *process) Pause(nanos int64)           { time.Sleep(time.Duration(nanos)) }
func (h *process) ThreadCPU(tid uint64) uint64 { return uint64(C.sw_thread_cpu_ns(C.uint64_t(tid))) }

// frames are what the last DoStackSnapshot of a slot recorded.
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

// text is the zero-terminated string at the start of b.
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
			Thread: clr.Thread{ID: clr.ThreadID(t.thread_id), TID: uint64(t.tid), StackLow: uint64(t.stack_low), StackHigh: uint64(t.stack_high)},
			Name:   C.GoString(&t.name[0]),
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

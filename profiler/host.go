package main

/*
#include "shim.h"
_Static_assert(sizeof(struct sw_frame) == 112, "clr.SnapshotFrame has 112 bytes");
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/profiler/core"
)

// answerTime is how long the threads of a round have to answer, all together;
// the last ones get a little of their own. A thread in an uninterruptible
// system call does not answer.
const (
	answerTime = 25 * time.Millisecond
	leastTime  = time.Millisecond
)

// host is the process as the C half shows it: core.Host on a real CLR.
type host struct {
	threads []C.struct_sw_thread
	name    []byte
	module  []byte
	start   time.Time
	until   time.Duration // since start: when the round stops waiting
}

func newHost() *host {
	return &host{threads: make([]C.struct_sw_thread, C.SW_THREADS), name: make([]byte, 4096), module: make([]byte, 4096), start: time.Now()}
}

func (h *host) SuspendRuntime() clr.HRESULT { return clr.HRESULT(C.sw_suspend_runtime()) }
func (h *host) ResumeRuntime() clr.HRESULT  { return clr.HRESULT(C.sw_resume_runtime()) }
func (h *host) Leave()                      { C.sw_window_leave() }
func (h *host) Pin()                        { C.sw_resolve_enter() }
func (h *host) Unpin()                      { C.sw_resolve_leave() }
func (h *host) Stopping() bool              { return C.sw_stopping() != 0 }
func (h *host) LoaderChanges() uint64       { return uint64(C.sw_loader_changes()) }
func (h *host) Now() int64                  { return int64(time.Since(h.start)) }
func (h *host) Pause(nanos int64)           { time.Sleep(time.Duration(nanos)) }
func (h *host) Prime(id clr.ThreadID)       { C.sw_prime(C.uint64_t(id)) }
func (h *host) ThreadCPU(tid uint64) uint64 { return uint64(C.sw_thread_cpu_ns(C.uint64_t(tid))) }

// Enter opens the window; the threads' time to answer begins.
func (h *host) Enter() {
	C.sw_window_enter()
	h.until = time.Since(h.start) + answerTime
}

func (h *host) Alive(t clr.Thread) bool {
	return C.sw_thread_alive(C.uint64_t(t.ID), C.uint64_t(t.TID)) != 0
}

func (h *host) Ask(slot int, t clr.Thread) {
	C.sw_ask(C.int(slot), C.uint64_t(t.ID), C.uint64_t(t.TID), C.uint64_t(t.StackHigh))
}

// Await fills c from the slot the signal handler wrote.
func (h *host) Await(slot int, c *clr.Capture) {
	wait := max(h.until-time.Since(h.start), leastTime)
	switch C.sw_await(C.int(slot), C.int(wait.Microseconds())) {
	case C.SW_CAPTURED:
		c.Status = clr.Captured
	case C.SW_IDLE:
		c.Status = clr.CaptureGone
		return
	default:
		c.Status = clr.CaptureNoAnswer
		return
	}
	s := C.sw_slot_at(C.int(slot))
	c.Truncated = s.truncated != 0
	if s.foreign != 0 {
		c.Status = clr.CaptureForeign
	}
	c.Regs.RIP = uint64(s.regs[0])
	for i := range c.Regs.GPR {
		c.Regs.GPR[i] = uint64(s.regs[1+i])
	}
	const general = 1<<16 - 1
	c.Regs.Known = general
	c.Stack = memory.Run{Addr: uint64(s.stack_addr), Data: unsafe.Slice((*byte)(s.stack), int(s.stack_len))}
}

func (h *host) DoStackSnapshot(slot int, c *clr.Capture) {
	c.Result = clr.HRESULT(C.sw_snapshot(C.int(slot)))
	s := C.sw_slot_at(C.int(slot))
	c.Frames = unsafe.Slice((*clr.SnapshotFrame)(unsafe.Pointer(s.frames)), int(s.frame_count))
	c.Full = s.full != 0
}

func (h *host) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	var f C.uint64_t
	hr := C.sw_function_from_ip(C.uint64_t(ip), &f)
	return clr.FunctionID(f), clr.HRESULT(hr)
}

func (h *host) FunctionName(f clr.FunctionID) (name, module string, ok bool) {
	hr := C.sw_function_name(C.uint64_t(f), (*C.char)(unsafe.Pointer(&h.name[0])), C.int(len(h.name)),
		(*C.char)(unsafe.Pointer(&h.module[0])), C.int(len(h.module)))
	return text(h.name), text(h.module), !clr.HRESULT(hr).Failed()
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

func (h *host) Threads(buf []core.Thread) []core.Thread {
	n := int(C.sw_threads_copy(&h.threads[0], C.int(len(h.threads))))
	for i := range h.threads[:n] {
		t := &h.threads[i]
		buf = append(buf, core.Thread{
			Thread: clr.Thread{ID: clr.ThreadID(t.thread_id), TID: uint64(t.tid), StackLow: uint64(t.stack_low), StackHigh: uint64(t.stack_high)},
			Name:   C.GoString(&t.name[0]),
		})
	}
	return buf
}

func (h *host) Event() (core.EventKind, bool) {
	var e C.struct_sw_event
	if C.sw_event_next(&e) == 0 {
		return 0, false
	}
	return core.EventKind(e.kind), true
}

func (h *host) Version() string {
	var v [4]C.int
	C.sw_runtime_version(&v[0])
	return fmt.Sprintf(".NET %d.%d.%d", v[0], v[1], v[2])
}

var _ core.Host = (*host)(nil)

// The registers a slot holds are those of context.AMD64.
var _ = [1]struct{}{}[len(context.AMD64{}.GPR)-16]

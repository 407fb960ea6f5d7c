package host

/*
#include "shim.h"
#include "hooks.h"
#include "watchdog_windows.h"
*/
import "C"

import (
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/agent"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// host is the process as the C half presents it: agent.ThreadHost on a real CLR.
type host struct {
	process
	live.Windows
	images    *live.Images
	steps     *managed.Tables
	entrances managed.Entrances
	specials  managed.Specials
	loaded    []C.struct_sw_module
	held      uint64 // suspensions of threads that were already suspended
}

func newHost() *host {
	h := &host{process: newProcess(), loaded: make([]C.struct_sw_module, C.SW_MODULES)}
	h.images = live.NewImages(h.modules)
	h.steps = managed.New(managed.System{Calls: h})
	return h
}

// Precompiled implements managed.Calls.
func (h *host) Precompiled(pc uint64) (managed.Image, bool) {
	m := h.images.Precompiled(pc)
	if m == nil {
		return managed.Image{}, false
	}
	return managed.Image{Base: m.Bias, Table: m.PE.AMD64()}, true
}

// modules reads the list from the loader.
func (h *host) modules() []live.Loaded {
	n := int(C.sw_modules(&h.loaded[0], C.int(len(h.loaded))))
	var out []live.Loaded
	for i := range max(n, 0) {
		m := &h.loaded[i]
		out = append(out, live.Loaded{Base: uint64(m.base), Size: uint32(m.size), Stamp: uint32(m.stamp),
			Path: C.GoString(&m.path[0])})
	}
	return out
}

// Version: up to .NET Core 3.0 the runtime reports 4.0, but its folder is named after its version.
func (h *host) Version() string {
	v := h.process.Version()
	if !strings.HasPrefix(v, ".NET 4.") {
		return v
	}
	h.images.Table()
	folder := filepath.Base(filepath.Dir(h.images.Path("coreclr.dll")))
	if major, _, ok := strings.Cut(folder, "."); ok && (major == "2" || major == "3") {
		return ".NET Core " + folder
	}
	return ".NET Core, CLR " + strings.TrimPrefix(v, ".NET ")
}

func (h *host) Now() int64                 { return int64(C.sw_now_ns()) }
func (h *host) Release(clr.Thread)         { C.sw_release() }
func (h *host) Resume(_ int, _ clr.Thread) { C.sw_resume(0) }
func (h *host) Managed() *managed.Tables   { return h.steps }

// Specials returns the code where a walk cannot begin, as of the last Table.
func (h *host) Specials() *managed.Specials {
	return &h.specials
}

// isMethod may be called in the window: GetFunctionFromIP is asynchronous.
func isMethod(ip uint64) bool { return C.sw_function_at(C.uint64_t(ip)) != 0 }

func (h *host) Claim(t clr.Thread) bool {
	return C.sw_claim(C.uint64_t(t.ID), C.uint64_t(t.TID)) != 0
}

func (h *host) Prime(t clr.Thread) (callbacks int, hr clr.HRESULT) {
	var n C.int
	C.sw_watch_begin(C.uint64_t(t.ID))
	r := C.sw_prime(C.uint64_t(t.ID), &n)
	C.sw_watch_end()
	return int(n), clr.HRESULT(r)
}

func (h *host) Suspend(_ int, t clr.Thread) clr.SuspendStatus {
	switch C.sw_suspend(0, C.uint64_t(t.ID)) {
	case 1:
		if C.sw_slot_at(0).already > 0 {
			h.held++
		}
		return clr.Suspended
	case 0:
		return clr.SuspendGone
	}
	return clr.SuspendDenied
}

func bytesOf(p *C.uint8_t, n C.uint64_t) []byte { return unsafe.Slice((*byte)(p), int(n)) }

// HeldByOthers implements agent.Held.
func (h *host) HeldByOthers() uint64 { return h.held }

// Context fills c with what the C half captured.
func (h *host) Context(_ int, c *clr.Capture) bool {
	if C.sw_context(0) == 0 {
		return false
	}
	s := C.sw_slot_at(0)
	regs, err := context.Read(context.Win32AMD64, bytesOf(s.context, C.SW_CONTEXT_BYTES))
	c.Regs = regs
	c.Truncated = s.truncated != 0
	c.Loads = uint64(s.loads)
	c.Thread.StackLow, c.Thread.StackHigh = uint64(s.stack_low), uint64(s.stack_high)
	c.Stack = memory.Run{Addr: uint64(s.stack_addr), Data: bytesOf(s.stack, s.stack_len)}
	return err == nil // the size is a constant
}

// DoStackSnapshot passes as seed the captured CONTEXT with the registers of the seed's frame.
func (h *host) DoStackSnapshot(_ int, c *clr.Capture) {
	s := C.sw_slot_at(0)
	s.seeded = 0
	if c.Seeded && context.Write(context.Win32AMD64, bytesOf(s.seed, C.SW_CONTEXT_BYTES), &c.Seed) == nil {
		s.seeded = 1
	}
	C.sw_watch_begin(s.thread_id)
	c.Result = clr.HRESULT(C.sw_snapshot(0))
	c.Broken = C.sw_watch_end() != 0
	frames(0, c)
}

// ThreadName: on Windows only the CLR names threads.
func (h *host) ThreadName(uint64) string { return "" }

// Table implements agent.Process.
func (h *host) Table() *module.Table {
	t := h.images.Table()
	h.steps.Renew()
	if t == nil {
		return t
	}
	h.specials = h.entrances.Of(t)
	h.specials.IsMethod = isMethod
	if C.sw_hook_careless() != 0 {
		h.specials.Loader = managed.Places{}
	}
	return t
}

// wrap is replaced by tests that build the library with additions.
var wrap = func(h *host) agent.ThreadHost { return h }

// NewAgent returns a sampler that suspends one thread at a time.
func NewAgent(cfg agent.Config, send func([]byte) error) *agent.Agent {
	quiet.Begin()
	return agent.NewThreads(wrap(newHost()), cfg, send)
}

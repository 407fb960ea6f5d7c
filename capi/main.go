// Command capi is the C library: package main built with -buildmode=c-shared
// or c-archive. Its interface is seedwalk.h.
package main

/*
#cgo CFLAGS: -O2 -Wall -Wextra -Werror -Wno-unused-parameter
#include "types.h"

_Static_assert(sizeof(seedwalk_frame) == 40, "layout of seedwalk_frame");
_Static_assert(sizeof(seedwalk_snapshot_frame) == 112, "layout of clr.SnapshotFrame");

static inline uint64_t call_from_ip(seedwalk_function_from_ip f, void *client, uint64_t ip)
{
	return f(client, ip);
}
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
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
	loader  *live.Loader
	modules []module.Module
	managed []module.Range
	scanned *module.Table
	gen     uint32
	walker  *amd64.Unwinder
	merger  *merge.Merger
	ask     question
	window  memory.Window
	native  [512]unwind.Frame
	merged  []merge.Frame
}

// question asks the caller's function.
type question struct {
	f      C.seedwalk_function_from_ip
	client unsafe.Pointer
}

func (q *question) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if q.f == nil {
		return 0, clr.E_FAIL
	}
	if id := C.call_from_ip(q.f, q.client, C.uint64_t(ip)); id != 0 {
		return clr.FunctionID(id), clr.S_OK
	}
	return 0, clr.E_FAIL
}

// instances holds what handles 1 to 64 stand for: no lock on the way of a walk.
var instances [64]atomic.Pointer[instance]

func find(h C.seedwalk_handle) *instance {
	if h == 0 || h > C.seedwalk_handle(len(instances)) {
		return nil
	}
	return instances[h-1].Load()
}

//export seedwalk_open
func seedwalk_open() C.seedwalk_handle {
	in := &instance{loader: live.NewLoader(0), walker: amd64.New(), merged: make([]merge.Frame, 16384)}
	in.merger = merge.New(in.walker, &in.ask)
	for i := range instances {
		if instances[i].CompareAndSwap(nil, in) {
			return C.seedwalk_handle(i) + 1
		}
	}
	return 0
}

//export seedwalk_close
func seedwalk_close(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil || !instances[h-1].CompareAndSwap(in, nil) {
		return badHandle
	}
	return ok
}

//export seedwalk_add_module
func seedwalk_add_module(h C.seedwalk_handle, id C.int32_t, path *C.cchar, start, end, bias C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case path == nil || id <= 0 || start >= end:
		return badArgument
	}
	m := module.LoadELF(uint32(id), C.GoString((*C.char)(unsafe.Pointer(path))), uint64(start), uint64(end), uint64(bias))
	in.modules = append(in.modules, m)
	if m.ELF == nil {
		return unreadable // its range is known all the same
	}
	return ok
}

//export seedwalk_add_managed
func seedwalk_add_managed(h C.seedwalk_handle, start, end C.uint64_t) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case start >= end:
		return badArgument
	}
	in.managed = append(in.managed, module.Range{Start: uint64(start), End: uint64(end)})
	return ok
}

//export seedwalk_clear
func seedwalk_clear(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	in.modules, in.managed, in.scanned = nil, nil, nil
	return ok
}

//export seedwalk_scan
func seedwalk_scan(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	maps, err := live.Maps(0)
	if err != nil {
		return unreadable
	}
	in.scanned = in.loader.Table(maps)
	return ok
}

//export seedwalk_commit
func seedwalk_commit(h C.seedwalk_handle) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	modules, managed := in.modules, in.managed
	if in.scanned != nil {
		modules, managed = nil, in.scanned.Managed()
		for i := range in.scanned.Len() {
			m := *in.scanned.At(i)
			m.ID = uint32(i) + 1
			modules = append(modules, m)
		}
	}
	in.gen++
	in.walker.SetTable(module.NewTable(in.gen, modules, managed))
	return ok
}

//export seedwalk_walk
func seedwalk_walk(h C.seedwalk_handle, r *C.cregisters, s *C.cstack, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case r == nil || s == nil || s.bytes == nil || out == nil || room <= 0 || res == nil:
		return badArgument
	}
	c := in.capture(r, s)
	in.window.Reset(c.Stack.Addr, c.Stack.Data)
	b := unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	found := seed.Find(in.walker, &c.Regs, &in.window, &b, in.native[:min(int(room), len(in.native))])
	frames := unsafe.Slice(out, int(room))
	for i := range in.native[:found.Frames] {
		f := &in.native[i]
		frames[i] = in.frame(f.IP, f.SP, f.FP, 0, f.Module, f.Kind, f.Trust, 0, f.Exact)
	}
	*res = C.seedwalk_result{frames: C.int32_t(found.Frames), stop: C.int32_t(found.Stop), verdict: C.int32_t(found.Verdict), exact: C.int32_t(flag(found.Exact))}
	res.registers.rip = C.uint64_t(found.Regs.RIP)
	for i, v := range found.Regs.GPR {
		res.registers.gpr[i] = C.uint64_t(v)
	}
	return ok
}

//export seedwalk_merge
func seedwalk_merge(h C.seedwalk_handle, r *C.cregisters, s *C.cstack, hresult C.uint32_t, frames *C.csnapshot, count C.int32_t,
	fromIP C.seedwalk_function_from_ip, client unsafe.Pointer, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case r == nil || s == nil || s.bytes == nil || out == nil || room <= 0 || res == nil || count < 0 || count > 0 && frames == nil:
		return badArgument
	}
	c := in.capture(r, s)
	c.Result = clr.HRESULT(hresult)
	if count > 0 {
		c.Frames = unsafe.Slice((*clr.SnapshotFrame)(unsafe.Pointer(frames)), int(count))
	}
	in.ask = question{fromIP, client}
	got := in.merger.Merge(&c, in.merged[:min(int(room), len(in.merged))])
	in.ask = question{}
	to := unsafe.Slice(out, int(room))
	for i := range in.merged[:got.N] {
		f := &in.merged[i]
		to[i] = in.frame(f.IP, f.SP, f.FP, f.Function, f.Module, f.Kind, f.Trust, f.Gap, f.Exact)
	}
	*res = C.seedwalk_result{frames: C.int32_t(got.N), verdict: C.int32_t(got.Verdict), gap: C.int32_t(got.Gap), doubtful: C.int32_t(got.Doubtful)}
	return ok
}

func (in *instance) capture(r *C.cregisters, s *C.cstack) clr.Capture {
	c := clr.Capture{Status: clr.Captured}
	c.Thread.StackLow, c.Thread.StackHigh = uint64(s.low), uint64(s.high)
	c.Stack = memory.Run{Addr: uint64(s.address), Data: unsafe.Slice((*byte)(unsafe.Pointer(s.bytes)), int(s.length))}
	c.Regs.RIP = uint64(r.rip)
	for i := range c.Regs.GPR {
		c.Regs.GPR[i] = uint64(r.gpr[i])
	}
	c.Regs.Known = 1<<len(context.AMD64{}.GPR) - 1
	return c
}

func (in *instance) frame(ip, sp, fp uint64, f clr.FunctionID, mod int32, k unwind.Kind, t unwind.Trust, g merge.Gap, exact bool) C.seedwalk_frame {
	out := C.seedwalk_frame{ip: C.uint64_t(ip), sp: C.uint64_t(sp), fp: C.uint64_t(fp), function: C.uint64_t(f),
		kind: C.uint8_t(k), trust: C.uint8_t(t), gap: C.uint8_t(g), exact: C.uint8_t(flag(exact))}
	if mod >= 0 {
		out.module = C.int32_t(in.walker.Table().At(int(mod)).ID)
	}
	return out
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

//export seedwalk_gap_name
func seedwalk_gap_name(gap C.int32_t, out *C.char, room C.int32_t) C.int {
	return text(merge.Gap(gap).String(), out, room)
}

//export seedwalk_stop_name
func seedwalk_stop_name(stop C.int32_t, out *C.char, room C.int32_t) C.int {
	return text(unwind.Stop(stop).String(), out, room)
}

func text(s string, out *C.char, room C.int32_t) C.int {
	if out == nil || room <= 0 {
		return badArgument
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(out)), int(room))
	n := copy(b[:len(b)-1], s)
	b[n] = 0
	return C.int(n)
}

package main

/*
#include "types.h"

static inline uint64_t call_from_ip(seedwalk_function_from_ip f, void *client, uint64_t ip)
{
	return f(client, ip);
}
*/
import "C"

import (
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/merge"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

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

// layouts of contexts as seedwalk.h numbers them, x86-64's and ARM64's.
var layouts = [...][2]context.Layout{
	C.SEEDWALK_CONTEXT_WIN32:    {context.Win32AMD64, context.Win32ARM64},
	C.SEEDWALK_CONTEXT_UCONTEXT: {context.UContextAMD64, context.UContextARM64},
}

// registers reads a context into c.
func (in *instance) registers(c *clr.Capture, layout C.int32_t, from unsafe.Pointer, size C.uint64_t) bool {
	if layout < 0 || int(layout) >= len(layouts) || from == nil || size == 0 || size > 1<<16 {
		return false
	}
	b := unsafe.Slice((*byte)(from), int(size))
	l := layouts[layout][1]
	if in.walker.Arch() == context.ArchAMD64 {
		l = layouts[layout][0]
	}
	r, err := context.Read(l, b)
	c.Regs = r
	return err == nil
}

//export seedwalk_walk
func seedwalk_walk(h C.seedwalk_handle, r *C.cregisters, s *C.cstack, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case r == nil || !places(s, out, room, res) || in.walker.Arch() != context.ArchAMD64:
		return badArgument
	}
	c := in.take(s)
	defer in.forget()
	c.Regs = context.FromAMD64(general(r))
	in.walk(c, out, room, res)
	return ok
}

//export seedwalk_walk_context
func seedwalk_walk_context(h C.seedwalk_handle, layout C.int32_t, ctx C.cpointer, size C.uint64_t, s *C.cstack,
	out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result, seedContext unsafe.Pointer) C.int {
	in := find(h)
	if in == nil {
		return badHandle
	}
	if !places(s, out, room, res) {
		return badArgument
	}
	c := in.take(s)
	defer in.forget()
	if !in.registers(c, layout, unsafe.Pointer(ctx), size) {
		return badArgument
	}
	in.walk(c, out, room, res)
	if seedContext != nil {
		in.writeSeed(c, seedContext)
	}
	return ok
}

// walk leaves the registers of the walk's end in c.Seed.
func (in *instance) walk(c *clr.Capture, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) {
	in.window.Reset(c.Stack.Addr, c.Stack.Data)
	in.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	native := in.native[:min(int(room), len(in.native))]
	var none *seed.Specials
	*res = C.seedwalk_result{}
	c.Seed.Copy(&c.Regs)
	in.at = unwind.Interrupted(&c.Seed)
	found := none.Find(in.walker, &in.at, &in.window, &in.bounds, native)
	res.registers.rip = C.uint64_t(c.Seed.IP())
	if c.Seed.Arch == context.ArchAMD64 {
		for i, v := range c.Seed.AMD64.GPR {
			res.registers.gpr[i] = C.uint64_t(v)
		}
	}
	frames := unsafe.Slice(out, int(room))
	for i := range native[:found.Frames] {
		f := &native[i]
		frames[i] = in.frame(f.IP, f.SP, f.FP, 0, f.Module, f.Kind, f.Trust, 0, f.Exact)
	}
	res.frames, res.stop, res.verdict = C.int32_t(found.Frames), C.int32_t(found.Stop), C.int32_t(found.Verdict)
	res.exact = C.int32_t(flag(in.at.Exact))
}

// writeSeed puts the registers where the walk ended into a CONTEXT.
func (in *instance) writeSeed(c *clr.Capture, to unsafe.Pointer) {
	l := context.Win32AMD64
	if c.Seed.Arch == context.ArchARM64 {
		l = context.Win32ARM64
	}
	context.Write(l, unsafe.Slice((*byte)(to), l.Size()), &c.Seed) // the size is right
}

//export seedwalk_merge
func seedwalk_merge(h C.seedwalk_handle, r *C.cregisters, s *C.cstack, hresult C.uint32_t, frames *C.csnapshot, count C.int32_t,
	fromIP C.seedwalk_function_from_ip, client unsafe.Pointer, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case r == nil || !places(s, out, room, res) || !reported(frames, count) || in.walker.Arch() != context.ArchAMD64:
		return badArgument
	}
	c := in.take(s)
	defer in.forget()
	c.Regs = context.FromAMD64(general(r))
	in.ask = question{fromIP, client}
	in.merge(c, hresult, frames, count, out, room, res)
	return ok
}

//export seedwalk_merge_context
func seedwalk_merge_context(h C.seedwalk_handle, layout C.int32_t, ctx C.cpointer, size C.uint64_t, s *C.cstack, hresult C.uint32_t, frames *C.csnapshot, count C.int32_t,
	fromIP C.seedwalk_function_from_ip, client unsafe.Pointer, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) C.int {
	in := find(h)
	switch {
	case in == nil:
		return badHandle
	case !places(s, out, room, res) || !reported(frames, count):
		return badArgument
	}
	c := in.take(s)
	defer in.forget()
	if !in.registers(c, layout, unsafe.Pointer(ctx), size) {
		return badArgument
	}
	in.ask = question{fromIP, client}
	in.merge(c, hresult, frames, count, out, room, res)
	return ok
}

func (in *instance) merge(c *clr.Capture, hresult C.uint32_t, frames *C.csnapshot, count C.int32_t, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) {
	c.Result = clr.HRESULT(hresult)
	if count > 0 {
		c.Frames = unsafe.Slice((*clr.SnapshotFrame)(unsafe.Pointer(frames)), int(count))
	}
	got := in.merger.Merge(c, in.merged[:min(int(room), len(in.merged))])
	to := unsafe.Slice(out, int(room))
	for i := range in.merged[:got.N] {
		f := &in.merged[i]
		to[i] = in.frame(f.IP, f.SP, f.FP, f.Function, f.Module, f.Kind, f.Trust, f.Gap, f.Exact)
	}
	*res = C.seedwalk_result{frames: C.int32_t(got.N), verdict: C.int32_t(got.Verdict), gap: C.int32_t(got.Gap), doubtful: C.int32_t(got.Doubtful)}
}

// places reports whether there is a stack to read and room for an answer.
func places(s *C.cstack, out *C.seedwalk_frame, room C.int32_t, res *C.seedwalk_result) bool {
	return s != nil && s.bytes != nil && s.length <= maxStack && s.address+s.length >= s.address && out != nil && room > 0 && res != nil
}

// maxStack bounds a copied stack: far above any, and below what memory there is.
const maxStack = 1 << 40

// reported reports whether frames can be what DoStackSnapshot gave.
func reported(frames *C.csnapshot, count C.int32_t) bool {
	return count >= 0 && (count == 0 || frames != nil)
}

// take makes the instance's capture that of a stack; forget drops the caller's
// memory again. A capture of the call's own would be allocated while a thread may
// be suspended.
func (in *instance) take(s *C.cstack) *clr.Capture {
	c := &in.capture
	c.Status = clr.Captured
	c.Thread.StackLow, c.Thread.StackHigh = uint64(s.low), uint64(s.high)
	c.Stack = memory.Run{Addr: uint64(s.address), Data: unsafe.Slice((*byte)(unsafe.Pointer(s.bytes)), int(s.length))}
	return c
}

func (in *instance) forget() {
	in.capture = clr.Capture{}
	in.window.Reset(0, nil)
	in.ask = question{}
}

// general are the registers of seedwalk_registers.
func general(r *C.cregisters) context.AMD64 {
	regs := context.AMD64{RIP: uint64(r.rip), Known: 1<<len(context.AMD64{}.GPR) - 1}
	for i := range regs.GPR {
		regs.GPR[i] = uint64(r.gpr[i])
	}
	return regs
}

func (in *instance) frame(ip, sp, fp uint64, f clr.FunctionID, mod int32, k unwind.Kind, t unwind.Trust, g merge.Gap, exact bool) C.seedwalk_frame {
	out := C.seedwalk_frame{ip: C.uint64_t(ip), sp: C.uint64_t(sp), fp: C.uint64_t(fp), function: C.uint64_t(f),
		kind: C.uint8_t(k), trust: C.uint8_t(t), gap: C.uint8_t(g), exact: C.uint8_t(flag(exact))}
	if mod >= 0 {
		out.module = C.int32_t(in.table.At(int(mod)).ID)
	}
	return out
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

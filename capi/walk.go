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
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// question is the caller's function.
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

// request holds copies of the caller's structures, as this library knows them.
type request struct {
	sample C.seedwalk_sample
	walk   C.seedwalk_walk_request
	merge  C.seedwalk_merge_request
	result C.seedwalk_result
}

// The least sizes: a sample up to its stack, a request up to its frames, a result up to its gap.
const (
	leastSample = unsafe.Offsetof(C.seedwalk_sample{}.low)
	leastWalk   = unsafe.Offsetof(C.seedwalk_walk_request{}.seed)
	leastBatch  = unsafe.Sizeof(C.seedwalk_batch{})
	leastMerge  = unsafe.Sizeof(C.seedwalk_merge_request{})
	leastResult = unsafe.Offsetof(C.seedwalk_result{}.exact)
)

// registers reads a context into c.
func (in *instance) registers(c *clr.Capture, s *C.seedwalk_sample) bool {
	if s.layout < 0 || int(s.layout) >= len(layouts) || s.context == nil || s.context_size == 0 ||
		s.context_size > 1<<16 {
		return false
	}
	l := layouts[s.layout][1]
	if in.walker.Arch() == context.ArchAMD64 {
		l = layouts[s.layout][0]
	}
	return c.Regs.Read(l, unsafe.Slice((*byte)(s.context), int(s.context_size))) == nil
}

//export seedwalk_walk
func seedwalk_walk(h C.seedwalk_handle, r *C.cwalk, res *C.seedwalk_result) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	return in.walkOne(unsafe.Pointer(r), res)
}

//export seedwalk_walk_batch
func seedwalk_walk_batch(h C.seedwalk_handle, r *C.cbatch) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	b := &in.batch
	if err = sized(unsafe.Pointer(b), unsafe.Sizeof(*b), leastBatch, unsafe.Pointer(r)); err != ok {
		return err
	}
	if b.count < 0 || b.count > 0 && (b.requests == nil || b.results == nil || b.errors == nil) {
		return badArgument
	}
	n := int(b.count)
	requests, results, errors := unsafe.Slice(b.requests, n),
		unsafe.Slice(b.results, n), unsafe.Slice(b.errors, n)
	for i, request := range requests {
		errors[i] = C.int32_t(in.walkOne(unsafe.Pointer(request), results[i]))
	}
	in.batch = C.seedwalk_batch{}
	return ok
}

// walkOne does one walk for the request r.
func (in *instance) walkOne(r unsafe.Pointer, res *C.seedwalk_result) (err C.int) {
	w := &in.request.walk
	if err = sized(unsafe.Pointer(w), unsafe.Sizeof(*w), leastWalk, r); err != ok {
		return err
	}
	if err = in.take(unsafe.Pointer(w.sample), w.frames, w.room, res); err == ok {
		err = in.walk(w)
	}
	if err == ok {
		in.answer(res)
	}
	in.forget()
	return err
}

// walk leaves the registers of the walk's end in the capture's Seed.
func (in *instance) walk(w *C.seedwalk_walk_request) C.int {
	c := &in.capture
	layout := seedLayout(in.walker.Arch())
	if w.seed != nil && uint64(w.seed_size) < uint64(layout.Size()) {
		return badArgument
	}
	in.window.Reset(c.Stack.Addr, c.Stack.Data)
	in.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}
	room := min(int(w.room), maxWalked)
	walked := unsafe.Slice((*unwind.Frame)(unsafe.Pointer(w.frames)), room)
	c.Seed.Copy(&c.Regs)
	in.at = unwind.Interrupted(&c.Seed)
	found := seed.Find(&in.specials, in.walker, &in.at, &in.window, &in.bounds, walked, &in.witness)
	out := &in.request.result
	out.rescan = in.convert(walked[:found.Frames], unsafe.Slice(w.frames, found.Frames))
	out.frames, out.stop, out.verdict = C.int32_t(found.Frames),
		C.int32_t(found.Stop), C.int32_t(found.Verdict)
	out.exact, out.loading = C.int32_t(flag(in.at.Exact)), C.int32_t(flag(found.Loading))
	out.ip, out.sp, out.fp = C.uint64_t(c.Seed.IP()), C.uint64_t(c.Seed.SP()), C.uint64_t(c.Seed.FP())
	if w.seed != nil {
		context.Write(layout, unsafe.Slice((*byte)(w.seed), layout.Size()), &c.Seed) // its size was checked
	}
	return ok
}

// maxWalked bounds the frames of one walk.
const maxWalked = 512

// A walk writes its frames into the caller's memory: the fields that both structures have are at the same
// places. Each constant is negative, so that it does not compile, if they are not.
const (
	_ = -(unsafe.Sizeof(unwind.Frame{}) ^ unsafe.Sizeof(C.seedwalk_frame{}))
	_ = -(unsafe.Offsetof(unwind.Frame{}.IP) ^ unsafe.Offsetof(C.seedwalk_frame{}.ip))
	_ = -(unsafe.Offsetof(unwind.Frame{}.SP) ^ unsafe.Offsetof(C.seedwalk_frame{}.sp))
	_ = -(unsafe.Offsetof(unwind.Frame{}.FP) ^ unsafe.Offsetof(C.seedwalk_frame{}.fp))
	_ = -(unsafe.Offsetof(unwind.Frame{}.Kind) ^ unsafe.Offsetof(C.seedwalk_frame{}.kind))
	_ = -(unsafe.Offsetof(unwind.Frame{}.Trust) ^ unsafe.Offsetof(C.seedwalk_frame{}.trust))
)

// convert makes walked frames the caller's, in place, and returns whether one of them is unknown. Most frames
// are in the same module as the one before.
func (in *instance) convert(walked []unwind.Frame, frames []C.seedwalk_frame) (rescan C.int32_t) {
	index, id := int32(-1), C.int32_t(0)
	for i := range walked {
		f, to := &walked[i], &frames[i]
		if f.Module != index {
			index, id = f.Module, in.moduleID(f.Module)
		}
		exact := C.uint8_t(flag(f.Exact))
		to.function, to.module, to.gap, to.exact = 0, id, 0, exact
		if id == 0 {
			rescan |= C.int32_t(flag(in.unknown(to)))
		}
	}
	return rescan
}

// seedLayout is the layout of the CONTEXT for DoStackSnapshot.
func seedLayout(a context.Arch) context.Layout {
	if a == context.ArchARM64 {
		return context.Win32ARM64
	}
	return context.Win32AMD64
}

//export seedwalk_merge
func seedwalk_merge(h C.seedwalk_handle, r *C.cmerge, res *C.seedwalk_result) C.int {
	in, err := enter(h)
	if err != ok {
		return err
	}
	defer in.leave()
	m := &in.request.merge
	if err = sized(unsafe.Pointer(m), unsafe.Sizeof(*m), leastMerge, unsafe.Pointer(r)); err != ok {
		return err
	}
	if m.count < 0 || m.count > 0 && m.reported == nil {
		return badArgument
	}
	if err = in.take(unsafe.Pointer(m.sample), m.frames, m.room, res); err == ok {
		in.merge(m)
		in.answer(res)
	}
	in.forget()
	return err
}

func (in *instance) merge(m *C.seedwalk_merge_request) {
	c := &in.capture
	c.Result = clr.HRESULT(m.hresult)
	if m.count > 0 {
		c.Frames = unsafe.Slice((*clr.SnapshotFrame)(unsafe.Pointer(m.reported)), int(m.count))
	}
	in.runtime.merging(in)
	got := in.merger.Merge(c, in.merged[:min(int(m.room), len(in.merged))])
	in.record(&got)
	out := &in.request.result
	to := unsafe.Slice(m.frames, int(m.room))
	for i := range in.merged[:got.N] {
		in.frame(&to[i], &in.merged[i])
		out.rescan |= C.int32_t(flag(in.unknown(&to[i])))
	}
	out.frames, out.verdict, out.gap, out.doubtful = C.int32_t(got.N), C.int32_t(got.Verdict),
		C.int32_t(got.Gap), C.int32_t(got.Doubtful)
	out.hidden, out.waiting = C.int32_t(got.Hidden), C.int32_t(got.Probe)
}

// unknown reports whether a frame is outside all modules and managed ranges: its code was added after the
// last commit, or the walk went wrong.
func (in *instance) unknown(f *C.seedwalk_frame) bool {
	if f.module != 0 || f.kind == C.SEEDWALK_GAP {
		return false
	}
	at := unwind.Address{IP: uint64(f.ip), Exact: f.exact != 0}.Lookup()
	return !in.table.IsManaged(at) && in.table.Find(at) < 0
}

// maxStack bounds a copied stack: far above real stacks, and below the size of memory.
const maxStack = 1 << 40

// take copies a sample into the instance's capture, and checks the output arrays. (A local capture would be
// allocated while a thread may be suspended.) forget clears it.
func (in *instance) take(from unsafe.Pointer, frames *C.seedwalk_frame, room C.int32_t,
	res *C.seedwalk_result) C.int {
	s := &in.request.sample
	if err := sized(unsafe.Pointer(s), unsafe.Sizeof(*s), leastSample, from); err != ok {
		return err
	}
	if _, err := sizeOf(unsafe.Pointer(res), leastResult); err != ok {
		return err
	}
	if s.stack == nil || s.length > maxStack || s.address+s.length < s.address || frames == nil || room <= 0 {
		return badArgument
	}
	c := &in.capture
	if !in.registers(c, s) {
		return badArgument
	}
	c.Status, c.Truncated = clr.Captured, s.truncated != 0
	c.Thread.ID, c.Thread.StackLow, c.Thread.StackHigh = clr.ThreadID(s.thread), uint64(s.low), uint64(s.high)
	c.Stack = memory.Run{Addr: uint64(s.address),
		Data: unsafe.Slice((*byte)(unsafe.Pointer(s.stack)), int(s.length))}
	in.ask = question{s.from_ip, s.client}
	in.specials.IsMethod = nil
	if s.from_ip != nil {
		in.specials.IsMethod = in.isMethod
	}
	return ok
}

func (in *instance) answer(res *C.seedwalk_result) {
	answer(unsafe.Pointer(res), unsafe.Pointer(&in.request.result), unsafe.Sizeof(in.request.result))
}

// forget drops the result and every pointer into the caller's memory. take and merge set the rest of the
// capture again; clearing its registers would take as long as some frames.
func (in *instance) forget() {
	in.capture.Stack, in.capture.Frames = memory.Run{}, nil
	in.request = request{}
	in.window.Reset(0, nil)
	in.walker.Drop()
	in.ask = question{}
}

// method reports whether the caller's function finds a method at ip.
func (in *instance) method(ip uint64) bool {
	_, hr := in.ask.FunctionFromIP(ip)
	return !hr.Failed()
}

// frame writes a frame field by field in place. If it were built elsewhere in bytes and then copied in words,
// it would wait for its own stores, longer than a step takes.
func (in *instance) frame(to *C.seedwalk_frame, f *merge.Frame) {
	to.ip, to.sp, to.fp, to.function, to.module = C.uint64_t(f.IP), C.uint64_t(f.SP), C.uint64_t(f.FP),
		C.uint64_t(f.Function), in.moduleID(f.Module)
	to.kind, to.trust, to.gap, to.exact = C.uint8_t(f.Kind), C.uint8_t(f.Trust),
		C.uint8_t(f.Gap), C.uint8_t(flag(f.Exact))
}

// moduleID returns the caller's number of a module of the table.
func (in *instance) moduleID(index int32) C.int32_t {
	if int(uint32(index)) >= in.table.Len() { // none, or the caller has changed the frame meanwhile
		return 0
	}
	return C.int32_t(in.table.At(int(index)).ID)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

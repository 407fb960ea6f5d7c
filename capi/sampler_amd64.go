//go:build cgo

package main

/*
#include <stdlib.h>

#include "sampler.h"
*/
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/internal/quiet"
	clrhost "github.com/seedwalk/seedwalk/profiler/host"
	"github.com/seedwalk/seedwalk/sample/agent"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// sampler is the Go half of the process's one sampler. Its results are in C memory.
type sampler struct {
	agent     *agent.Agent
	rows      [C.SW_STACKS]rows
	methods   map[clr.FunctionID]texts
	modules   map[uint32]texts
	natives   natives
	sources   sources
	forgotten uint64 // the agent's count when methods was started
	none      *C.char
	tag       C.uint64_t // of the copy that is being walked
}

// rows are the frames of one stack.
type rows struct {
	first     *C.seedwalk_named_frame
	addresses *C.uint64_t
	sources   *C.seedwalk_source
	room      int
}

// texts are a method's name and its assembly's file, or a module's file and build id.
type texts struct{ first, second *C.char }

func (t texts) free() {
	C.free(unsafe.Pointer(t.first))
	C.free(unsafe.Pointer(t.second))
}

var sampling *sampler

// leastProcs is the lowest GOMAXPROCS. The sampler then keeps running while another thread of Go waits for a
// lock that a stopped thread holds.
const leastProcs = 4

// swgoSamplerBegin creates the sampler. C calls it once. If SEEDWALK_RAW names a file, raw samples with the
// copied stacks are written there, for tests.
//
//export swgoSamplerBegin
func swgoSamplerBegin() {
	restore()
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), leastProcs))
	quiet.Begin()
	sampling = &sampler{
		agent:   clrhost.NewAgent(agent.Config{RateHz: 1, Slots: clrhost.Slots, Raw: takeRaw()}, nil),
		methods: map[clr.FunctionID]texts{}, modules: map[uint32]texts{}, natives: newNatives(),
		sources: newSources(), none: C.CString(""),
	}
}

// swgoSamplerRound takes a round, or walks copies, into sw_stacks.
//
//export swgoSamplerRound
func swgoSamplerRound(flags C.int32_t, thread C.uint64_t, out *C.seedwalk_sampler_result) C.int {
	s := sampling
	garbage.Collect()
	s.trim()
	s.sources.wanted = flags&C.SEEDWALK_SOURCES != 0
	var r agent.Round
	if flags&C.SEEDWALK_COPIES != 0 {
		r = s.agent.Copied(copies{s}, s.takeCopy)
	} else {
		r = s.agent.Once(clr.ThreadID(thread), s.take)
	}
	out.threads = C.int32_t(r.Known)
	out.suspensions, out.retries = C.uint64_t(r.Suspensions), C.uint64_t(r.Retries)
	out.gone, out.denied = C.uint64_t(r.Gone), C.uint64_t(r.Denied)
	if r.Refused != "" {
		why := C.CString(r.Refused)
		C.sw_problem(why)
		C.free(unsafe.Pointer(why))
		return C.SEEDWALK_REFUSED
	}
	return ok
}

// maxModules bounds the memory of modules that have gone.
const maxModules = 4096

// trim empties each cache of texts that exceeds its bound. It runs before a round, when the caller no longer
// uses the results of the last one.
func (s *sampler) trim() {
	if len(s.modules) > maxModules {
		drop(s.modules)
	}
	s.natives.trim()
	s.sources.trim()
}

func drop[K comparable](m map[K]texts) {
	for _, t := range m {
		t.free()
	}
	clear(m)
}

// take records one stack. The agent drops methods only before the first stack of a round, so no stack has
// texts that are freed here.
func (s *sampler) take(from *agent.Stack) {
	if s.agent.Forgotten() != s.forgotten {
		drop(s.methods)
		s.sources.drop()
		s.forgotten = s.agent.Forgotten()
	}
	i := int(C.sw_stack_count)
	if i == len(s.rows) {
		return
	}
	frames, addresses := s.rows[i].of(len(from.Frames))
	for k := range frames {
		s.frame(&frames[k], &from.Frames[k], from.Table)
		addresses[k] = C.uint64_t(within(&from.Frames[k], from.Table))
	}
	sources := s.sources.of(s, &s.rows[i], from.Frames)
	name := unsafe.Slice((*byte)(unsafe.Pointer(&C.sw_stack_names[i][0])), len(C.sw_stack_names[i]))
	name[copy(name[:len(name)-1], from.Name)] = 0
	C.sw_stacks[i] = C.seedwalk_stack{
		size:  C.uint32_t(unsafe.Sizeof(C.sw_stacks[i])),
		count: C.int32_t(len(frames)), frames: s.rows[i].first,
		thread_name: &C.sw_stack_names[i][0], thread: C.uint64_t(from.Thread.ID),
		os_thread: C.uint64_t(from.Thread.TID),
		time_ns:   C.uint64_t(from.Unix), cpu_ns: C.uint64_t(from.CPU), gap: C.int32_t(from.Merged.Gap),
		doubtful: C.int32_t(from.Merged.Doubtful), waiting: C.int32_t(from.Merged.Probe),
		hresult: C.uint32_t(from.HRESULT),
		sources: sources, addresses: s.rows[i].addresses,
	}
	C.sw_stack_count++
}

// of returns room for n frames.
func (r *rows) of(n int) (frames []C.seedwalk_named_frame, addresses []C.uint64_t) {
	if n > r.room {
		C.free(unsafe.Pointer(r.first))
		C.free(unsafe.Pointer(r.sources))
		C.free(unsafe.Pointer(r.addresses))
		r.room, r.sources = n+n/2, nil
		r.first = (*C.seedwalk_named_frame)(C.calloc(C.size_t(r.room), C.size_t(unsafe.Sizeof(*r.first))))
		r.addresses = (*C.uint64_t)(C.calloc(C.size_t(r.room), C.size_t(unsafe.Sizeof(*r.addresses))))
	}
	return unsafe.Slice(r.first, n), unsafe.Slice(r.addresses, n)
}

// within returns a frame's ip in its module's own numbers, 0 outside modules.
func within(f *merge.Frame, t *module.Table) uint64 {
	if f.Module < 0 {
		return 0
	}
	return f.IP - t.At(int(f.Module)).Bias
}

func (s *sampler) frame(to *C.seedwalk_named_frame, f *merge.Frame, t *module.Table) {
	to.frame = C.seedwalk_frame{ip: C.uint64_t(f.IP), sp: C.uint64_t(f.SP), fp: C.uint64_t(f.FP),
		function: C.uint64_t(f.Function),
		kind:     C.uint8_t(f.Kind), trust: C.uint8_t(f.Trust), gap: C.uint8_t(f.Gap),
		exact: C.uint8_t(flag(f.Exact))}
	to.method, to.path, to.build_id = s.none, s.none, s.none
	if f.Module >= 0 {
		m := t.At(int(f.Module))
		to.frame.module = C.int32_t(m.ID)
		known := s.module(m)
		to.path, to.build_id = known.first, known.second
		if f.Function == 0 {
			to.method = s.natives.name(m, unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup())
		}
	}
	if f.Function != 0 {
		known := s.method(f.Function)
		to.method, to.path = known.first, known.second
	}
}

func (s *sampler) module(m *module.Module) texts {
	t, ok := s.modules[m.ID]
	if !ok {
		t = texts{C.CString(m.Path), C.CString(m.BuildID)}
		s.modules[m.ID] = t
	}
	return t
}

func (s *sampler) method(f clr.FunctionID) texts {
	t, ok := s.methods[f]
	if !ok {
		name, module := s.agent.Name(f)
		t = texts{C.CString(name), C.CString(module)}
		s.methods[f] = t
	}
	return t
}

// copiedRegisters are the registers that a thread records of itself, as bits by their UNWIND_INFO numbers:
// those that a function of Windows must preserve.
const copiedRegisters = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 0xf<<12

// copies are agent.Copies over the C pool.
type copies struct {
	s *sampler
}

func (copies) Len() int { return C.SW_COPIES }

func (p copies) At(i int, c *clr.Capture) bool {
	from := C.sw_copy_take(C.int(i))
	if from == nil || int(C.sw_stack_count) == len(p.s.rows) {
		return false
	}
	c.Status, c.Result, c.Truncated = clr.Captured, clr.E_FAIL, from.truncated != 0
	c.Thread = clr.Thread{ID: clr.ThreadID(from.thread_id), TID: uint64(from.tid),
		StackLow: uint64(from.stack_low), StackHigh: uint64(from.stack_high)}
	c.Regs.Arch = context.ArchAMD64
	c.Regs.AMD64.RIP = uint64(from.regs[0])
	for k := range c.Regs.AMD64.GPR {
		c.Regs.AMD64.GPR[k] = uint64(from.regs[1+k])
	}
	c.Regs.AMD64.Known = copiedRegisters
	c.Stack = memory.Run{Addr: uint64(from.stack_addr),
		Data: unsafe.Slice((*byte)(from.stack), int(from.stack_len))}
	p.s.tag = from.tag
	return true
}

func (copies) Done(i int) { C.sw_copy_done(C.sw_copy_take(C.int(i))) }

// takeCopy records the stack of a copy without its first frame, which is seedwalk_sampler_copy itself.
func (s *sampler) takeCopy(from *agent.Stack) {
	if len(from.Frames) > 0 {
		from.Frames = from.Frames[1:]
	}
	i := C.sw_stack_count
	s.take(from)
	if C.sw_stack_count != i {
		C.sw_stacks[i].tag = s.tag
	}
}

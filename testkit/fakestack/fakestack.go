// Package fakestack builds small suspended worlds for tests of seed, merge and the sampler, for x86-64 and
// ARM64: native functions with call frame information, managed functions with frame pointers, a stack of
// their frames, the CLR's report of it, and the true frames. It writes its bytes itself and shares no code
// with the readers.
package fakestack

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Kind is a kind of function.
type Kind uint8

const (
	Native    Kind = iota // call frame information from the stack pointer, no frame pointer
	Managed               // reported by the CLR
	Hidden                // managed, known to FunctionFromIP, not reported
	ILStub                // in managed memory, unknown to FunctionFromIP
	NoCFI                 // in the native module, without unwind data
	Root                  // native, its return address undefined
	Framed                // call frame information from the frame pointer
	Frameless             // in managed memory, unknown to FunctionFromIP, has stored nothing: on top only
)

// Addresses of the world.
const (
	nativeText  = 0x7f0000000000
	fnSize      = 0x100
	managedText = 0x7e0000000000
	StackHigh   = 0x7ffd00100000
	StackLow    = StackHigh - 0x10000
)

const natives, managedFns = 64, 64

// Frame is one true frame.
type Frame struct {
	Kind       Kind
	IP, SP, FP uint64
	Slot       uint64 // where its return address is stored, 0 if nowhere
	Function   clr.FunctionID
	Exact      bool
}

// World is a stack with its registers, module table, and true frames.
type World struct {
	Arch    context.Arch
	Capture clr.Capture
	Table   *module.Table
	Truth   []Frame // leaf first
	ips     map[uint64]clr.FunctionID
}

// Build makes the stack of the functions kinds on x86-64: see BuildFor.
func Build(kinds ...Kind) *World { return BuildFor(context.ArchAMD64, kinds...) }

// builder lays frames, root first.
type builder struct {
	data   []byte
	sp, fp uint64
	lr     uint64 // return address of the next frame; 0: it is the root
}

func (b *builder) put(addr, v uint64) { binary.LittleEndian.PutUint64(b.data[addr-StackLow:], v) }

// BuildFor makes the stack of the functions kinds on an architecture, root first. Each entry of the list is a
// separate function. Those that are Managed or Hidden have FunctionID 0x1000+i.
func BuildFor(a context.Arch, kinds ...Kind) *World {
	w := &World{Arch: a, Table: TableFor(a, 1), ips: map[uint64]clr.FunctionID{}}
	b := builder{data: make([]byte, StackHigh-StackLow), sp: StackHigh - 64}
	truth := make([]Frame, len(kinds))
	for i, k := range kinds {
		f := Frame{Kind: k, IP: address(k, i) + 0x20, Exact: i == len(kinds)-1}
		if a == context.ArchARM64 {
			f.Slot = b.arm64Frame(k)
		} else {
			f.Slot = b.amd64Frame(k)
		}
		f.SP, f.FP = b.sp, b.fp
		if k == Managed || k == Hidden {
			f.Function = clr.FunctionID(0x1000 + i)
			w.ips[f.IP] = f.Function
		}
		truth[len(kinds)-1-i] = f
		if !f.Exact {
			b.lr = f.IP
		}
	}
	w.Truth = truth
	w.capture(&b)
	return w
}

// capture fills w.Capture as of the moment at which the leaf is interrupted.
func (w *World) capture(b *builder) {
	leaf, c := w.Truth[0], &w.Capture
	c.Thread = clr.Thread{ID: 0x77, TID: 7, StackLow: StackLow, StackHigh: StackHigh}
	c.Status = clr.Captured
	if w.Arch == context.ArchARM64 {
		arm64Registers(c, &leaf, b.lr)
	} else {
		amd64Registers(c, &leaf)
	}
	c.Stack = memory.Run{Addr: leaf.SP, Data: b.data[leaf.SP-StackLow:]}
	c.Frames, c.Result = report(w.Truth)
}

func address(k Kind, i int) uint64 {
	switch k {
	case Native:
		return nativeText + uint64(i)*fnSize
	case Root:
		return nativeText + (natives-1)*fnSize
	case NoCFI:
		return nativeText + (natives+uint64(i))*fnSize
	case Framed:
		return nativeText + (2*natives+uint64(i))*fnSize
	}
	return managedText + uint64(i)*fnSize
}

// hasPointer reports whether a function of kind k keeps a frame pointer.
func hasPointer(k Kind) bool {
	return k == Managed || k == Hidden || k == ILStub || k == NoCFI || k == Framed
}

// report is what DoStackSnapshot would report: the managed frames, and one marker for each block of other
// frames between or below them. A marker has the context of the block's first frame.
func report(truth []Frame) ([]clr.SnapshotFrame, clr.HRESULT) {
	var out []clr.SnapshotFrame
	open := false
	for _, f := range truth {
		switch {
		case f.Kind == Managed:
			out = append(out, clr.SnapshotFrame{Function: f.Function, IP: f.IP, SP: f.SP, FP: f.FP})
			open = true
		case f.Kind == Hidden:
		case open:
			out = append(out, clr.SnapshotFrame{IP: f.IP, SP: f.SP, FP: f.FP})
			open = false
		}
	}
	if len(out) == 0 {
		return nil, clr.E_FAIL
	}
	return out, clr.S_OK
}

// FunctionFromIP knows the managed and hidden frames of the world.
func (w *World) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if f, ok := w.ips[ip]; ok {
		return f, clr.S_OK
	}
	return 0, clr.E_FAIL
}

// UnwindKind returns the kind that f has in a merged stack.
func (f *Frame) UnwindKind() unwind.Kind {
	switch f.Kind {
	case Managed, Hidden:
		return unwind.KindManaged
	case ILStub, Frameless:
		return unwind.KindStub
	}
	return unwind.KindNative
}

// Table is TableFor x86-64.
func Table(gen uint32) *module.Table { return TableFor(context.ArchAMD64, gen) }

// Table is the module table of every world of an architecture.
func TableFor(a context.Arch, gen uint32) *module.Table {
	t := frames(a, nativeText+0x100000)
	mods := []module.Module{{ID: 1, Start: nativeText, End: nativeText + 3*natives*fnSize,
		Path: "/lib/native.so", CFI: t}}
	return module.NewTable(gen, mods,
		[]memory.Range{{Start: managedText, End: managedText + managedFns*fnSize}})
}

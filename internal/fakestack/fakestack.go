// Package fakestack builds small suspended worlds for tests of seed, merge and
// the sampler: native functions with call frame information, managed functions
// with frame pointers, a stack made of their frames, what the CLR would report
// of it, and the true frames. It writes its bytes itself and shares no code
// with the readers.
package fakestack

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// Kind is a kind of function.
type Kind uint8

const (
	Native  Kind = iota // call frame information, saves rbp, no frame pointer
	Managed             // reported by the CLR
	Hidden              // managed, known to FunctionFromIP, not reported
	ILStub              // in managed memory, unknown to FunctionFromIP
	NoCFI               // in the native module, without unwind data
	Root                // native, its return address undefined
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
	Function   clr.FunctionID
	Exact      bool
}

// World is a stack with all that is known of it.
type World struct {
	Capture clr.Capture
	Table   *module.Table
	Truth   []Frame // leaf first
	ips     map[uint64]clr.FunctionID
}

// Build makes the stack of the functions kinds, root first. Function i of the
// list is a function of its own; every managed one has FunctionID 0x1000+i.
func Build(kinds ...Kind) *World {
	w := &World{Table: Table(1), ips: map[uint64]clr.FunctionID{}}
	data := make([]byte, StackHigh-StackLow)
	put := func(addr, v uint64) { binary.LittleEndian.PutUint64(data[addr-StackLow:], v) }
	sp, fp := uint64(StackHigh-64), uint64(0)
	truth := make([]Frame, len(kinds))
	for i, k := range kinds {
		f := Frame{Kind: k, IP: address(k, i) + 0x20, Exact: i == len(kinds)-1}
		sp -= 8
		put(sp, fp) // push rbp
		if k == Managed || k == Hidden || k == ILStub || k == NoCFI {
			fp = sp
			sp -= 16
		}
		f.SP, f.FP = sp, fp
		if k == Managed || k == Hidden {
			f.Function = clr.FunctionID(0x1000 + i)
			w.ips[f.IP] = f.Function
		}
		truth[len(kinds)-1-i] = f
		sp -= 8
		put(sp, f.IP) // the call's return address
	}
	w.Truth = truth
	leaf := truth[0]
	c := &w.Capture
	c.Thread = clr.Thread{ID: 0x77, TID: 7, StackLow: StackLow, StackHigh: StackHigh}
	c.Status = clr.Captured
	c.Regs.RIP, c.Regs.GPR[context.RSP], c.Regs.GPR[context.RBP] = leaf.IP, leaf.SP, leaf.FP
	c.Regs.Known = 1<<16 - 1
	c.Stack = memory.Run{Addr: leaf.SP, Data: data[leaf.SP-StackLow:]}
	c.Frames, c.Result = report(truth)
	return w
}

func address(k Kind, i int) uint64 {
	switch k {
	case Native:
		return nativeText + uint64(i)*fnSize
	case Root:
		return nativeText + (natives-1)*fnSize
	case NoCFI:
		return nativeText + (natives+uint64(i))*fnSize
	}
	return managedText + uint64(i)*fnSize
}

// report is what DoStackSnapshot would say: managed frames, and a marker with
// the context of the first frame of every other block below the first one.
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

// FunctionFromIP answers for the frames of the world.
func (w *World) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	if f, ok := w.ips[ip]; ok {
		return f, clr.S_OK
	}
	return 0, clr.E_FAIL
}

// UnwindKind is the kind a merged frame of f has.
func (f *Frame) UnwindKind() unwind.Kind {
	switch f.Kind {
	case Managed, Hidden:
		return unwind.KindManaged
	case ILStub:
		return unwind.KindStub
	}
	return unwind.KindNative
}

// Table is the module table of every world.
func Table(gen uint32) *module.Table {
	sec := cie()
	for i := range uint64(natives - 1) {
		sec = append(sec, fde(len(sec), nativeText+i*fnSize, []byte{0x0e, 16, 0x86, 2})...)
	}
	// The root: its caller's return address (column 16) is undefined.
	sec = append(sec, fde(len(sec), nativeText+(natives-1)*fnSize, []byte{0x0e, 16, 0x07, 16})...)
	sec = append(sec, 0, 0, 0, 0)
	const addr = nativeText + 0x100000
	t, err := cfi.Load(cfi.Sections{Arch: cfi.AMD64, EHFrame: sec, EHFrameAddr: addr})
	if err != nil {
		panic(err)
	}
	mods := []module.Module{{ID: 1, Start: nativeText, End: nativeText + 2*natives*fnSize, Path: "/lib/native.so", CFI: t}}
	return module.NewTable(gen, mods, []module.Range{{Start: managedText, End: managedText + managedFns*fnSize}})
}

func record(body []byte) []byte {
	for len(body)%8 != 4 {
		body = append(body, 0) // DW_CFA_nop
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// cie: version 1, "zR", factors 1 and -8, RA 16, absolute pointers; CFA=rsp+8,
// RA at CFA-8.
func cie() []byte {
	return record([]byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1})
}

func fde(at int, lo uint64, program []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(at+4)) // the CIE is at 0
	b = binary.LittleEndian.AppendUint64(b, lo)
	b = binary.LittleEndian.AppendUint64(b, fnSize)
	return record(append(append(b, 0), program...))
}

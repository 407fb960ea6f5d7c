package walk

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// A runtime of ARM64 with two methods and a hijack stub.
const (
	armMethods = 0x7d00_0000_0000 // a method each 0x100 bytes
	armRecord  = armMethods + 0x8000
	armModule  = 0x5000_0000
	armStub    = armModule + 0x1000
	armStack   = 0x7000_0000
	armReturn  = armMethods + 0x100 + 12 // in the second method, behind its call
)

// methodCode: stp x29, x30, [sp, #-32]!; mov x29, sp; bl; ldp x29, x30, [sp], #32; ret.
var methodCode = []uint32{0xa9be7bfd, 0x910003fd, 0x94000001, 0xa8c27bfd, 0xd65f03c0}

// methodRecord has one epilog, of two instructions: set_fp, save_fplr_x of 32, end.
var methodRecord = []uint32{5 | 1<<22 | 1<<27, 3 | 1<<22, 0xe3e483e1}

type armRuntime struct{ *managed.Tables }

func (armRuntime) Function(at unwind.Address) (clr.FunctionID, bool) {
	off := at.Lookup() - armMethods
	return clr.FunctionID(1 + off>>8), off < 0x200
}

type armSource struct{}

func (armSource) Code(at unwind.Address, c *managed.Code) unwind.Stop {
	off := at.IP - armMethods
	if off >= 0x200 {
		return unwind.NoInfo
	}
	*c = managed.Code{Kind: managed.Method, Base: armMethods,
		EntryARM64: arm64.RuntimeFunction{Begin: uint32(off) &^ 0xff, Data: armRecord - armMethods}}
	return unwind.StopNone
}

func (armSource) ReadAt(b []byte, addr uint64) bool {
	word := func(at uint64) uint32 {
		switch i := at & 0xff / 4; {
		case at >= armRecord && at-armRecord < 12:
			return methodRecord[(at-armRecord)/4]
		case at-armMethods < 0x200 && i < uint64(len(methodCode)):
			return methodCode[i]
		}
		return 0
	}
	for i := range b {
		at := addr + uint64(i)
		b[i] = byte(word(at&^3) >> (at & 3 * 8))
	}
	return true
}

func (armSource) Arch() context.Arch { return context.ArchARM64 }
func (armSource) Unix() bool         { return true }

// armWalker knows the stub, whose code is stp x29, x30, [sp, #-192]!; mov x29, sp.
func armWalker(t *testing.T) *Walker {
	t.Helper()
	cie, frames := elfasm.ARM64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, armStub-armModule, 0x60, 0x44, 0x0e, 0xc0, 1, 0x9d, 24, 0x9e, 23, 0x44, 0x0d, 29)
	rows := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	w := New(context.ArchARM64)
	w.Unmanaged.SetTable(module.NewTable(1,
		[]module.Module{{Start: armModule, End: armModule + 0x10000, Bias: armModule, CFI: rows}}, nil))
	w.Code, w.HijackStub = armRuntime{managed.New(armSource{})}, armStub
	return w
}

// A walk shows the true return address if the runtime has replaced one by its stub, wherever that is: in its
// slot, in x30, or saved by the stub.
func TestReplacedReturnARM64(t *testing.T) {
	const inBody, atReturn = armMethods + 12, armMethods + 16
	const caller = armStack + 0x100 // the second method's frame
	for _, c := range []struct {
		name   string
		pc     uint64
		sp     uint64
		lr     uint64
		words  map[uint64]uint64
		slot   uint64 // that the Thread names, 0: none
		frames []uint64
	}{
		{"in the slot", inBody, caller - 32, 7, map[uint64]uint64{caller - 32: caller, caller - 24: armStub},
			caller - 24, []uint64{inBody, armReturn}},
		{"in x30, in an epilog", atReturn, caller, armStub, nil, caller - 24, []uint64{atReturn, armReturn}},
		{"in x30, in a prolog", armMethods, caller, armReturn, nil, 0, []uint64{armMethods, armReturn}},
		{"at the stub's begin", armStub, caller, armStub, nil, caller - 24, []uint64{armStub, armReturn}},
		{"saved by the stub", armStub + 8, caller - 192, armStub,
			map[uint64]uint64{caller - 192: caller, caller - 184: armStub}, caller - 24,
			[]uint64{armStub + 8, armReturn}},
		{"the stub has learnt it", armStub + 8, caller - 192, armStub,
			map[uint64]uint64{caller - 192: caller, caller - 184: armReturn}, 0,
			[]uint64{armStub + 8, armReturn}},
		{"the Thread says nothing", inBody, caller - 32, 7,
			map[uint64]uint64{caller - 32: caller, caller - 24: armStub}, 0, []uint64{inBody}},
		{"the Thread speaks of a slot far below", atReturn, caller, armStub, nil,
			caller - 0x2000, []uint64{atReturn}},
		{"the Thread speaks of a slot above", atReturn, caller, armStub, nil, caller + 8, []uint64{atReturn}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stack, extra := make([]byte, 0x200), make([]byte, 256)
			le := binary.LittleEndian
			for at, v := range c.words {
				le.PutUint64(stack[at-armStack:], v)
			}
			if c.slot != 0 {
				le.PutUint64(extra[192:], armReturn)
				le.PutUint64(extra[200:], c.slot)
			}
			g := context.ARM64{PC: c.pc, Sp: c.sp, Known: 1<<31 - 1 | 0xff<<32}
			g.X[29], g.X[30] = c.sp, c.lr
			if c.sp == caller {
				g.X[29] = caller
			}
			w := armWalker(t)
			got, gap, _ := w.Walk(&Capture{Regs: context.FromARM64(g),
				Stack: memory.Run{Addr: armStack, Data: stack}, Low: armStack,
				High: armStack + 0x200, Extra: extra})
			whole := len(c.frames) == 2
			expect.Equal(t, gap == merge.GapNone, whole, "gap %v", gap)
			if !whole {
				got = got[:len(got)-1] // the gap
			}
			for i := range got {
				must.True(t, len(got) == len(c.frames) && got[i].IP == c.frames[i],
					"%d frames, the %d. at %#x, want %#x", len(got), i, got[i].IP, c.frames)
			}
		})
	}
}

// A Walker that has met no deep stack is small: the agent has one for each process. One that meets
// a deep stack has room for it, up to the bound.
func TestWalkerSize(t *testing.T) {
	const most = 512 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := New(context.ArchAMD64)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > most {
		t.Errorf("%d bytes, of %d", n, most)
	}
	n := 0
	for w.put(merge.Frame{IP: uint64(n)}) {
		n++
	}
	w.put(merge.Frame{Kind: unwind.KindGap})
	expect.True(t, n == maxFrames-1 && w.n == maxFrames && w.out[n-1].IP == uint64(n-1) &&
		w.out[n].Kind == unwind.KindGap, "%d frames of %d, %d with the gap", n, maxFrames, w.n)
}

// A handler whose return address is still on top of the stack has not started, and is not part of the
// thread's work.
func TestBegun(t *testing.T) {
	const stack, restorer, handler, code = 0x7000, 0x1000, 0x2000, 0x3000
	entered := func(sp uint64) []merge.Frame {
		return []merge.Frame{{IP: handler, SP: sp, Exact: true},
			{IP: restorer, SP: sp + 8, Kind: unwind.KindSignal}}
	}
	below := merge.Frame{IP: code, SP: stack + 32, Exact: true, Kind: unwind.KindManaged}
	changed := func(frames []merge.Frame, change func(f *merge.Frame)) []merge.Frame {
		change(&frames[0])
		return append(frames, below)
	}
	for _, c := range []struct {
		name   string
		frames []merge.Frame
		left   int
	}{
		{"at its first instruction", append(entered(stack), below), 1},
		{"one on another", append(append(entered(stack), entered(stack+16)...), below), 1},
		{"that has pushed a register", append(entered(stack+8), below), 3},
		{"that has called", changed(entered(stack), func(f *merge.Frame) { f.Exact = false }), 3},
		{"of managed code", changed(entered(stack), func(f *merge.Frame) { f.Kind = unwind.KindManaged }), 3},
		{"beyond the copy", append(entered(stack+0x1000), below), 3},
		{"with nothing below", entered(stack), 2},
		{"no signal", []merge.Frame{{IP: handler, SP: stack, Exact: true},
			{IP: restorer, SP: stack + 8}, below}, 3},
	} {
		w := New(context.ArchAMD64)
		var data []byte
		for _, word := range []uint64{restorer, 7, restorer, 7} {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		w.mem.Reset(stack, data)
		got := w.dropUnstarted(c.frames)
		expect.True(t, len(got) == c.left && int(w.SkippedHandlers) == (len(c.frames)-c.left)/2 &&
			got[len(got)-1] == c.frames[len(c.frames)-1],
			"a handler %s: %d frames are left, want %d; %d counted", c.name, len(got), c.left,
			w.SkippedHandlers)
	}
}

// Managed code has called a function that is newer than the module table and has saved a register with an
// address in managed code. If the runtime's stub is known, the function's return address does not count as
// the stub.
func TestNewerCode(t *testing.T) {
	const image, jit, newer, stack, stub = 0x1000_0000, 0x9000_0000, 0x9100_0000, 0x7000, 0x1000_0800
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, 0x100, 0x40, 0x0e, 16) // DW_CFA_def_cfa_offset: it has pushed a register
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	var data []byte
	for _, word := range []uint64{jit + 0x10, newer, 0, 0} {
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	for _, c := range []struct {
		name       string
		stub, want uint64
	}{
		{"a stub that is not known", 0, jit + 0x10},
		{"one that is", stub, newer},
	} {
		w := New(context.ArchAMD64)
		w.Unmanaged.SetTable(module.NewTable(1,
			[]module.Module{{Start: image, End: image + 0x1000, Bias: image, CFI: table}},
			[]memory.Range{{Start: jit, End: jit + 0x1000}}))
		w.SetStubs(c.stub, memory.Range{})
		w.mem.Reset(stack, data)
		w.Regs = context.FromAMD64(context.AMD64{RIP: image + 0x110, Known: context.AMD64All})
		w.Regs.AMD64.GPR[context.RSP] = stack
		w.at = unwind.Interrupted(&w.Regs)
		if w.native(&Capture{}); w.n == 0 || w.out[0].IP != image+0x110 || w.HijackStub != c.stub ||
			w.Regs.IP() != c.want && w.out[1].IP != c.want {
			t.Errorf("%s: %d frames, to %#x", c.name, w.n, w.Regs.IP())
		}
	}
}

// askedCode counts the questions to the runtime's tables.
type askedCode struct {
	managedCode
	asked int
}

func (c *askedCode) Function(unwind.Address) (clr.FunctionID, bool) {
	c.asked++
	return 0, true
}

// The runtime's tables are not asked for code of an ELF image, except in a range that the runtime made.
func TestNativeNotAsked(t *testing.T) {
	const image, mapped, precompiled, outside = 0x1000_0000, 0x1000_0800, 0x1800_0000, 0x2000_0000
	w, code := New(context.ArchAMD64), &askedCode{}
	w.Code = code
	w.Unmanaged.SetTable(module.NewTable(1, []module.Module{
		{Start: image, End: image + 0x1000, ELF: &elf.File{}},
		{Start: precompiled, End: precompiled + 0x1000}},
		[]memory.Range{{Start: mapped, End: mapped + 0x100}}))
	for _, c := range []struct {
		ip    uint64
		asked int
	}{{image + 0x10, 0}, {mapped + 0x10, 1}, {precompiled + 0x10, 1}, {outside, 1}} {
		code.asked = 0
		w.Regs = context.FromAMD64(context.AMD64{RIP: c.ip})
		w.at = unwind.Interrupted(&w.Regs)
		if managed := w.isManaged(); managed != (c.asked > 0) || code.asked != c.asked {
			t.Errorf("%#x: managed %v, asked %d times", c.ip, managed, code.asked)
		}
	}
}

// unreadCode is the code of a runtime whose tables are missing in a core.
type unreadCode struct{ managedCode }

func (unreadCode) Function(unwind.Address) (clr.FunctionID, bool) { return 0, false }

// A method whose description a core lacks is left by its frame pointer, and its callers are doubtful. A
// return address below the frame pointer may be the method's own, so the walk ends.
func TestUnread(t *testing.T) {
	const stack, jit, image = 0x7000, 0x9000_0000, 0x1000_0000
	const sp, fp = stack + 8, stack + 24 // of the frame
	words := func(local, ra uint64) []uint64 { return []uint64{0, local, 7, stack + 64, ra} }
	for _, c := range []struct {
		name   string
		stack  []uint64
		change func(w *Walker)
		want   bool
	}{
		{"a frame", words(7, jit+0x20), nil, true},
		{"a frame below native code", words(7, image+0x20), nil, true},
		{"another return address", words(jit+0x30, jit+0x20), nil, false},
		{"an address elsewhere", words(jit+0x30000, jit+0x20), nil, true},
		{"a caller elsewhere", words(7, jit+0x30000), nil, false},
		{"no caller", words(7, 0), nil, false},
		{"words that are not copied", words(7, jit+0x20)[:4], nil, false},
		{"an interrupted frame", words(7, jit+0x20), func(w *Walker) { w.at.Exact = true }, false},
		{"an unknown RBP", words(7, jit+0x20),
			func(w *Walker) { w.Regs.AMD64.Known &^= 1 << context.RBP }, false},
		{"an odd RBP", words(7, jit+0x20), func(w *Walker) { w.Regs.AMD64.GPR[context.RBP]++ }, false},
		{"RBP below the frame", words(7, jit+0x20),
			func(w *Walker) { w.Regs.AMD64.GPR[context.RBP] = stack }, false},
		{"the end of the stack", words(7, jit+0x20), func(w *Walker) { w.bounds.High = fp + 8 }, false},
		{"code that is described", words(7, jit+0x20),
			func(w *Walker) { w.Regs.AMD64.RIP = jit + 0x30000 }, false},
		{"a process", words(7, jit+0x20), func(w *Walker) { w.Missing = nil }, false},
	} {
		w := New(context.ArchAMD64)
		w.Code = unreadCode{}
		w.Missing = func(ip uint64) bool { return ip >= jit && ip < jit+0x1000 }
		w.Unmanaged.SetTable(module.NewTable(1, []module.Module{
			{Start: image, End: image + 0x1000, ELF: &elf.File{}}}, nil))
		var data []byte
		for _, word := range c.stack {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		w.mem.Reset(stack, data)
		w.Regs = context.FromAMD64(context.AMD64{RIP: jit + 0x10, Known: context.AMD64All})
		w.Regs.AMD64.GPR[context.RSP], w.Regs.AMD64.GPR[context.RBP] = sp, fp
		w.at = unwind.Interrupted(&w.Regs)
		if w.at.Exact = false; c.change != nil {
			c.change(w)
		}
		before := w.Regs.AMD64
		ok := w.stepUnread()
		after := &w.Regs.AMD64
		switch {
		case ok != c.want:
			t.Errorf("%s: %v, want %v", c.name, ok, c.want)
		case !ok && *after != before:
			t.Errorf("%s: registers have changed", c.name)
		case ok && (after.RIP != c.stack[4] || after.SP() != fp+16 || after.FP() != stack+64 ||
			!w.at.Trust.Doubtful() || w.n != 1 || w.out[0].Kind != unwind.KindManaged):
			t.Errorf("%s: %+v, %d frames", c.name, after, w.n)
		}
	}
}

// The runtime's function that restores a context loads all registers. Its call frame information describes
// none of this, so the walk uses the words that it has not changed: the pushed RBP and the return address.
func TestRestore(t *testing.T) {
	const image, restore, stack, ra, saved = 0x1000_0000, 0x1000_0100, 0x7000, 0x1000_0800, 0x7100
	for _, c := range []struct {
		name string
		ip   uint64
		sp   uint64
		left bool
	}{
		{"after the push", restore + 1, stack, true},
		{"at the load of RSP", restore + 0x90, stack, true},
		{"after it", restore + 0x91, stack, false},
		{"before the push", restore, stack, false},
		{"a stack that is not copied", restore + 1, stack + 8, false},
	} {
		w := New(context.ArchAMD64)
		w.Unmanaged.SetTable(module.NewTable(1, []module.Module{
			{Start: image, End: image + 0x1000, Bias: image, ELF: &elf.File{}}}, nil))
		w.SetStubs(0, memory.Range{Start: restore + 1, End: restore + 0x91})
		var data []byte
		for _, word := range []uint64{saved, ra} {
			data = binary.LittleEndian.AppendUint64(data, word)
		}
		regs := context.FromAMD64(context.AMD64{RIP: c.ip, Known: context.AMD64All})
		regs.AMD64.GPR[context.RSP], regs.AMD64.GPR[context.RBP] = c.sp, 0x5555
		frames, _, _ := w.Walk(&Capture{Regs: regs, Stack: memory.Run{Addr: stack, Data: data}})
		left := len(frames) > 1 && frames[1].IP == ra && frames[1].SP == stack+16 &&
			w.Regs.AMD64.FP() == saved && !frames[1].Trust.Doubtful()
		expect.True(t, left == c.left && frames[0].IP == c.ip && frames[0].Module == 0 && frames[0].Exact,
			"%s: left %v: %+v", c.name, left, frames)
	}
}

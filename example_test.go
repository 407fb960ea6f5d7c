package seedwalk_test

import (
	"encoding/binary"
	"fmt"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// stopped returns a made-up stopped thread and its process, so that the examples run on any system. In a real
// program, live.NewLoader(pid).Table(maps) returns the table. The registers come from ptrace(2) or
// GetThreadContext through context.Read, and the stack from live.OpenProcess or ReadProcessMemory.
func stopped(frames ...fakestack.Kind) *fakestack.World { return fakestack.Build(frames...) }

// Unmanaged frames of a stopped thread.
func Example_unwind() {
	w := stopped(fakestack.Root, fakestack.Native, fakestack.Framed, fakestack.Native)
	thread := &w.Capture

	u := walker.New(context.ArchAMD64)
	u.SetTable(w.Table)

	regs := thread.Regs
	at := unwind.Interrupted(&regs)
	window := memory.New(thread.Stack)
	bounds := unwind.Bounds{Low: thread.Thread.StackLow, High: thread.Thread.StackHigh}
	var frames [64]unwind.Frame
	r := u.Walk(&at, window, &bounds, frames[:])

	for _, f := range frames[:r.N] {
		fmt.Printf("%#x sp %#x found by %v\n", f.IP, f.SP, f.Trust)
	}
	fmt.Println(r.Stop)
	// Output:
	// 0x7f0000000320 sp 0x7ffd000fff78 found by context
	// 0x7f0000008220 sp 0x7ffd000fff88 found by cfi
	// 0x7f0000000120 sp 0x7ffd000fffa8 found by cfi
	// 0x7f0000003f20 sp 0x7ffd000fffb8 found by cfi
	// end-of-stack
}

// A seed for DoStackSnapshot from the CONTEXT of a thread that was suspended in
// unmanaged code.
func Example_seed() {
	w := stopped(fakestack.Root, fakestack.Managed, fakestack.Native, fakestack.Native)
	captured := make([]byte, context.Win32AMD64.Size())
	if err := context.Write(context.Win32AMD64, captured, &w.Capture.Regs); err != nil {
		fmt.Println(err)
		return
	}

	regs, err := context.Read(context.Win32AMD64, captured) // what GetThreadContext filled in
	if err != nil {
		fmt.Println(err)
		return
	}
	u := walker.New(context.ArchAMD64)
	u.SetTable(w.Table)
	at := unwind.Interrupted(&regs)
	bounds := unwind.Bounds{Low: w.Capture.Thread.StackLow, High: w.Capture.Thread.StackHigh}
	var above [64]unwind.Frame
	var specials *managed.Specials // of a Windows process: see the type; nil = none
	o := seed.Find(specials, u, &at, memory.New(w.Capture.Stack), &bounds, above[:], new(seed.Witness))

	fmt.Println(o.Verdict, "below", o.Frames, "unmanaged frames")
	if o.Verdict.Usable() {
		err := context.Write(context.Win32AMD64, captured, &regs) // hand this to DoStackSnapshot
		fmt.Printf("seed at %#x, sp %#x, %v\n", regs.IP(), regs.SP(), err)
	}
	// Output:
	// found below 2 unmanaged frames
	// seed at 0x7e0000000120, sp 0x7ffd000fff98, <nil>
}

// One stack of the CLR's frames and the walker's.
func Example_merge() {
	// The copies that were made while the thread was stopped: registers, stack, and the frames that
	// DoStackSnapshot reported.
	w := stopped(fakestack.Root, fakestack.Native, fakestack.Managed, fakestack.ILStub, fakestack.Native)

	m := merge.New(walker.New(context.ArchAMD64), w) // w answers FunctionFromIP, as ICorProfilerInfo does
	m.SetTable(w.Table)
	out := make([]merge.Frame, 256)
	r := m.Merge(&w.Capture, out)

	for _, f := range out[:r.N] {
		fmt.Printf("%-8v %#x method %#x by %v\n", f.Kind, f.IP, uint64(f.Function), f.Trust)
	}
	fmt.Println("complete:", r.Complete())
	// Output:
	// native   0x7f0000000420 method 0x0 by context
	// stub     0x7e0000000320 method 0x0 by cfi
	// managed  0x7e0000000220 method 0x1002 by clr
	// native   0x7f0000000120 method 0x0 by clr
	// native   0x7f0000003f20 method 0x0 by cfi
	// complete: true
}

// The unwind data of a function in a PE image.
func Example_peUnwindData() {
	f, err := pe.New(image(), "example.dll") // or pe.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fn, why := f.AMD64().Find(0x1010)
	info, fault := f.AMD64().Info(fn.Unwind)
	if why != peamd64.OK || !fault.OK() {
		fmt.Println(why, fault.Reason)
		return
	}
	fmt.Printf("[%#x,%#x) prolog of %d bytes\n", fn.Begin, fn.End, info.Prolog)
	_, codes := info.Epilogs()
	for len(codes) > 0 {
		c, why := info.Code(codes)
		if why != peamd64.OK {
			fmt.Println(why)
			return
		}
		fmt.Printf("+%d %v info %d operand %d\n", c.Offset, c.Op, c.Info, c.Operand)
		codes = codes[c.Size():]
	}
	// Output:
	// [0x1000,0x102b) prolog of 5 bytes
	// +5 ALLOC_SMALL info 3 operand 32
	// +1 PUSH_NONVOL info 3 operand 8
}

// One step from a function of a PE image to its caller, with given registers and memory.
func Example_peStep() {
	f, err := pe.New(image(), "example.dll")
	if err != nil {
		fmt.Println(err)
		return
	}
	const base, sp = 0x180000000, 0x10000
	stack := make([]byte, 64)
	binary.LittleEndian.PutUint64(stack[32:], 7)           // the caller's rbx, after 32 bytes of locals
	binary.LittleEndian.PutUint64(stack[40:], base+0x1020) // the return address
	regs := context.FromAMD64(context.AMD64{RIP: base + 0x1010, Known: context.AMD64All})
	regs.SetSP(sp)

	u := amd64.New()
	// or module.LoadPE(1, path, base, 0)
	u.SetTable(module.NewTable(1, []module.Module{module.PEFromFile(1, f, "example.dll", base, 0)}, nil))
	at := unwind.Interrupted(&regs)
	var frame unwind.Frame
	stop := u.Step(&at, memory.New(memory.Run{Addr: sp, Data: stack}), nil, &frame) // at becomes the caller

	fmt.Printf("%#x found by %v: %v\n", frame.IP, frame.Trust, stop)
	fmt.Printf("caller %#x sp %#x rbx %d found by %v\n", regs.IP(), regs.SP(), regs.AMD64.GPR[context.RBX],
		at.Trust)
	// Output:
	// 0x180001010 found by context: none
	// caller 0x180001020 sp 0x10030 rbx 7 found by unwind-info
}

// image is push rbx; sub rsp, 32; ...; add rsp, 32; pop rbx; ret.
func image() []byte {
	text := peasm.NewSection(".text", 0x1000).Label("f").
		Bytes(0x53, 0x48, 0x83, 0xec, 0x20).Zero(0x20).
		Bytes(0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3).Label("end")
	xdata := peasm.NewSection(".xdata", 0x2000).Label("info").
		Bytes(1, 5, 2, 0, 5, 0x32, 1, 0x30) // ALLOC_SMALL 32 at +5, PUSH_NONVOL rbx at +1
	pdata := peasm.NewSection(".pdata", 0x3000).Label("pdata").AtLabel("f", "end", "info")
	return (&peasm.File{DLL: true, Sections: []*peasm.Section{text, xdata, pdata},
		Dirs: map[int]peasm.Directory{peasm.Exception: {Label: "pdata", Size: 12}}}).Bytes()
}

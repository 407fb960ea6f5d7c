package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// peEffect is what one step should do.
type peEffect struct {
	name  string
	im    *pe.File
	into  uint32         // the instruction's offset in the function
	sp    uint64         // the caller's RSP
	saved map[int]uint64 // general register -> where it is read from
	xmm   map[int]uint64 // XMM6 + key -> where it is read from
	frame uint64         // EstablisherFrame, 0 = RSP
	part  PEPart
	other func(*Registers) // more that changes
}

func (c *peEffect) check(t *testing.T) {
	t.Helper()
	regs := peRegs(peFn + c.into)
	want := regs
	res, stop := StepPE(c.im.AMD64(), unwind.Instruction(uint64(peFn+c.into)), &regs, peMemory())
	want.GPR[context.RSP], want.RIP = c.sp, word(c.sp-8)
	for reg, at := range c.saved {
		want.GPR[reg] = word(at)
	}
	for i, at := range c.xmm {
		want.XMM[i] = context.XMM{word(at), word(at + 8)}
	}
	if c.other != nil {
		c.other(&want)
	}
	want.Known = windowsKept
	frame := c.frame
	if frame == 0 {
		frame = peRSP
	}
	if stop != unwind.StopNone || res.Part != c.part || res.Frame != frame {
		t.Errorf("%s: %v %v, part %d, frame %#x", c.name, stop, res.Reason, res.Part, res.Frame)
		return
	}
	for _, volatile := range []int{context.RAX, context.RCX, context.RDX, context.R8,
		context.R9, context.R10, context.R11} {
		want.GPR[volatile] = regs.GPR[volatile]
	}
	expect.True(t, regs == want, "%s:\ngot  %x\nwant %x", c.name, regs, want)
}

func TestPECodeEffects(t *testing.T) {
	const rbp, r12 = peRSP + 0x400, peRSP + 0x600
	for _, c := range []peEffect{
		{name: "nothing has run", im: peImage(info(1, 0, 1, 0, 1, 0x50), nil), into: 0, sp: peRSP + 8},
		{name: "push", im: peImage(info(1, 0, 1, 0, 1, 0x50), nil), into: 1, sp: peRSP + 16,
			saved: map[int]uint64{context.RBP: peRSP}},
		{name: "push of r15", im: peImage(info(1, 0, 2, 0, 2, 0xf0), nil), into: 0x20, sp: peRSP + 16,
			saved: map[int]uint64{context.R15: peRSP}},
		{name: "pushes in order", im: peImage(info(1, 0, 3, 0, 3, 0x30, 1, 0x70), nil), into: 3,
			sp: peRSP + 24, saved: map[int]uint64{context.RBX: peRSP, context.RDI: peRSP + 8}},
		{name: "between pushes", im: peImage(info(1, 0, 3, 0, 3, 0x30, 1, 0x70), nil), into: 2,
			sp: peRSP + 16, saved: map[int]uint64{context.RDI: peRSP}},
		{name: "alloc small", im: peImage(info(1, 0, 4, 0, 4, 0x42), nil), into: 4, sp: peRSP + 40 + 8},
		{name: "alloc large", im: peImage(info(1, 0, 7, 0, 7, 0x01, 0x17, 0), nil),
			into: 7, sp: peRSP + 184 + 8},
		{name: "alloc large, 32 bits", im: peImage(info(1, 0, 7, 0, 7, 0x11, 0, 0x10, 1, 0), nil),
			into: 7, sp: peRSP + 0x11000 + 8},
		{name: "set frame", im: peImage(info(1, 0, 8, 0x25, 8, 3, 4, 0x42), nil), into: 8,
			sp: rbp - 0x20 + 40 + 8, frame: rbp - 0x20},
		{name: "before set frame",
			im: peImage(info(1, 0, 8, 0x25, 8, 3, 4, 0x42), nil), into: 7, sp: peRSP + 40 + 8},
		{name: "behind set frame, in the prolog", im: peImage(info(1, 0, 12, 0x25, 8, 3, 4, 0x42), nil),
			into: 9, sp: rbp - 0x20 + 40 + 8, frame: rbp - 0x20},
		{name: "frame register r12", im: peImage(info(1, 0, 8, 0x0c, 8, 3), nil),
			into: 8, sp: r12 + 8, frame: r12},
		{name: "pushes behind set frame",
			im:   peImage(info(1, 0, 10, 5, 10, 0x42, 6, 0x30, 5, 0x60, 4, 3, 1, 0x50), nil),
			into: 10, sp: rbp + 16, frame: rbp,
			saved: map[int]uint64{context.RBX: rbp - 16, context.RSI: rbp - 8, context.RBP: rbp}},
		{name: "between pushes behind set frame",
			im:   peImage(info(1, 0, 10, 5, 10, 0x42, 6, 0x30, 5, 0x60, 4, 3, 1, 0x50), nil),
			into: 5, sp: rbp + 16, frame: rbp,
			saved: map[int]uint64{context.RSI: rbp - 8, context.RBP: rbp}},
		{name: "save", im: peImage(info(1, 0, 9, 0, 9, 0x34, 3, 0, 4, 0x42), nil), into: 9, sp: peRSP + 48,
			saved: map[int]uint64{context.RBX: peRSP + 24}},
		{name: "save far", im: peImage(info(1, 0, 9, 0, 9, 0x65, 0x08, 0x10, 1, 0, 4, 0x42), nil), into: 9,
			sp: peRSP + 48, saved: map[int]uint64{context.RSI: peRSP + 0x11008}},
		{name: "save from the frame's base",
			im: peImage(info(1, 0, 12, 0x25, 12, 0x34, 3, 0, 8, 3, 4, 0x42), nil), into: 12,
			sp: rbp - 0x20 + 48, frame: rbp - 0x20, saved: map[int]uint64{context.RBX: rbp - 0x20 + 24}},
		{name: "save xmm6", im: peImage(info(1, 0, 9, 0, 9, 0x68, 2, 0, 4, 0x42), nil), into: 9,
			sp: peRSP + 48, xmm: map[int]uint64{0: peRSP + 32}},
		{name: "save xmm15 far", im: peImage(info(1, 0, 9, 0, 9, 0xf9, 0x10, 0x10, 1, 0, 4, 0x42), nil),
			into: 9, sp: peRSP + 48, xmm: map[int]uint64{9: peRSP + 0x11010}},
		{name: "save of the volatile xmm5",
			im: peImage(info(1, 0, 9, 0, 9, 0x58, 2, 0, 4, 0x42), nil), into: 9, sp: peRSP + 48},
		{name: "save of a register that is pushed too",
			im: peImage(info(1, 0, 9, 0, 9, 0x34, 3, 0, 1, 0x30), nil), into: 9, sp: peRSP + 16,
			saved: map[int]uint64{context.RBX: peRSP}},
		{name: "no codes", im: peImage(info(1, 0, 0, 0), nil), into: 0x20, sp: peRSP + 8},
		{name: "version 2 skips epilog codes", im: peImage(info(2, 0, 1, 0, 2, 0x16, 0x80, 6, 1, 0x50), nil),
			into: 0x20, sp: peRSP + 16, saved: map[int]uint64{context.RBP: peRSP}},
		{name: "chained", im: peImage(chained(0,
			peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000}, 0, 0x34, 3, 0), nil,
			pe.Block{RVA: 0x6000, Data: info(1, 0, 5, 0, 5, 0x42, 1, 0x50)}), into: 0x20, sp: peRSP + 40 + 16,
			saved: map[int]uint64{context.RBX: peRSP + 24, context.RBP: peRSP + 40}},
		{name: "chained, from its first byte",
			im: peImage(chained(0, peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000}), nil,
				pe.Block{RVA: 0x6000, Data: info(1, 0, 5, 0, 5, 0x42)}), into: 0, sp: peRSP + 48},
		{name: "chained to a parent that lies behind",
			im: peImage(chained(0, peamd64.RuntimeFunction{Begin: 0x8000, End: 0x8100, Unwind: 0x6000}), nil,
				pe.Block{RVA: 0x6000, Data: info(1, 0, 5, 0, 5, 0x42)}), into: 0, sp: peRSP + 48},
		{name: "a chained frame base holds for the parent's saves",
			im: peImage(chained(0x25, peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000}), nil,
				pe.Block{RVA: 0x6000, Data: info(1, 0, 12, 0x25, 12, 0x34, 3, 0, 8, 3, 4, 0x42)}), into: 0,
			sp: rbp - 0x20 + 48, frame: rbp - 0x20,
			saved: map[int]uint64{context.RBX: rbp - 0x20 + 24}},
		{name: "a chained frame base holds before the part's own codes",
			im: peImage(append(info(1, peamd64.UNW_FLAG_CHAININFO, 5, 0x25, 5, 0x64, 9, 0),
				entries(peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000})...), nil,
				pe.Block{RVA: 0x6000, Data: info(1, 0, 12, 0x25, 12, 0x34, 3, 0, 8, 3, 4, 0x42)}), into: 0,
			sp: rbp - 0x20 + 48, frame: rbp - 0x20,
			saved: map[int]uint64{context.RBX: rbp - 0x20 + 24}},
		{name: "chained to an indirect entry",
			im: peImage(chained(0, peamd64.RuntimeFunction{Begin: 1, End: 2, Unwind: 0x7001}), nil,
				pe.Block{RVA: 0x7000, Data: entries(peamd64.RuntimeFunction{Begin: 0x100,
					End: 0x200, Unwind: 0x6000})},
				pe.Block{RVA: 0x6000, Data: info(1, 0, 5, 0, 5, 0x42)}), into: 0, sp: peRSP + 48},
	} {
		t.Run(c.name, c.check)
	}
}

// TestPEMachineFrame: RIP and RSP come from the frame, nothing is popped, and
// the caller was interrupted.
func TestPEMachineFrame(t *testing.T) {
	for _, c := range []struct {
		name string
		info []byte
		rip  uint64
	}{
		{"without error code", info(1, 0, 4, 0, 4, 0x42, 0, 0x0a), peRSP + 40},
		{"with error code", info(1, 0, 4, 0, 4, 0x42, 0, 0x1a), peRSP + 48},
	} {
		regs := peRegs(peFn + 4)
		res, stop := StepPE(peImage(c.info, nil).AMD64(), unwind.Instruction(peFn+4), &regs, peMemory())
		expect.True(t, stop == unwind.StopNone && res.Machine && regs.RIP == word(c.rip) &&
			regs.GPR[context.RSP] == word(c.rip+24) && regs.Known == windowsKept,
			"%s: %v %+v rip %#x rsp %#x", c.name, stop, res, regs.RIP, regs.GPR[context.RSP])
	}
}

// TestPEUnixImage: the CLR's images for Unix have one more code, and functions
// preserve what System V's do.
func TestPEUnixImage(t *testing.T) {
	large := info(1, 0, 8, 0xf5, 8, 0x0b, 0x20, 0, 0, 0, 4, 0x42)
	im := peImageOf(pe.MachineAMD64^0x7b79, large, nil, nil)
	for into, frame := range map[uint32]uint64{8: peRSP + 0x400 - 0x200, 7: peRSP} {
		regs := peRegs(peFn + into)
		res, stop := StepPE(im.AMD64(), unwind.Instruction(uint64(peFn+into)), &regs, peMemory())
		expect.True(t, stop == unwind.StopNone && res.Frame == frame && regs.GPR[context.RSP] == frame+48 &&
			regs.Known == nonvolatile, "at %d: %v %+v %x", into, stop, res, regs)
	}
	regs := peRegs(peFn + 8)
	res, stop := StepPE(peImage(large, nil).AMD64(), unwind.Instruction(peFn+8), &regs, peMemory())
	expect.True(t, stop == unwind.BadInfo && res.Reason == peamd64.BadOpcode,
		"in a Windows image: %v %v", stop, res.Reason)
}

// TestPEHandler: the handler in charge is the last parent's, and none is in the
// prolog or an epilog.
func TestPEHandler(t *testing.T) {
	b := append(info(1, peamd64.UNW_FLAG_EHANDLER, 4, 0, 4, 0x42), 0x78, 0x56, 0, 0)
	im := peImage(b, []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0xc3})
	for into, want := range map[uint32]uint32{3: 0, 4: 0x5678, 5: 0} {
		regs := peRegs(peFn + into)
		res, stop := StepPE(im.AMD64(), unwind.Instruction(uint64(peFn+into)), &regs, peMemory())
		expect.True(t, stop == unwind.StopNone && res.Handler == want,
			"at %d: %v handler %#x, want %#x", into, stop, res.Handler, want)
	}
	parent := peImage(chained(0, peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000}), nil,
		pe.Block{RVA: 0x6000, Data: b})
	regs := peRegs(peFn)
	res, _ := StepPE(parent.AMD64(), unwind.Instruction(peFn), &regs, peMemory())
	expect.True(t, res.Handler == 0x5678, "the parent's handler: %#x", res.Handler)
}

// TestPEUnknown: a register whose word cannot be read becomes unknown, and an
// unknown register is not used.
func TestPEUnknown(t *testing.T) {
	regs := peRegs(peFn + 9)
	_, stop := StepPE(peImage(info(1, 0, 9, 0, 9, 0x35, 0, 0, 0, 0x10, 9, 0x79, 0, 0, 0, 0x10), nil).AMD64(),
		unwind.Instruction(peFn+9), &regs, peMemory())
	want := uint32(windowsKept) &^ (1<<context.RBX | 1<<17)
	expect.True(t, stop == unwind.StopNone && regs.Known == want,
		"saved out of reach: %v known %#x, want %#x", stop, regs.Known, want)
	for name, b := range map[string][]byte{
		"frame register":                   info(1, 0, 8, 0x25, 8, 3),
		"frame register without a code":    info(1, 0, 0, 0x25),
		"stack pointer saved out of reach": info(1, 0, 9, 0, 9, 0x45, 0, 0, 0, 0x10),
	} {
		regs := peRegs(peFn + 9)
		regs.Known &^= 1 << context.RBP
		_, stop := StepPE(peImage(b, nil).AMD64(), unwind.Instruction(peFn+9), &regs, peMemory())
		expect.True(t, stop == unwind.Unreadable, "%s: %v", name, stop)
	}
}

// TestCheckAndWalkAgree: a walk refuses unwind data that a check of the image finds
// malformed, but uses contradictory data, as Windows does.
func TestCheckAndWalkAgree(t *testing.T) {
	fn := peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: peInfo}
	short := peamd64.RuntimeFunction{Begin: peFn, End: peFn + 2, Unwind: peInfo}
	for _, c := range []struct {
		name string
		info []byte
		fn   peamd64.RuntimeFunction
		why  peamd64.Reason
		stop unwind.Stop
		sp   uint64 // of the caller, from ours
	}{
		{"sound", info(1, 0, 8, 0, 8, 0x42, 4, 0x50), fn, peamd64.OK, unwind.StopNone, 0x38},
		{"offsets go up", info(1, 0, 8, 0, 4, 0x42, 8, 0x50), fn, peamd64.BadOrder, unwind.StopNone, 0x38},
		{"offset past the prolog", info(1, 0, 7, 0, 8, 0x42), fn, peamd64.BadOrder, unwind.StopNone, 0x30},
		{"version 3", info(3, 0, 0, 0), fn, peamd64.Version3, unwind.Unsupported, 0},
		{"unknown version", info(4, 0, 0, 0), fn, peamd64.BadVersion, unwind.BadInfo, 0},
		{"reserved operation", info(1, 0, 8, 0, 8, 0x42, 4, 7), fn, peamd64.BadOpcode, unwind.BadInfo, 0},
		{"operand past the count", info(1, 0, 8, 0, 8, 1), fn, peamd64.BadOperand, unwind.BadInfo, 0},
		{"epilog of no bytes", info(2, 0, 0, 0, 0, 0x16, 0, 6), fn, peamd64.BadEpilog, unwind.StopNone, 8},
		{"epilog longer than the function", info(2, 0, 0, 0, 3, 0x16, 0, 6), short,
			peamd64.BadEpilog, unwind.StopNone, 8},
		{"epilog among prolog codes", info(2, 0, 8, 0, 8, 0x42, 3, 0x16), fn,
			peamd64.BadOpcode, unwind.BadInfo, 0},
		{"chained and with handler",
			append(info(1, 5, 0, 0),
				entries(peamd64.RuntimeFunction{Begin: peFn, End: peFn + 1, Unwind: peInfo + 0x20})...), fn,
			peamd64.BadFlags, unwind.StopNone, 8},
		{"chained to itself", chained(0, fn), fn, peamd64.ChainDepth, unwind.BadInfo, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := peImage(append(append(c.info, make([]byte, 0x20-len(c.info))...), 1, 0, 0, 0), nil)
			var fault *peamd64.Error
			why := peamd64.OK
			if errors.As(f.AMD64().Check(c.fn), &fault) {
				why = fault.Fault.Reason
			}
			must.Equal(t, why, c.why, "checked")
			r := peRegs(peFn + 0x80)
			_, stop := StepPE(f.AMD64(), unwind.Instruction(peFn+0x80), &r, peMemory())
			if refused := why != peamd64.OK && !why.Walkable(); stop != c.stop ||
				(stop != unwind.StopNone) != refused {
				t.Errorf("stop %v; the check says %v, walkable %v", stop, why, why.Walkable())
			}
			if stop == unwind.StopNone && r.GPR[context.RSP] != peRSP+c.sp {
				t.Errorf("sp %#x, want %#x", r.GPR[context.RSP]-peRSP, c.sp)
			}
		})
	}
}

// Without an exception directory, nothing proves that an interrupted function is a leaf. The walker may still
// follow its code.
func TestPEWithoutExceptionDirectory(t *testing.T) {
	code := []byte{0x57, 0x90, 0x5f, 0xc3, 0xe8, 0, 0, 0, 0} // push rdi; nop; pop rdi; ret; call
	f := pe.FromBlocks(pe.MachineAMD64, nil, []pe.Block{{RVA: 0x1000, Data: code}})
	m := module.PEFromFile(1, f, "bare.dll", textBias, textBias+0x2000)
	u := unwinder(module.NewTable(1, []module.Module{m}, nil))
	for _, c := range []struct {
		b    unwind.Bounds
		stop unwind.Stop
	}{{unwind.Bounds{}, unwind.NoInfo}, {unwind.Bounds{Follow: true}, unwind.StopNone}} {
		r, s := start(textBias+0x1001, sp0), newStack()
		s.Set(sp0, 0x33)
		s.Set(sp0+8, textBias+0x1009)
		var frame unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), &c.b, &frame)
		expect.True(t, stop == c.stop, "%v, want %v", stop, c.stop)
		if c.stop == unwind.StopNone &&
			(r.RIP != textBias+0x1009 || r.SP() != sp0+16 || u.trust != unwind.TrustCode ||
				!known(&r, context.RDI) || r.GPR[context.RDI] != 0x33) {
			t.Errorf("at %#x/%#x, rdi %#x, by %v", r.RIP, r.SP(), r.GPR[context.RDI], u.trust)
		}
	}
}

// TestEveryOperationIsUndone checks that the interpreter undoes every operation of a prolog, and that
// StackDecrease equals the distance by which this raises the stack pointer. For an operation that loads the
// stack pointer, StackDecrease is 0. Pushes are not tested, because they are undone before apply is called.
func TestEveryOperationIsUndone(t *testing.T) {
	info := peamd64.Info{Version: 1, FrameReg: context.RBP, FrameOffset: 240, Unix: true}
	for op := peamd64.UWOP_PUSH_NONVOL + 1; op.String() != "op?"; op++ {
		c, why := info.Code([]byte{4, 1<<4 | byte(op), 2, 0, 0, 0})
		want := unwind.StopNone
		if why != peamd64.OK { // it describes no instruction of a prolog
			want = unwind.BadInfo
		}
		var raised [2]uint64
		for i := range raised {
			regs := peRegs(peFn)
			sp := peRSP + 64*uint64(i)
			regs.GPR[context.RSP] = sp
			s := peStep{regs: &regs, mem: peMemory()}
			s.res.Frame = sp
			expect.Equal(t, s.apply(&info, &c), want, "%v: apply in step_pe.go", op)
			if raised[i] = regs.SP() - sp; s.res.Machine {
				raised[i] = uint64(i) // loaded, whatever the word is
			}
		}
		if raised[0] != raised[1] {
			raised[0] = 0
		}
		expect.Equal(t, c.StackDecrease(), raised[0], "%v: StackDecrease in pe/amd64 has to agree with apply", op)
	}
}

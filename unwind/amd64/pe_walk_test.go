package amd64

import (
	"math/rand"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// peLeaf is an RVA that no entry covers.
const peLeaf = 0x9000

func peUnwinder(im *pe.File) *Unwinder { return unwinder(peTable(im, peBase)) }

// TestPEStepStops: a PE step that stops, for any reason, does not change the registers.
func TestPEStepStops(t *testing.T) {
	plain := info(1, 0, 4, 0, 4, 0x42)
	zero := peMemory()
	b, _ := zero.Bytes(peRSP+40, 8)
	clear(b)
	for _, c := range []struct {
		name  string
		im    *pe.File
		rva   uint32
		exact bool
		edit  func(*Registers)
		mem   *memory.Window
		b     *unwind.Bounds
		stop  unwind.Stop
	}{
		{name: "bad unwind data", im: peImage(info(5, 0, 0, 0), nil), rva: peFn,
			exact: true, stop: unwind.BadInfo},
		{name: "version 3", im: peImage(info(3, 0, 0, 0), nil), rva: peFn,
			exact: true, stop: unwind.Unsupported},
		{name: "no stack", im: peImage(plain, nil), rva: peFn + 8, exact: true,
			mem: memory.New(), stop: unwind.Unreadable},
		{name: "return address 0", im: peImage(plain, nil), rva: peFn + 8, exact: true,
			mem: zero, stop: unwind.NullReturn},
		{name: "return address 0 at the high end", im: peImage(plain, nil), rva: peFn + 8, exact: true,
			mem: zero, b: &unwind.Bounds{Low: peStack, High: peRSP + 1000}, stop: unwind.EndOfStack},
		{name: "frame below the stack pointer",
			im: peImage(info(1, 0, 4, 5, 4, 3), nil), rva: peFn + 8, exact: true,
			edit: func(r *Registers) { r.GPR[context.RBP] = peRSP - 0x100 }, stop: unwind.NoProgress},
		{name: "past the bounds", im: peImage(plain, nil), rva: peFn + 8, exact: true,
			b: &unwind.Bounds{Low: peStack, High: peRSP + 40}, stop: unwind.OutOfStack},
		{name: "leaf that has called", im: peImage(plain, nil), rva: peLeaf,
			exact: false, stop: unwind.NoInfo},
		{name: "far outside the image", im: peImage(plain, nil), exact: true,
			edit: func(r *Registers) { r.RIP = peBase + 1<<33 }, stop: unwind.NoInfo},
	} {
		u := peUnwinder(c.im)
		if c.mem == nil {
			c.mem = peMemory()
		}
		regs := peRegs(c.rva)
		if c.edit != nil {
			c.edit(&regs)
		}
		was := regs
		var f unwind.Frame
		if _, stop := stepOf(u, &regs, c.exact, c.mem, c.b, &f); stop != c.stop || regs != was || f.CFA != 0 {
			t.Errorf("%s: %v, want %v; registers changed: %v", c.name, stop, c.stop, regs != was)
		}
	}
}

// TestPELeafTrust: the leaf rule is the platform's for an interrupted function;
// one that has called is left by a guess or not at all.
func TestPELeafTrust(t *testing.T) {
	im := peImage(info(1, 0, 4, 0, 4, 0x42), nil)
	u := peUnwinder(im)
	regs := peRegs(peLeaf)
	var f unwind.Frame
	exact, stop := stepOf(u, &regs, true, peMemory(), nil, &f)
	expect.True(t, !exact && stop == unwind.StopNone && u.trust == unwind.TrustLeaf &&
		regs.RIP == word(peRSP) && f.CFA == peRSP+8 && regs.Known == windowsKept,
		"interrupted: %v %v %v %+v", exact, stop, u.trust, f)
	mem := peMemory()
	b, _ := mem.Bytes(peRSP, 16)
	copy(b, []byte{0, 0, 0, 0x71, 0, 0, 0, 0, 0x10, 0x10, 0, 0x40, 1, 0, 0, 0})
	regs = peRegs(peLeaf)
	regs.GPR[context.RBP] = peRSP
	_, stop = stepOf(u, &regs, false, mem, &unwind.Bounds{Guess: true}, &f)
	expect.True(t, stop == unwind.StopNone && u.trust == unwind.TrustFramePointer,
		"guessed: %v %v", stop, u.trust)
}

// TestPEStepTrust: body, epilog and machine frame.
func TestPEStepTrust(t *testing.T) {
	u := peUnwinder(peImage(info(1, 0, 4, 0, 4, 0x42), []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}))
	for into, want := range map[uint32]unwind.Trust{4: unwind.TrustUnwindInfo, 5: unwind.TrustEpilog} {
		regs, f := peRegs(peFn+into), unwind.Frame{}
		exact, stop := stepOf(u, &regs, true, peMemory(), nil, &f)
		expect.True(t, !exact && stop == unwind.StopNone && u.trust == want,
			"at %d: %v %v, want %v", into, stop, u.trust, want)
	}
	u = peUnwinder(peImage(info(1, 0, 0, 0, 0, 0x0a), nil))
	regs, f := peRegs(peFn), unwind.Frame{}
	// The interrupted stack may be below: on another stack, progress is not required.
	mem := peMemory()
	b, _ := mem.Bytes(peRSP+24, 8)
	copy(b, []byte{0, 0, 0, 0x10, 0, 0, 0, 0})
	exact, stop := stepOf(u, &regs, true, mem, nil, &f)
	expect.True(t, exact && stop == unwind.StopNone && f.CFA == 0x1000_0000,
		"machine frame: %v %v %#x", exact, stop, f.CFA)
}

// TestPECallAtTheEnd: a call that does not return may be a function's last
// instruction. Its return address is the next function's, whose bytes and
// information do not count.
func TestPECallAtTheEnd(t *testing.T) {
	next := peamd64.RuntimeFunction{Begin: peFn + peLen, End: peFn + peLen + 0x10, Unwind: 0x6000}
	im := peImageOf(pe.MachineAMD64, info(1, 0, 5, 0, 5, 0x42, 1, 0x50), nil, []peamd64.RuntimeFunction{next},
		pe.Block{RVA: 0x6000, Data: info(1, 0, 0, 0)}, pe.Block{RVA: next.Begin, Data: []byte{0xc3, 0xc3}})
	for exact, want := range map[bool]uint64{false: peRSP + 40 + 16, true: peRSP + 8} {
		regs, f := peRegs(next.Begin), unwind.Frame{}
		_, stop := stepOf(peUnwinder(im), &regs, exact, peMemory(), nil, &f)
		expect.True(t, stop == unwind.StopNone && f.CFA == want,
			"exact %v: %v, CFA %#x, want %#x", exact, stop, f.CFA, want)
	}
}

// TestPEWithCFI: if the exception directory does not cover an address, a PE module's
// call frame information is used, whose addresses begin at the image base.
func TestPEWithCFI(t *testing.T) {
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	// def_cfa_offset 48; RBX at CFA-16, RSI at CFA-24
	frames.FDE(&cie, peLeaf, fnSize, 0x0e, 48, 0x80|3, 2)
	frames.FDE(&cie, peLeaf+fnSize, fnSize, 0x0e, 48, 0x80|4, 3, 0x80|23, 4)
	table := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	im := peImage(info(1, 0, 4, 0, 4, 0x42), nil)
	u := unwinder(module.NewTable(1,
		[]module.Module{{Start: peBase, End: peBase + 1<<20, Bias: peBase, PE: im, CFI: table}}, nil))
	for _, c := range []struct {
		rva   uint32
		known uint32
		reg   int
		at    uint64
	}{
		{peLeaf + 0x10, windowsKept, context.RBX, peRSP + 32},
		{peLeaf + fnSize + 0x10,
			windowsKept &^ (1 << 16), context.RSI, peRSP + 24}, // XMM6 is saved where it is not read
	} {
		for _, exact := range []bool{true, false} {
			regs, f := peRegs(c.rva), unwind.Frame{}
			was := regs
			_, stop := stepOf(u, &regs, exact, peMemory(), nil, &f)
			expect.True(t, stop == unwind.StopNone && u.trust == unwind.TrustCFI && f.CFA == peRSP+48,
				"%#x: %v %v %+v", c.rva, stop, u.trust, f)
			expect.True(t, regs.GPR[c.reg] == word(c.at) && regs.Known == c.known &&
				regs.GPR[context.RDI] == was.GPR[context.RDI] && regs.XMM == was.XMM, "%#x: %x", c.rva, regs)
		}
	}
	regs, f := peRegs(peFn+8), unwind.Frame{}
	_, stop := stepOf(u, &regs, true, peMemory(), nil, &f)
	expect.True(t, stop == unwind.StopNone && u.trust == unwind.TrustUnwindInfo,
		"with an entry: %v %v", stop, u.trust)
	// A leaf that neither describes is left by a cached rule: the stubs of
	// system calls, on top of most stacks, are such leaves.
	const leaf = peLeaf + 2*fnSize + 0x10
	m := u.table.At(0)
	for rva, cached := range map[uint32]bool{leaf: true, peLeaf + 0x10: false} {
		r := u.resolvePE(m, 0, unwind.Instruction(peBase+uint64(rva)))
		expect.True(t, (r.Kind() == RuleNearLeaf) == cached, "%#x: rule of kind %v", rva, r.Kind())
	}
	regs = peRegs(leaf)
	_, stop = stepOf(u, &regs, true, peMemory(), nil, &f)
	expect.True(t, stop == unwind.StopNone && u.trust == unwind.TrustLeaf && f.CFA == peRSP+8,
		"a leaf: %v %v %+v", stop, u.trust, f)
}

// TestPEHostile: unwind data made to trap the walker is refused with a reason.
func TestPEHostile(t *testing.T) {
	self := peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: peInfo}
	second := peamd64.RuntimeFunction{Begin: 1, End: 2, Unwind: 0x6000}
	huge := make([]byte, 0, 512)
	for len(huge) < 2*250 {
		huge = append(huge, 0, 0x11, 0xff, 0xff, 0xff, 0xff)
	}
	for _, c := range []struct {
		name string
		im   *pe.File
		stop unwind.Stop
		why  peamd64.Reason
	}{
		{"chained to itself", peImage(chained(0, self), nil), unwind.BadInfo, peamd64.ChainDepth},
		{"chained in a circle", peImage(chained(0, second), nil,
			pe.Block{RVA: 0x6000, Data: chained(0, self)}), unwind.BadInfo, peamd64.ChainDepth},
		{"chained to the outside", peImage(chained(0, peamd64.RuntimeFunction{Unwind: 0xfffffff0}), nil),
			unwind.BadInfo, peamd64.Short},
		{"parent cut off", peImage(info(1, peamd64.UNW_FLAG_CHAININFO, 0, 0), nil),
			unwind.BadInfo, peamd64.Short},
		{"codes cut off", peImage([]byte{1, 0, 200, 0, 0, 0}, nil), unwind.BadInfo, peamd64.Short},
		{"unknown version", peImage(info(0, 0, 0, 0), nil), unwind.BadInfo, peamd64.BadVersion},
		{"unknown operation", peImage(info(1, 0, 0, 0, 0, 0x0f), nil), unwind.BadInfo, peamd64.BadOpcode},
		{"unknown operation that has not run", peImage(info(1, 0, 9, 0, 200, 0x0f), nil),
			unwind.BadInfo, peamd64.BadOpcode},
		{"operand past the count", peImage(info(1, 0, 0, 0, 0, 0x11), nil),
			unwind.BadInfo, peamd64.BadOperand},
		{"epilog behind a code", peImage(info(2, 0, 0, 0, 0, 0x42, 0, 0x16), nil),
			unwind.BadInfo, peamd64.BadOpcode},
		{"frame of many 4 GiB", peImage(info(1, 0, 0, 0, huge...), nil), unwind.Unreadable, peamd64.OK},
		{"frame register that is not declared", peImage(info(1, 0, 0, 0, 0, 3), nil),
			unwind.BadInfo, peamd64.BadFrame},
		{"epilog pushes chained to itself",
			peImage(append(info(2, peamd64.UNW_FLAG_CHAININFO, 0, 0, 255, 0x16, 0, 6), entries(self)...),
				nil), unwind.BadInfo, peamd64.ChainDepth},
	} {
		into := uint32(8)
		if c.name == "epilog pushes chained to itself" {
			into = peLen - 8
		}
		regs := peRegs(peFn + into)
		res, stop := StepPE(c.im.AMD64(), unwind.Instruction(uint64(peFn+into)), &regs, peMemory())
		expect.True(t, stop == c.stop && res.Reason == c.why,
			"%s: %v %v, want %v %v", c.name, stop, res.Reason, c.stop, c.why)
	}
}

// TestPECodeCut: an epilog that is cut by the end of the image is not recognized,
// wherever it is cut.
func TestPECodeCut(t *testing.T) {
	for _, code := range [][]byte{
		{0x48, 0x81, 0xc4, 0, 1, 0, 0, 0x41, 0x5f, 0x5b, 0xe9, 0, 0x10, 0, 0},
		{0x48, 0x83, 0xc4, 0x20, 0xc2, 0x10, 0},
		{0x48, 0x8d, 0xa5, 0, 1, 0, 0, 0xf3, 0xc3},
		{0x5b, 0xff, 0x25, 1, 2, 3, 4}, {0xeb, 0x80}, {0x49, 0xff, 0xe2}, {0xf2, 0xc3},
	} {
		for n := range len(code) + 1 {
			im := pe.FromBlocks(pe.MachineAMD64,
				entries(peamd64.RuntimeFunction{Begin: peFn, End: peFn + peLen, Unwind: peInfo}),
				[]pe.Block{{RVA: peFn, Data: code[:n:n]}, {RVA: peInfo, Data: info(1, 0, 8, 5, 8, 3)}})
			regs := peRegs(peFn)
			res, stop := StepPE(im.AMD64(), unwind.Instruction(peFn), &regs, peMemory())
			if want := n == len(code); stop != unwind.StopNone || (res.Part == PEEpilog) != want {
				t.Errorf("% x: %v, part %d", code[:n], stop, res.Part)
			}
		}
	}
}

// TestPEManyPops: no more pops are read than an epilog can have.
func TestPEManyPops(t *testing.T) {
	code := make([]byte, peLen)
	for i := range code {
		code[i] = 0x5b
	}
	code[maxPops], code[2*maxPops+1] = 0xc3, 0xc3
	im := peImage(info(1, 0, 4, 0, 4, 0x42), code)
	for into, want := range map[uint32]PEPart{0: PEEpilog, maxPops + 1: PEEpilog, 2*maxPops + 2: PECode} {
		regs := peRegs(peFn + into)
		res, stop := StepPE(im.AMD64(), unwind.Instruction(uint64(peFn+into)), &regs, peMemory())
		expect.True(t, stop == unwind.StopNone && res.Part == want,
			"at %d: %v, part %d", into, stop, res.Part)
	}
}

// TestPERandom steps by random unwind data and code: a reason, or registers
// that are known to be read.
func TestPERandom(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	mem, left := peMemory(), 0
	for range 20000 {
		b, code := make([]byte, rnd.Intn(64)), make([]byte, peLen)
		rnd.Read(b)
		rnd.Read(code)
		if len(b) > 2 {
			b[0], b[2] = b[0]&^7|byte(1+rnd.Intn(2)), byte(rnd.Intn(20))
		}
		im := peImage(b, code)
		pc := uint32(peFn + rnd.Intn(peLen))
		regs := peRegs(pc)
		was, f := regs, unwind.Frame{}
		_, stop := stepOf(peUnwinderAgain(im), &regs, rnd.Intn(2) == 0, mem,
			&unwind.Bounds{Low: peStack, High: peStack + 0x20000}, &f)
		switch {
		case stop != unwind.StopNone && regs != was:
			t.Fatalf("%x at %#x: %v, and the registers changed", b, pc, stop)
		case stop == unwind.StopNone:
			left++
		}
	}
	expect.True(t, left >= 500, "only %d steps succeeded", left)
}

var (
	againUnwinder = New()
	againGen      uint32
)

// peUnwinderAgain is one unwinder for many images.
func peUnwinderAgain(im *pe.File) *Unwinder {
	againGen++
	againUnwinder.SetTable(peTableGen(againGen, im, peBase))
	return againUnwinder
}

func TestPEStepAllocatesNothing(t *testing.T) {
	for name, c := range peKinds() {
		u, mem, f := peUnwinder(c.im), peMemory(), unwind.Frame{}
		start, s := peRegs(peFn+c.into), unwind.State{Regs: new(context.Registers)}
		n := testing.AllocsPerRun(100, func() {
			begin(&s, &start, true)
			if stop := u.Step(&s, mem, nil, &f); stop != unwind.StopNone {
				t.Fatal(name, stop)
			}
		})
		expect.True(t, n == 0, "%s: %v allocations", name, n)
	}
}

type peKind struct {
	im   *pe.File
	into uint32
}

// peKinds is one step of each kind.
func peKinds() map[string]peKind {
	pushes := []byte{19, 0x42, 15, 0xf0, 13, 0xe0, 11, 0xd0, 9, 0xc0, 7, 0x70, 6, 0x60, 5, 0x50, 4, 0x30}
	parent := peamd64.RuntimeFunction{Begin: 0x100, End: 0x200, Unwind: 0x6000}
	return map[string]peKind{
		"body": {peImage(info(1, 0, 19, 0, pushes...), nil), 0x20},
		"body xmm": {peImage(info(1, 0, 40, 0,
			append([]byte{39, 0x68, 2, 0, 34, 0x78, 3, 0, 29, 0x88, 4, 0}, pushes...)...), nil), 0x40},
		"frame": {peImage(info(1, 0, 23, 0x25, append([]byte{23, 3}, pushes...)...), nil), 0x20},
		"epilog": {peImage(info(1, 0, 19, 0, pushes...),
			[]byte{0x48, 0x83, 0xc4, 0x28, 0x5b, 0x5d, 0x5e, 0x5f, 0x41, 0x5c, 0xc3}), 0},
		"tail jump": {peImage(info(1, 0, 19, 0, pushes...), []byte{0x5b, 0xe9, 0, 0x10, 0, 0}), 0},
		"epilog v2": {peImage(info(2, 0, 19, 0, append([]byte{13, 0x16, 0, 6}, pushes...)...), nil),
			peLen - 13},
		"chained": {peImage(chained(0, parent, 0, 0x34, 3, 0), nil,
			pe.Block{RVA: 0x6000, Data: info(1, 0, 19, 0, pushes...)}), 0x20},
		"leaf": {peImage(info(1, 0, 0, 0), nil), peLeaf - peFn},
	}
}

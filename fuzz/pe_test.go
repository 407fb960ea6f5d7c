package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// imageSeed is a PE32+ image for x64 of one section that holds a function at
// 1000h, its entry at 1100h and its unwind information at 1110h.
func imageSeed() []byte {
	b := make([]byte, 0x600)
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x40)
	h := b[0x40:]
	copy(h, "PE\x00\x00")
	le.PutUint16(h[4:], pe.MachineAMD64)
	le.PutUint16(h[6:], 1)    // sections
	le.PutUint16(h[20:], 240) // optional header
	o := h[24:]
	le.PutUint16(o, 0x20b)
	le.PutUint64(o[24:], 0x140000000)
	le.PutUint32(o[56:], 0x2000)
	le.PutUint32(o[60:], 0x200)
	le.PutUint32(o[108:], 16)
	le.PutUint32(o[112+8*3:], 0x1100)
	le.PutUint32(o[116+8*3:], pe.AMD64EntrySize)
	s := o[240:]
	copy(s, ".text")
	le.PutUint32(s[8:], 0x400)
	le.PutUint32(s[12:], 0x1000)
	le.PutUint32(s[16:], 0x400)
	le.PutUint32(s[20:], 0x200)
	text := b[0x200:]
	copy(text, []byte{0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3})
	le.PutUint32(text[0x100:], 0x1000)
	le.PutUint32(text[0x104:], 0x100c)
	le.PutUint32(text[0x108:], 0x1110)
	copy(text[0x110:], []byte{1, 5, 2, 0, 5, 0x32, 1, 0x30})
	return b
}

// FuzzPE reads any bytes as an image, in both layouts, and steps from some of
// its instructions: no panic, and nothing is given that lies outside the bytes.
func FuzzPE(f *testing.F) {
	seed := imageSeed()
	f.Add(seed, uint32(0x1005))
	f.Add(seed[:0x180], uint32(0x1000))
	f.Add([]byte("MZ"), uint32(0))
	for _, at := range []int{0x44, 0x46, 0x54, 0x58, 0x9c, 0xe4, 0x14c, 0x150, 0x154} {
		damaged := imageSeed()
		binary.LittleEndian.PutUint32(damaged[at:], 0xfffffff0)
		f.Add(damaged, uint32(0x1005))
	}
	u := amd64.New()
	f.Fuzz(func(t *testing.T, b []byte, rva uint32) {
		for _, parse := range []func([]byte, string) (*pe.File, error){pe.New, pe.FromMemory} {
			im, err := parse(b, "fuzz")
			if err != nil {
				continue
			}
			readAll(t, im)
			for i := range uint32(4) {
				stepAnywhere(t, im, rva+i)
			}
			m := module.PEFromFile(1, im, "fuzz", 1<<32, 0)
			u.SetTable(module.NewTable(u.Table().Generation()+1, []module.Module{m}, nil))
			walkImage(t, u, rva)
		}
	})
}

// readAll asks an image for everything but steps.
func readAll(t *testing.T, im *pe.File) {
	for i := range min(im.CountAMD64(), 64) {
		fn := im.EntryAMD64(i)
		if got, ok := im.LookupAMD64(fn.Begin); ok && !got.Contains(fn.Begin) {
			t.Fatalf("%+v does not hold %#x", got, fn.Begin)
		}
		_ = im.CheckAMD64(fn)
	}
	for _, s := range im.Sections() {
		if b, ok := im.BytesAt(s.RVA, 16); ok && len(b) != 16 {
			t.Fatalf("%d bytes for 16", len(b))
		}
	}
	if len(im.Problems()) > 64 {
		t.Fatalf("%d problems", len(im.Problems()))
	}
	_, _ = im.Exports()
	_, _ = im.DebugID()
}

// peStack is a stack of words that are addresses in it.
var peStack = func() *memory.Window {
	b := make([]byte, 1<<14)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], 1<<40+uint64(i*7&0x3ff8))
	}
	return memory.New(memory.Run{Addr: 1 << 40, Data: b})
}()

func peRegisters(rip uint64) (r context.AMD64) {
	r.RIP, r.Known = rip, context.AMD64All
	for i := range r.GPR {
		r.GPR[i] = 1<<40 + 0x1000
	}
	return r
}

// stepAnywhere steps from both kinds of ip. What is refused has a reason.
func stepAnywhere(t *testing.T, im *pe.File, rva uint32) {
	for _, exact := range []bool{true, false} {
		regs := peRegisters(1<<32 + uint64(rva))
		again := regs
		res, stop := amd64.StepPE(im, rva, exact, &regs, peStack)
		if (stop == unwind.BadInfo || stop == unwind.Unsupported) && res.Reason == pe.OK {
			t.Fatalf("%v without a reason", stop)
		}
		if stop == unwind.StopNone && regs.Known&(1<<context.RSP) == 0 {
			t.Fatal("a step to an unknown stack pointer")
		}
		if res2, stop2 := amd64.StepPE(im, rva, exact, &again, peStack); res2 != res || stop2 != stop || again != regs {
			t.Fatal("the same step gives something else")
		}
	}
}

// walkImage walks within bounds: stack pointers only go up, unless a machine
// frame says otherwise.
func walkImage(t *testing.T, u *amd64.Unwinder, rva uint32) {
	var out [32]unwind.Frame
	regs := peRegisters(1<<32 + uint64(rva))
	b := unwind.Bounds{Low: 1 << 40, High: 1<<40 + 1<<14, Guess: true}
	n, _, _ := u.Walk(&regs, true, unwind.TrustContext, peStack, &b, out[:])
	for i := 1; i < n; i++ {
		if !out[i].Exact && out[i].SP < out[i-1].SP {
			t.Fatalf("frame %d goes down: %#x after %#x", i, out[i].SP, out[i-1].SP)
		}
	}
}

// FuzzUnwindInfo reads any bytes as an UNWIND_INFO of a function whose code are
// other bytes, and steps from any of its instructions.
func FuzzUnwindInfo(f *testing.F) {
	body := []byte{0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5c, 0xc3}
	for _, info := range [][]byte{
		{1, 5, 2, 0, 5, 0x32, 1, 0x30},                               // push, alloc
		{1, 9, 3, 5, 9, 3, 5, 0x32, 1, 0x50, 0, 0},                   // frame register
		{2, 5, 4, 0, 2, 0x16, 8, 6, 5, 0x32, 1, 0x30},                // version 2
		{0x21, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x11, 0, 0, 0, 0x20, 0, 0}, // chained to itself
		{1, 0, 1, 0, 0, 0x1a, 0, 0},                                  // machine frame
		{1, 9, 5, 0, 9, 0x38, 4, 0, 5, 0x99, 0, 0, 1, 0, 0, 0},       // XMM
		{9, 4, 1, 0, 4, 0x42, 0, 0, 0, 2, 0, 0},                      // handler
		{1, 9, 4, 0xf5, 9, 0x0b, 0, 1, 0, 0, 1, 0x50},                // SET_FPREG_LARGE
		{3, 0, 0, 0},                // version 3
		{1, 4, 1, 0, 4, 0x11, 0, 0}, // operand past the count
	} {
		f.Add(info, body, uint16(5), false)
		f.Add(info, body, uint16(0x100), true)
	}
	f.Fuzz(func(t *testing.T, info, code []byte, offset uint16, unix bool) {
		machine := uint16(pe.MachineAMD64)
		if unix {
			machine ^= 0x7b79
		}
		pdata := []byte{0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0}
		if len(code) > 0x1000 {
			code = code[:0x1000]
		}
		im := pe.FromBlocks(machine, pdata, []pe.Block{{RVA: 0x1000, Data: code}, {RVA: 0x2000, Data: info}})
		i, fault := im.AMD64Info(0x2000)
		if fault.OK() && i.Check(im.EntryAMD64(0)).OK() {
			sizes := 0
			for codes := i.Codes; len(codes) > 0; {
				c, why := i.Code(codes)
				if why != pe.OK {
					t.Fatalf("checked, and yet %v", why)
				}
				sizes += int(c.Slots)
				codes = codes[c.Size():]
			}
			if sizes != int(i.Count) {
				t.Fatalf("%d slots of %d", sizes, i.Count)
			}
		}
		stepAnywhere(t, im, 0x1000+uint32(offset))
	})
}

// TestImageSeed: a seed that is refused would make FuzzPE test nothing.
func TestImageSeed(t *testing.T) {
	im, err := pe.New(imageSeed(), "seed")
	if err != nil || len(im.Problems()) != 0 {
		t.Fatal(err, im.Problems())
	}
	for rva, part := range map[uint32]amd64.PEPart{0x1005: amd64.PECode, 0x1006: amd64.PEEpilog, 0x100c: amd64.PELeaf} {
		regs := peRegisters(0)
		res, stop := amd64.StepPE(im, rva, true, &regs, peStack)
		if stop != unwind.StopNone || res.Part != part {
			t.Errorf("%#x: %v, part %d, want %d", rva, stop, res.Part, part)
		}
	}
}

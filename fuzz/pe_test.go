package fuzz

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// imageSeed returns a PE32+ image for x64 with one section. The section has a function at
// 1000h, its entry at 1100h, and its unwind information at 1110h.
func imageSeed() []byte {
	s := peasm.NewSection(".text", 0x1000).Bytes(0x53, 0x48, 0x83, 0xec, 0x20, 0x90, 0x48, 0x83, 0xc4,
		0x20, 0x5b, 0xc3).Label("end")
	s.Goto(0x1100).Label("entry").U32(0x1000).AtLabel("end", "info")
	s.Goto(0x1110).Label("info").Bytes(1, 5, 2, 0, 5, 0x32, 1, 0x30).Goto(0x1400)
	im := peasm.File{Sections: []*peasm.Section{s},
		Dirs: map[int]peasm.Directory{peasm.Exception: {Label: "entry", Size: peamd64.EntrySize}}}
	return im.Bytes()
}

// FuzzPE reads any bytes as an image, as a file and as it is mapped. It calls every reader,
// and walks from some instructions with the walkers of both architectures. There must be no
// panic, and no read outside the bytes. The number of results is bounded by the number of
// bytes. The file and its mapped copy must give the same results.
func FuzzPE(f *testing.F) {
	for _, im := range sorted(seedImages(f)) {
		f.Add(im.file, im.rva)
	}
	f.Add(imageSeed()[:0x180], uint32(0x1000))
	f.Add([]byte("MZ"), uint32(0))
	f.Add(sharedNames(), uint32(0x1000))
	for _, at := range []int{0x84, 0x86, 0x94, 0x98, 0xdc, 0x124, 0x18c, 0x190, 0x194} {
		damaged := imageSeed()
		binary.LittleEndian.PutUint32(damaged[at:], 0xfffffff0)
		f.Add(damaged, uint32(0x1005))
	}
	w := newWalkers()
	f.Fuzz(func(t *testing.T, b []byte, rva uint32) {
		b = b[:len(b):len(b)] // a read past the end is a panic
		bounded(t, 2<<20, len(b), func() { readPE(b) })
		if im, err := pe.FromMemory(b, "raw"); err == nil {
			exerciseImage(t, w, im, len(b), rva)
		}
		im, err := pe.New(b, "file")
		must.True(t, (im == nil) != (err == nil), "image %v and error %v", im, err)
		if err != nil {
			return
		}
		exerciseImage(t, w, im, len(b), rva)
		heads, _ := im.BytesAt(0, len(im.Tail(0, len(b))))
		whole, blocks := mapImage(im, heads)
		if whole == nil {
			return
		}
		if mapped, err := pe.FromMemory(whole, "mapped"); err == nil {
			exerciseImage(t, w, mapped, len(whole), rva)
		}
		if mapped, err := pe.FromMemoryBlocks(blocks, "blocks"); err == nil {
			exerciseImage(t, w, mapped, len(whole), rva)
			sameImage(t, im, mapped)
		}
	})
}

// readPE reads what a program asks of an image: as a file, and as it is mapped.
func readPE(b []byte) {
	file, _ := pe.New(b, "file")
	mapped, _ := pe.FromMemory(b, "raw")
	for _, im := range []*pe.File{file, mapped} {
		if im != nil {
			im.Exports()
			im.Imports()
			im.Functions()
			im.DebugID()
			im.Version()
			im.DWARF()
		}
	}
}

// sharedNames is an image whose exports, imports, and debug records share their bytes.
func sharedNames() []byte {
	const rva, n = 0x1000, 0x800
	b := make([]byte, 0x5000)
	le := binary.LittleEndian
	for at, v := range map[int]uint32{20: 1, 24: n, 28: rva, 32: rva + 0x1000, 36: rva + 0x3000} { // exports
		le.PutUint32(b[at:], v)
	}
	for i := range n {
		le.PutUint32(b[0x1000+4*i:], rva+0x4000)
	}
	for i := 0x100; i+20 <= 0x1000; i += 20 { // imports
		le.PutUint32(b[i:], rva+0x2ff8)
		le.PutUint32(b[i+12:], rva+0x4000)
	}
	le.PutUint64(b[0x2ff8:], rva+0x4000)
	copy(b[0x4000:], bytes.Repeat([]byte{'x'}, 0xfff))
	im := peasm.File{Sections: []*peasm.Section{peasm.Raw(".x", rva, b)}, Dirs: map[int]peasm.Directory{
		peasm.Export: {RVA: rva, Size: 40}, peasm.Import: {RVA: rva + 0x100, Size: 40},
		peasm.Exception: {RVA: rva, Size: 0x5000}}}
	return im.Bytes()
}

func exerciseImage(t *testing.T, w *walkers, im *pe.File, size int, rva uint32) {
	readAll(t, im, size)
	for i := range uint32(4) {
		stepAnywhere(t, im, rva+i)
	}
	w.walk(t, im, rva)
}

// readAll asks an image of size bytes for everything but steps.
func readAll(t *testing.T, im *pe.File, size int) {
	readAMD64(t, im, size)
	readARM64(t, im, size)
	for _, s := range im.Sections() {
		if b, ok := im.BytesAt(s.RVA, 16); ok && len(b) != 16 {
			t.Fatalf("%d bytes for 16", len(b))
		}
		im.Section(s.Name)
	}
	must.True(t, len(im.Problems()) <= 64, "%d problems", len(im.Problems()))
	if x, _ := im.Exports(); len(x) > size/2 {
		t.Fatalf("%d exports in %d bytes", len(x), size)
	}
	im.Imports() // has its own bound: tables may overlap
	im.Version()
	if id, ok := im.DebugID(); ok && (id.String() == "" || len(id.PDB) > size) {
		t.Fatalf("debug id %q", id)
	}
	if d := im.DWARF(); len(d.EHFrame) > size || len(d.DebugFrame) > size {
		t.Fatalf("DWARF of %d and %d bytes in %d", len(d.EHFrame), len(d.DebugFrame), size)
	}
}

// someFunctions bounds what is looked at in one image.
const someFunctions = 64

// readAMD64 looks at every x64 function: what is found by an address holds it,
// and what passed the checks can be decoded.
func readAMD64(t *testing.T, im *pe.File, size int) {
	if n := im.AMD64().Len(); n > size/peamd64.EntrySize {
		t.Fatalf("%d functions in %d bytes", n, size)
	}
	for i := range min(im.AMD64().Len(), someFunctions) {
		fn := im.AMD64().Entry(i)
		for _, at := range []uint32{fn.Begin, fn.Begin + (fn.End-fn.Begin)/2, fn.End - 1, fn.End} {
			if got, ok := im.AMD64().Lookup(at); ok && !got.Contains(at) {
				t.Fatalf("%+v does not hold %#x", got, at)
			}
			im.AMD64().Find(at)
		}
		if _, ok := im.AMD64().Lookup(fn.Begin); !ok && fn.Begin < fn.End {
			t.Fatalf("%+v is not found", fn)
		}
		sound := im.AMD64().Check(fn) == nil
		to, why := im.AMD64().Resolve(fn)
		info, fault := im.AMD64().Info(to.Unwind)
		if sound && (why != peamd64.OK || !fault.OK()) {
			t.Fatalf("%+v is sound, but %v, %v", fn, why, fault)
		}
		if fault.OK() {
			if _, why := im.AMD64().Primary(to); sound && why != peamd64.OK {
				t.Fatalf("%+v is sound, but has no primary: %v", fn, why)
			}
			must.True(t, len(info.Codes) == 2*int(info.Count),
				"%d bytes of %d codes", len(info.Codes), info.Count)
		}
	}
}

// readARM64 looks at every ARM64 function, and at its instructions.
func readARM64(t *testing.T, im *pe.File, size int) {
	if arch, _ := im.Arch(); arch != context.ArchARM64 {
		return
	}
	pdata := im.ExceptionDirectory()
	must.True(t, len(pdata) <= size, "a directory of %d bytes in %d", len(pdata), size)
	fns := im.ARM64()
	for i := range min(fns.Len(), someFunctions) {
		fn := fns.Entry(i)
		if k := fns.Index(fn.Begin); k < 0 || fns.Entry(k).Begin != fn.Begin {
			t.Fatalf("entry %d is found as %d", i, k)
		}
		var buf pearm64.Buffer
		var info pearm64.Info
		begin, found, fault := im.ARM64().Find(fn.Begin, &buf, &info)
		if !fault.OK() || !found {
			continue
		}
		must.True(t, begin == fn.Begin, "%#x is of the function at %#x", fn.Begin, begin)
		for _, offset := range []uint32{0, 4, info.Length / 2 &^ 3, info.Length - 4, info.Length} {
			checkInfo(t, &info, offset)
		}
	}
}

// sameImage holds an undamaged file against its mapped copy.
func sameImage(t *testing.T, file, mapped *pe.File) {
	end := uint32(1)
	for _, s := range file.Sections() {
		if s.RVA < end || s.RVA > maxMapped {
			return // sections over each other: the copy is another image
		}
		end = s.RVA + uint32(len(file.Tail(s.RVA, maxMapped)))
	}
	if len(file.Sections()) > 0 && len(file.Tail(0, maxMapped)) > int(file.Sections()[0].RVA) ||
		len(file.Problems()) != 0 {
		return
	}
	must.True(t, bytes.Equal(file.ExceptionDirectory(), mapped.ExceptionDirectory()),
		"an exception directory of %d bytes, mapped %d", len(file.ExceptionDirectory()),
		len(mapped.ExceptionDirectory()))
	for i := range min(file.AMD64().Len(), someFunctions) {
		fn := file.AMD64().Entry(i)
		if a, b := file.AMD64().Check(fn), mapped.AMD64().Check(fn); (a == nil) != (b == nil) {
			t.Fatalf("%+v: %v, mapped %v", fn, a, b)
		}
	}
	a, errA := file.Exports()
	b, errB := mapped.Exports()
	if d := cmptest.Diff(a, b); d != "" || (errA == nil) != (errB == nil) {
		t.Fatalf("exports of the file, %v, and mapped, %v:\n%s", errA, errB, d)
	}
}

// peStack is a stack of words that are addresses in it.
var peStack = func() *memory.Window {
	b := make([]byte, 1<<14)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], walkStack+uint64(i*7&0x3ff8))
	}
	return memory.New(memory.Run{Addr: walkStack, Data: b})
}()

func peRegisters(rip uint64) (r context.AMD64) {
	r.RIP, r.Known = rip, context.AMD64All
	for i := range r.GPR {
		r.GPR[i] = walkStack + 0x1000
	}
	return r
}

// stepAnywhere steps from both kinds of ip. What is refused has a reason.
func stepAnywhere(t *testing.T, im *pe.File, rva uint32) {
	for _, at := range []unwind.Address{unwind.Instruction(uint64(rva)), unwind.ReturnAddress(uint64(rva))} {
		regs := peRegisters(1<<32 + uint64(rva))
		again := regs
		res, stop := amd64.StepPE(im.AMD64(), at, &regs, peStack)
		if (stop == unwind.BadInfo || stop == unwind.Unsupported) && res.Reason == peamd64.OK {
			t.Fatalf("%v without a reason", stop)
		}
		if stop == unwind.StopNone && regs.Known&(1<<context.RSP) == 0 {
			t.Fatal("a step to an unknown stack pointer")
		}
		if res2, stop2 := amd64.StepPE(im.AMD64(), at, &again, peStack); res2 != res || stop2 != stop ||
			again != regs {
			t.Fatal("the same step gives something else")
		}
	}
}

// walkers are the unwinders of one fuzzer, with and without caches.
type walkers struct {
	x64, plainX64 *amd64.Unwinder
	arm, plainARM *arm64.Unwinder
}

func newWalkers() *walkers {
	w := &walkers{amd64.New(), amd64.New(), arm64.New(), arm64.New()}
	w.plainX64.DisableCache(true)
	w.plainARM.DisableCache(true)
	return w
}

// table gives the walkers a table of one module, with managed code outside it.
func (w *walkers) table(m module.Module) *module.Table {
	t := module.NewTable(generations.Add(1), []module.Module{m},
		[]memory.Range{{Start: walkJIT, End: walkJIT + 1<<16}})
	for _, u := range []*amd64.Unwinder{w.x64, w.plainX64} {
		u.SetTable(t)
	}
	for _, u := range []*arm64.Unwinder{w.arm, w.plainARM} {
		u.SetTable(t)
	}
	return t
}

// generations numbers tables: those of different content must differ in it.
var generations atomic.Uint32

// walk walks a PE image from an address in it, by the walker of its machine.
func (w *walkers) walk(t *testing.T, im *pe.File, rva uint32) {
	const base = 0x1_4000_0000
	mods := w.table(module.PEFromFile(1, im, "fuzz", base, 0))
	if arch, _ := im.Arch(); arch == context.ArchARM64 {
		regs := arm64.Registers{PC: base + uint64(rva), Sp: walkStack + 0x1000, Known: context.ARM64All}
		for i := range regs.X {
			regs.X[i] = walkStack + 0x1000 + uint64(i)*16
		}
		w.check(t, mods, context.FromARM64(regs), peStack, true)
		return
	}
	w.check(t, mods, context.FromAMD64(peRegisters(base+uint64(rva))), peStack, true)
}

// check walks by the walkers of the registers' architecture.
func (w *walkers) check(t *testing.T, mods *module.Table, regs context.Registers, mem *memory.Window,
	guess bool) {
	if regs.Arch == context.ArchARM64 {
		checkWalk(t, w.arm, w.plainARM, mods, regs, mem, guess)
	} else {
		checkWalk(t, w.x64, w.plainX64, mods, regs, mem, guess)
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
	for _, from := range []vectors{{"amd64-native.jsonl.gz", 5},
		{"amd64-winetest.jsonl.gz", 1}, {"malformed.jsonl.gz", 1}} {
		eachRecorded(f, from.file, from.every,
			func(r recorded) { f.Add(r.info, r.code, uint16(r.into), false) })
	}
	f.Fuzz(func(t *testing.T, info, code []byte, offset uint16, unix bool) {
		info, code = info[:len(info):len(info)], code[:len(code):len(code)]
		machine := uint16(pe.MachineAMD64)
		if unix {
			machine ^= 0x7b79
		}
		pdata := []byte{0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0, 0}
		if len(code) > 0x1000 {
			code = code[:0x1000]
		}
		im := pe.FromBlocks(machine, pdata, []pe.Block{{RVA: 0x1000, Data: code}, {RVA: 0x2000, Data: info}})
		i, fault := im.AMD64().Info(0x2000)
		if fault.OK() && i.Check(im.AMD64().Entry(0)).OK() {
			sizes := 0
			for codes := i.Codes; len(codes) > 0; {
				c, why := i.Code(codes)
				must.True(t, why == peamd64.OK, "checked, and yet %v", why)
				sizes += int(c.Slots)
				codes = codes[c.Size():]
			}
			must.True(t, sizes == int(i.Count), "%d slots of %d", sizes, i.Count)
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
	for rva, part := range map[uint32]amd64.PEPart{0x1005: amd64.PECode,
		0x1006: amd64.PEEpilog, 0x100c: amd64.PELeaf} {
		regs := peRegisters(0)
		res, stop := amd64.StepPE(im.AMD64(), unwind.Instruction(uint64(rva)), &regs, peStack)
		expect.True(t, stop == unwind.StopNone && res.Part == part,
			"%#x: %v, part %d, want %d", rva, stop, res.Part, part)
	}
}

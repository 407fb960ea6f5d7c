package fuzz

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Structural mutation: the input of the fuzzer is a script of edits to a whole real file. An
// edit changes one field that the file's own headers refer to: a count, an offset, a size, a
// record's length, or an opcode. The new value is one that such files contain: a bound, another
// field's value, the size of the file, or the old value with one bit changed. So the fuzzer
// reaches the inner parts of the readers with its first input. Readers refuse random bytes at
// the first magic number.

// field is a number in a file: its offset and its size in bytes.
type field struct{ at, size int }

// whole is an undamaged file and what can be edited in it.
type whole struct {
	name   string
	data   []byte
	fields []field
}

// fieldList collects fields that lie in the file.
type fieldList struct {
	data []byte
	list []field
}

// add adds fields of the given sizes from at on.
func (l *fieldList) add(at int, sizes ...int) {
	for _, n := range sizes {
		if at >= 0 && n <= 8 && at <= len(l.data)-n {
			l.list = append(l.list, field{at, n})
		}
		at += n
	}
}

// every adds n fields of a size from at on.
func (l *fieldList) every(at, n, size int) {
	for i := range n {
		l.add(at+i*size, size)
	}
}

func (l *fieldList) u16(at int) int { return int(l.number(field{at, 2})) }
func (l *fieldList) u32(at int) int { return int(l.number(field{at, 4})) }
func (l *fieldList) u64(at int) int { return int(l.number(field{at, 8})) }

func (l *fieldList) number(f field) uint64 { return number(l.data, f) }

// number reads a field; one outside the data is 0.
func number(data []byte, f field) uint64 {
	var b [8]byte
	if f.at >= 0 && f.at <= len(data)-f.size {
		copy(b[:f.size], data[f.at:])
	}
	return binary.LittleEndian.Uint64(b[:])
}

// An edit of a script has editSize bytes: which field (two), how (one), which
// value (one) and the value itself (four).
const (
	editSize = 8
	maxEdits = 12
)

// edit runs a script on a copy of the file.
func (w *whole) edit(script []byte) []byte {
	out := slices.Clone(w.data)
	for n := 0; n < maxEdits && len(script) >= editSize; n++ {
		f := w.fields[int(binary.LittleEndian.Uint16(script))%len(w.fields)]
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:],
			w.value(out, f, script[2], script[3], binary.LittleEndian.Uint32(script[4:])))
		copy(out[f.at:f.at+f.size], b[:])
		script = script[editSize:]
	}
	return out[:len(out):len(out)] // a read past the end is a panic
}

// value is what an edit puts in the place of a field.
func (w *whole) value(data []byte, f field, how, which uint8, v uint32) uint64 {
	old := number(data, f)
	switch how % 7 {
	case 0:
		return uint64(v)
	case 1:
		return old + uint64(int64(int32(v))>>16)
	case 2:
		return old ^ 1<<(which%uint8(8*f.size))
	case 3:
		bounds := [...]uint64{0, 1, 1<<64 - 1, 1 << 63, 1<<63 - 1, 1 << 31, 1<<31 - 1,
			0xff, 0x80, 0xfff0, 0xfffffff0}
		return bounds[int(which)%len(bounds)]
	case 4:
		return number(data, w.fields[int(v)%len(w.fields)])
	case 5:
		return uint64(len(data)) + uint64(int64(int8(which)))
	}
	return old * uint64(which)
}

// scripts are seeds: each file whole, and each of its fields with a bound.
func scripts(files []*whole, add func(file uint8, script []byte)) {
	for i, w := range files {
		add(uint8(i), nil)
		for f := 0; f < len(w.fields); f += 1 + len(w.fields)/40 {
			script := binary.LittleEndian.AppendUint16(nil, uint16(f))
			add(uint8(i), append(script, 3, uint8(f), 0, 0, 0, 0))
		}
	}
}

// hostFile reads a file of this machine, nil if there is none of at most limit
// bytes.
func hostFile(path string, limit int64) []byte {
	if st, err := os.Stat(path); err != nil || st.Size() > limit {
		return nil
	}
	b, _ := os.ReadFile(path)
	return b
}

// hostFileAt is where numbers of the machine's own files begin: what a corpus
// says of the files below it is the same everywhere.
const hostFileAt = 128

// choose returns the file of a number: one of ours, or of this machine's.
func choose(ours, hosts []*whole, n uint8) *whole {
	if n >= hostFileAt && len(hosts) > 0 {
		return hosts[int(n-hostFileAt)%len(hosts)]
	}
	return ours[int(n)%len(ours)]
}

// TestFields: a layout that leads nowhere would leave a fuzzer with nothing to
// edit.
func TestFields(t *testing.T) {
	elves, _ := wholeELFs(t)
	images, _ := wholePEs(t)
	for _, w := range append(elves, images...) {
		expect.True(t, len(w.fields) >= 60, "%s: %d fields", w.name, len(w.fields))
		if out := w.edit(binary.LittleEndian.AppendUint64(nil, 3<<16|2<<24)); len(out) != len(w.data) ||
			slices.Equal(out, w.data) {
			t.Errorf("%s: an edit of one field changes nothing", w.name)
		}
	}
}

// someRecords bounds how many records of one kind are fields.
const someRecords = 48

// wholeELFs are the compiled seeds and, where there are such, small libraries of
// this machine.
func wholeELFs(t testing.TB) (ours, hosts []*whole) {
	for _, pattern := range []string{"*.so", "*.elf"} {
		for _, b := range sorted(seedFiles(t, pattern)) {
			ours = append(ours, newWholeELF(pattern, b))
		}
	}
	ours = append(ours, newWholeELF("packed", packedELF(t)))
	for _, path := range []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/aarch64-linux-gnu/lib/libdl.so.2", "/lib/x86_64-linux-gnu/libgcc_s.so.1"} {
		if b := hostFile(path, 256<<10); b != nil {
			hosts = append(hosts, newWholeELF(path, b))
		}
	}
	return ours, hosts
}

// newWholeELF lists the fields of an ELF file by its own headers, which are
// undamaged: no reader of the product is asked.
func newWholeELF(name string, b []byte) *whole {
	l := &fieldList{data: b}
	l.add(4, 1, 1)                                   // class, byte order
	l.add(16, 2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2) // the rest of the header
	for i, at := 0, l.u64(32); i < l.u16(56); i++ {  // program headers
		l.add(at+56*i, 4, 4, 8, 8, 8, 8, 8, 8)
	}
	for i, at := 0, l.u64(40); i < l.u16(60); i++ { // section headers
		l.add(at+64*i, 4, 4, 8, 8, 8, 8, 4, 4, 8, 8)
		l.section(at + 64*i)
	}
	return &whole{name, b, l.list}
}

// section lists what one section holds.
func (l *fieldList) section(head int) {
	typ, flags, at, size := l.u32(head+4), l.u64(head+8), l.u64(head+24), l.u64(head+32)
	if flags&0x800 != 0 { // a compression header
		l.add(at, 4, 4, 8, 8)
		l.every(at+24, min(size-24, someRecords), 1)
		return
	}
	switch typ {
	case 2, 11: // symbols
		for i := range min(size/24, someRecords) {
			l.add(at+24*i, 4, 1, 1, 2, 8, 8)
		}
	case 5, 0x6ffffff6, 7: // hash tables, notes
		l.every(at, min(size/4, someRecords), 4)
	case 6: // the dynamic section
		l.every(at, min(size/8, 2*someRecords), 8)
	case 1, 0x70000001:
		l.frames(at, size)
	}
}

// frames lists the records of an .eh_frame or .debug_frame, or the first bytes
// of a section of another kind.
func (l *fieldList) frames(at, size int) {
	l.every(at, min(size, 16), 1)
	for n, end := 0, at+size; n < someRecords && at+8 <= end; n++ {
		length := l.u32(at)
		if length == 0 || length > end-at-4 {
			return
		}
		l.add(at, 4, 4, 4, 4)
		l.every(at+8, min(length-4, 40), 1)
		at += 4 + length
	}
}

// FuzzWholeELF edits fields of whole ELF files. It reads every part of the result, as a file and as mapped:
// sections, unwind tables with all rows, and symbols. Then it walks out of functions with symbols. The
// conditions of FuzzELF and FuzzWalk must hold here too.
func FuzzWholeELF(f *testing.F) {
	ours, hosts := wholeELFs(f)
	scripts(ours, func(file uint8, script []byte) { f.Add(file, script, uint64(walkBias+0x1000)) })
	scripts(hosts, func(file uint8, script []byte) {
		f.Add(hostFileAt+file,
			script, uint64(walkBias+0x1000))
	})
	w := newWalkers()
	f.Fuzz(func(t *testing.T, file uint8, script []byte, ip uint64) {
		data := choose(ours, hosts, file).edit(script)
		im, err := elf.New(data, "whole")
		must.True(t, (im == nil) != (err == nil), "file %v and error %v", im, err)
		if mapped, err := elf.FromMemory(data, 0x7f0000000000, "mapped"); err == nil {
			exerciseELF(t, mapped, len(data))
		}
		if err != nil {
			return
		}
		exerciseELF(t, im, len(data))
		if n := symbol.ELF(im, "", nil).Len(); n > len(data) {
			t.Fatalf("%d symbols in %d bytes", n, len(data))
		}
		w.walkELF(t, im, ip)
	})
}

// walkELF walks out of an image at ip and at the beginnings of some functions.
func (w *walkers) walkELF(t *testing.T, im *elf.File, ip uint64) {
	m := module.ELFFromFile(1, im, "whole", walkBias, walkBias+1<<32, walkBias)
	mods := w.table(m)
	ips := []uint64{ip, im.Entry() + walkBias}
	for s := range im.Symbols(true) {
		if ips = append(ips, s.Value+walkBias, s.Value+walkBias+5); len(ips) > 16 {
			break
		}
	}
	mem := memory.New(memory.Run{Addr: walkStack, Data: plausibleStack()})
	for _, ip := range ips {
		if im.Arch() == context.ArchARM64 {
			regs := arm64.Registers{PC: ip &^ 3, Sp: walkStack + 64, Known: context.ARM64All}
			regs.X[29], regs.X[30] = walkStack+128, ip
			checkWalk(t, w.arm, w.plainARM, mods, context.FromARM64(regs), mem, ip&1 != 0)
			continue
		}
		regs := amd64.Registers{RIP: ip, Known: context.AMD64All}
		regs.GPR[context.RSP], regs.GPR[context.RBP] = walkStack+64, walkStack+128
		checkWalk(t, w.x64, w.plainX64, mods, context.FromAMD64(regs), mem, ip&1 != 0)
	}
}

// wholePEs are the seeds and, where there is one, a small DLL of this machine.
func wholePEs(t testing.TB) (ours, hosts []*whole) {
	for _, im := range sorted(seedImages(t)) {
		ours = append(ours, newWholePE("seed", im.file))
	}
	for _, path := range []string{"/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/version.dll",
		"/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/fltlib.dll"} {
		if b := hostFile(path, 256<<10); b != nil {
			hosts = append(hosts, newWholePE(path, b))
		}
	}
	return ours, hosts
}

// peLayout finds the file's bytes at an RVA by its undamaged headers.
type peLayout struct {
	fieldList
	sections, count int
}

func (l *peLayout) offset(rva int) int {
	for i := range l.count {
		s := l.sections + 40*i
		if at := rva - l.u32(s+12); at >= 0 && at < l.u32(s+16) {
			return l.u32(s+20) + at
		}
	}
	return -1
}

func newWholePE(name string, b []byte) *whole {
	l := &peLayout{fieldList: fieldList{data: b}}
	head := l.u32(0x3c)
	l.add(0x3c, 4)
	l.add(head+4, 2, 2, 4, 4, 4, 2, 2)
	opt := head + 24
	l.count, l.sections = l.u16(head+6), opt+l.u16(head+20)
	l.add(opt, 2)
	l.add(opt+24, 8)
	l.add(opt+56, 4, 4)
	l.every(opt+108, 1+2*16, 4)
	for i := range l.count {
		l.add(l.sections+40*i, 8, 4, 4, 4, 4)
	}
	directory := func(i int) (at, size int) {
		return l.offset(l.u32(opt + 112 + 8*i)),
			l.u32(opt + 116 + 8*i)
	}
	for i, n := range [...]int{0: 10, 1: 20, 2: 40, 6: 14} { // words of exports, imports, resources, debug
		if at, size := directory(i); at >= 0 && size != 0 && n != 0 {
			l.every(at, n, 4)
			l.tables(i, at)
		}
	}
	if at, size := directory(3); at >= 0 {
		l.functions(at, size, l.u16(head+4) == pe.MachineARM64)
	}
	return &whole{name, b, l.list}
}

// tables lists what an export or import directory points at.
func (l *peLayout) tables(directory, at int) {
	switch directory {
	case 0:
		for _, table := range []int{28, 32, 36} {
			l.every(l.offset(l.u32(at+table)), min(l.u32(at+24), someRecords), 4)
		}
	case 1:
		l.every(l.offset(l.u32(at)), 16, 8)
	}
}

// functions lists entries of the exception directory and the unwind information
// they lead to.
func (l *peLayout) functions(at, size int, arm bool) {
	entry := peamd64.EntrySize
	if arm {
		entry = pearm64.EntrySize
	}
	for i := range min(size/entry, someRecords) {
		l.every(at+i*entry, entry/4, 4)
		word := l.u32(at + i*entry + entry - 4)
		if !arm || word&3 == 0 {
			l.every(l.offset(word&^3), 24, 1)
		}
	}
}

// FuzzWholePE edits the fields of whole images, and does with them what FuzzPE
// does with any bytes.
func FuzzWholePE(f *testing.F) {
	ours, hosts := wholePEs(f)
	scripts(ours, func(file uint8, script []byte) { f.Add(file, script, uint32(0x1010)) })
	scripts(hosts, func(file uint8, script []byte) { f.Add(hostFileAt+file, script, uint32(0x1010)) })
	w := newWalkers()
	f.Fuzz(func(t *testing.T, file uint8, script []byte, rva uint32) {
		data := choose(ours, hosts, file).edit(script)
		if im, err := pe.FromMemory(data, "raw"); err == nil {
			exerciseImage(t, w, im, len(data), rva)
		}
		if im, err := pe.New(data, "whole"); err == nil {
			exerciseImage(t, w, im, len(data), rva)
		}
	})
}

package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

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
	for _, path := range []string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libz.so.1", "/usr/aarch64-linux-gnu/lib/libdl.so.2", "/lib/x86_64-linux-gnu/libgcc_s.so.1"} {
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

// FuzzWholeELF edits the fields of whole files and reads all there is to read:
// sections, unwind tables and each of their rows, symbols and names, from the
// file and as mapped, and walks out of functions the file names. What FuzzELF
// and FuzzWalk hold holds here.
func FuzzWholeELF(f *testing.F) {
	ours, hosts := wholeELFs(f)
	scripts(ours, func(file uint8, script []byte) { f.Add(file, script, uint64(walkBias+0x1000)) })
	scripts(hosts, func(file uint8, script []byte) { f.Add(hostFileAt+file, script, uint64(walkBias+0x1000)) })
	w := newWalkers()
	f.Fuzz(func(t *testing.T, file uint8, script []byte, ip uint64) {
		data := choose(ours, hosts, file).edit(script)
		im, err := elf.New(data, "whole")
		if (im == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", im, err)
		}
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

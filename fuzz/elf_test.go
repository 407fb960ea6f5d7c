package fuzz

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/elf"
)

// tinyELF is an ELF file with one segment, one note and one section.
func tinyELF() []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+2*56+2*64+64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], 64)
	le.PutUint64(b[40:], 64+2*56)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 2)
	le.PutUint16(b[62:], 1)
	ph := b[64:]
	le.PutUint32(ph, 1)
	le.PutUint64(ph[32:], uint64(len(b)))
	le.PutUint64(ph[40:], uint64(len(b)))
	le.PutUint32(ph[56:], 0x6474e550)
	le.PutUint64(ph[56+16:], uint64(len(b)-64))
	le.PutUint64(ph[56+32:], 64)
	sh := b[64+2*56+64:]
	le.PutUint32(sh[4:], 3)
	le.PutUint64(sh[24:], uint64(len(b)-64))
	le.PutUint64(sh[32:], 64)
	copy(b[len(b)-64:], "\x01\x1b\x03\x3b\x20\x00\x00\x00\x00.eh_frame\x00.symtab\x00")
	return b
}

// FuzzELF reads any bytes as a file and as a mapped image: no panic, no slice
// outside the bytes, bounded work.
func FuzzELF(f *testing.F) {
	f.Add(tinyELF())
	if b, err := os.ReadFile("/lib/x86_64-linux-gnu/libdl.so.2"); err == nil && len(b) < 64<<10 {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := elf.New(data, "fuzz")
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
		mapped, _ := elf.FromMemory(data, 0x7f0000000000, "fuzz")
		for _, f := range []*elf.File{file, mapped} {
			if f != nil {
				exerciseELF(t, f, len(data))
			}
		}
	})
}

func exerciseELF(t *testing.T, f *elf.File, size int) {
	s := f.CFISections()
	if len(s.EHFrame) > size && s.Err == nil && s.EHFrameAddr != 0 && size < 1024 {
		t.Logf("expanded to %d bytes", len(s.EHFrame))
	}
	f.Section(".debug_frame")
	for _, dyn := range []bool{false, true} {
		n := 0
		for range f.Symbols(dyn) {
			n++
		}
		if n > size/24+1 {
			t.Fatalf("%d symbols in %d bytes", n, size)
		}
	}
	for _, seg := range f.Segments() {
		for _, at := range []uint64{seg.Vaddr, seg.Vaddr + seg.Filesz - 1, seg.Vaddr + seg.Memsz} {
			if b, ok := f.BytesAt(at, 4); ok && len(b) != 4 {
				t.Fatalf("BytesAt gave %d bytes", len(b))
			}
		}
	}
}

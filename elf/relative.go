package elf

import (
	"encoding/binary"
	"runtime"

	"github.com/seedwalk/seedwalk/context"
)

// Relocation types that add the image's base to a word.
const (
	relativeAMD64 = 8    // R_X86_64_RELATIVE
	relativeARM64 = 1027 // R_AARCH64_RELATIVE
)

// Relatives yields each word to which the loader adds the image's base: its virtual address, and its
// value before the base is added. It reads the tables that the loader reads, by PT_DYNAMIC: DT_RELA (gABI,
// Elf64_Rela) and DT_RELR (gABI, Elf64_Relr).
func (f *File) Relatives(yield func(addr, value uint64) bool) {
	d := f.dynamic()
	if f.rela(f.dynamicTable(d.rela, d.relasz), yield) {
		f.relr(f.dynamicTable(d.relr, d.relrsz), yield)
	}
	runtime.KeepAlive(f) // both read its bytes
}

// dynamicTable returns the bytes of a table whose address and size are entries of PT_DYNAMIC. It returns less
// than size if the table's segment ends earlier.
func (f *File) dynamicTable(addr, size uint64) []byte {
	b, _ := f.from(f.unrelocate(addr))
	return b[:min(size, uint64(len(b)))]
}

func (f *File) rela(b []byte, yield func(addr, value uint64) bool) bool {
	want := uint32(relativeAMD64)
	if f.Arch() == context.ArchARM64 {
		want = relativeARM64
	}
	for ; len(b) >= 24; b = b[24:] {
		le := binary.LittleEndian
		if uint32(le.Uint64(b[8:])) == want && !yield(le.Uint64(b), le.Uint64(b[16:])) {
			return false
		}
	}
	return true
}

// maxRelrSteps is how many segments relr examines: an image with 12 segments may have 20 million words.
const maxRelrSteps = 1 << 28

// relr reads packed relocations: an even entry is the address of a word, an odd one is a bitmap of
// the 63 words that follow. To find a word, relr examines the segments one by one. After maxRelrSteps of them
// it stops: such an image is not a linker's work.
func (f *File) relr(b []byte, yield func(addr, value uint64) bool) {
	var next uint64
	left := maxRelrSteps / (1 + len(f.segments))
	at := func(addr uint64) bool {
		if left--; left < 0 {
			return false
		}
		word, ok := f.BytesAt(addr, 8)
		return !ok || yield(addr, binary.LittleEndian.Uint64(word))
	}
	for ; len(b) >= 8; b = b[8:] {
		e := binary.LittleEndian.Uint64(b)
		if e&1 == 0 {
			if !at(e) {
				return
			}
			next = e + 8
			continue
		}
		for i := range uint64(63) {
			if e>>(i+1)&1 != 0 && !at(next+8*i) {
				return
			}
		}
		next += 63 * 8
	}
}

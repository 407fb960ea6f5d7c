package elf

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Words that the loader relocates by the base are found by both of their tables: one entry for
// each, or addresses and bitmaps (gABI, Relocation).
func TestRelatives(t *testing.T) {
	const data, symbolic = 0x2000, 6
	words := func(v ...uint64) (b []byte) {
		for _, w := range v {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	for name, machine := range map[string]uint16{"x86-64": elfasm.AMD64, "ARM64": elfasm.ARM64} {
		t.Run(name, func(t *testing.T) {
			relative := uint64(relativeAMD64)
			other := uint64(relativeARM64)
			if machine == elfasm.ARM64 {
				relative, other = other, relative
			}
			var filled []uint64
			for i := range uint64(160) {
				filled = append(filled, 0x100+i)
			}
			im := image{machine: machine}
			im.section(sectionHeader{name: ".data", typ: 1, flags: 2, addr: data}, words(filled...))
			const header = 64 + 56 // of the file, and of one segment; sections lie on multiples of 16
			im.segments = []program{{typ: 1, off: (header + 15) &^ 15, vaddr: data,
				filesz: 160 * 8, memsz: 160 * 8}}
			im.section(sectionHeader{name: ".rela.dyn", typ: 4, addr: 0x400},
				words(0x3000, relative, 0x77, 0x3008, symbolic, 1, 0x3010, other,
					2, 0x3018, relative, 0x88, 9))
			im.section(sectionHeader{name: ".relr.dyn", typ: 19, addr: 0x500},
				words(data, 1<<1|1<<63|1, 1<<2|1, data+150*8, 1<<60|1, data+159*8))
			f := must.Get(New(im.bytes(), "image"))(t)
			got := map[uint64]uint64{}
			f.Relatives(func(addr, value uint64) bool { got[addr] = value; return true })
			// The bitmaps are of words 1 to 63, of 64 to 126, and of one that is not in the file.
			want := map[uint64]uint64{0x3000: 0x77, 0x3018: 0x88,
				data: 0x100, data + 8*1: 0x101, data + 8*63: 0x100 + 63, data + 8*65: 0x100 + 65,
				data + 8*150: 0x100 + 150, data + 8*159: 0x100 + 159}
			d := cmp.Diff(want, got)
			expect.True(t, d == "", "%v", d)
			n := 0
			f.Relatives(func(uint64, uint64) bool { n++; return n < 4 })
			expect.True(t, n == 4, "%d words after a stop at the fourth", n)
		})
	}
}

// A hostile image has many segments, and many words in the last one. relr examines a bounded number of
// segments.
func TestRelativesAreBounded(t *testing.T) {
	const segments, bitmaps, data = 60000, 80, 0x100000
	im := image{machine: elfasm.AMD64}
	im.section(sectionHeader{name: ".data", typ: 1, flags: 2, addr: data}, make([]byte, 8*64*bitmaps))
	const body = (64 + 56*segments + 15) &^ 15 // behind the headers
	for range segments - 1 {
		im.segments = append(im.segments, program{typ: 1, vaddr: 1, filesz: 1, memsz: 1})
	}
	im.segments = append(im.segments, program{typ: 1, off: body, vaddr: data, filesz: 8 * 64 * bitmaps,
		memsz: 8 * 64 * bitmaps})
	relr := binary.LittleEndian.AppendUint64(nil, data)
	for range bitmaps {
		relr = binary.LittleEndian.AppendUint64(relr, ^uint64(0))
	}
	im.section(sectionHeader{name: ".relr.dyn", typ: 19, addr: 0x500}, relr)
	f, n := must.Get(New(im.bytes(), "image"))(t), 0
	f.Relatives(func(uint64, uint64) bool { n++; return true })
	expect.Equal(t, n, maxRelrSteps/(1+segments), "words")
}

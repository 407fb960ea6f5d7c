package elf

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func words(v ...uint64) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// relocated is an image without section headers, as sstrip makes it. Its last segment, at data, has the given
// bytes, the tables of relocations, and PT_DYNAMIC, which names the tables (gABI, Dynamic Section).
func relocated(machine uint16, segments int, data uint64, bytes, rela, relr []byte) []byte {
	const dtNull, dtRela, dtRelasz, dtRelrsz, dtRelr = 0, 7, 8, 35, 36
	relaAt := data + uint64(len(bytes))
	relrAt := relaAt + uint64(len(rela))
	dynamicAt := uint64(len(bytes) + len(rela) + len(relr))
	dynamic := words(dtRela, relaAt, dtRelasz, uint64(len(rela)), dtRelr, relrAt, dtRelrsz, uint64(len(relr)),
		dtNull, 0)
	all := slices.Concat(bytes, rela, relr, dynamic)
	body := (64 + 56*uint64(segments+1) + 15) &^ 15 // behind the headers
	im := image{machine: machine}
	for range segments - 1 {
		im.segments = append(im.segments, program{typ: 1, vaddr: 1, filesz: 1, memsz: 1})
	}
	im.segments = append(im.segments, program{typ: 1, off: body, vaddr: data, filesz: uint64(len(all)),
		memsz: uint64(len(all))}, program{typ: 2, off: body + dynamicAt, vaddr: data + dynamicAt,
		filesz: uint64(len(dynamic)), memsz: uint64(len(dynamic))})
	im.section(sectionHeader{name: ".data", typ: 1, flags: 2, addr: data}, all)
	raw := im.bytes()
	binary.LittleEndian.PutUint64(raw[40:], 0) // e_shoff
	return raw
}

// Words that the loader relocates by the base are found by both of their tables: one entry for
// each, or addresses and bitmaps (gABI, Relocation).
func TestRelatives(t *testing.T) {
	const data, symbolic = 0x2000, 6
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
			rela := words(0x9000, relative, 0x77, 0x9008, symbolic, 1, 0x9010, other,
				2, 0x9018, relative, 0x88, 9)
			relr := words(data, 1<<1|1<<63|1, 1<<2|1, data+150*8, 1<<60|1, data+159*8)
			f := must.Get(New(relocated(machine, 1, data, words(filled...), rela, relr), "image"))(t)
			got := map[uint64]uint64{}
			f.Relatives(func(addr, value uint64) bool { got[addr] = value; return true })
			// The bitmaps are of words 1 to 63, of 64 to 126, and of one that is not in the segment's words.
			want := map[uint64]uint64{0x9000: 0x77, 0x9018: 0x88,
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
	relr := words(data)
	for range bitmaps {
		relr = append(relr, words(^uint64(0))...)
	}
	raw := relocated(elfasm.AMD64, segments, data, make([]byte, 8*64*bitmaps), nil, relr)
	f, n := must.Get(New(raw, "image"))(t), 0
	f.Relatives(func(uint64, uint64) bool { n++; return true })
	expect.Equal(t, n, maxRelrSteps/(1+segments), "words")
}

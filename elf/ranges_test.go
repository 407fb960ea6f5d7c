package elf

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestSegmentWraps: a segment whose range wraps, in memory or in the file, is
// not there.
func TestSegmentWraps(t *testing.T) {
	for _, c := range []struct {
		name string
		p    program
		want int
	}{
		{"none", program{typ: ptLoad, off: 0, vaddr: 0x1000, filesz: 16, memsz: 16}, 1},
		{"in memory", program{typ: ptLoad, off: 0, vaddr: ^uint64(0) - 7, filesz: 16, memsz: 16}, 0},
		{"in the file", program{typ: ptLoad, off: ^uint64(0) - 7, vaddr: 0x1000, filesz: 16, memsz: 16}, 0},
	} {
		f := mustNew(t, (&image{segments: []program{c.p}}).bytes())
		expect.True(t, len(f.Segments()) == c.want && (len(f.Problems()) == 0) == (c.want == 1),
			"%s: %d segments, %v", c.name, len(f.Segments()), f.Problems())
	}
}

// TestSectionOutside: a section begins inside the file and ends outside.
func TestSectionOutside(t *testing.T) {
	var im image
	im.section(sectionHeader{name: ".eh_frame", typ: 1}, make([]byte, 64))
	data := im.bytes()
	head := binary.LittleEndian.Uint64(data[40:]) + 64
	binary.LittleEndian.PutUint64(data[head+32:], uint64(len(data)))
	var fe *FormatError
	b, _, err := mustNew(t, data).Section(".eh_frame")
	expect.True(t, b == nil && errors.As(err, &fe), "%d bytes, %v", len(b), err)
}

// TestMappedOffset: a segment is in memory at its address, not at its offset.
func TestMappedOffset(t *testing.T) {
	im := image{segments: []program{
		{typ: ptLoad, off: 0, vaddr: 0x1000, filesz: 0x200, memsz: 0x200},
		{typ: ptLoad, flags: 5, off: 0x80, vaddr: 0x1400, filesz: 0x20, memsz: 0x20},
	}}
	data := make([]byte, 0x420)
	copy(data, im.bytes())
	copy(data[0x400:], "code")
	f := must.Get(FromMemory(data, 0x7000_0000, "mapped"))(t)
	b, ok := f.BytesAt(0x1400, 4)
	expect.True(t, ok && string(b) == "code", "%q, %v", b, ok)
}

// TestEHFramePtrSigned: frames may lie before their header.
func TestEHFramePtrSigned(t *testing.T) {
	back := int32(-0x100)
	hdr := binary.LittleEndian.AppendUint32([]byte{1, 0x1b, 3, 0x3b}, uint32(back))
	at, ok := ehFramePtr(hdr, 0x5000)
	expect.True(t, ok && at == 0x5004-0x100, "%#x, %v", at, ok)
}

// TestNoteBeforeBuildID: notes with names and descriptions of any length precede
// the build id's.
func TestNoteBeforeBuildID(t *testing.T) {
	for _, align := range []int{4, 8} {
		notes := append(note("odd\x00s", 1, []byte("abc"), align),
			note("GNU\x00", noteBuildID, []byte{0xab, 0xcd}, align)...)
		var im image
		im.section(sectionHeader{name: ".note", typ: shtNote, addrAlign: uint64(align)}, notes)
		expect.Equal(t, mustNew(t, im.bytes()).BuildID(), "abcd", "aligned to %d: build id", align)
	}
}

// TestFilePart: bytes that a segment has only in memory are not read from the
// bytes after it in the file.
func TestFilePart(t *testing.T) {
	im := image{segments: []program{{typ: ptLoad, off: 0, vaddr: 0x1000, filesz: 0x40, memsz: 0x100}}}
	f := mustNew(t, im.bytes())
	b, ok := f.from(0x1030)
	expect.True(t, ok && len(b) == 0x10, "%d bytes, %v", len(b), ok)
}

// TestManyPrograms: the count of more than 65,534 program headers is in section 0.
func TestManyPrograms(t *testing.T) {
	im := image{segments: []program{{typ: ptLoad, vaddr: 0x1000, memsz: 16, filesz: 16},
		{typ: ptLoad, vaddr: 0x3000, memsz: 16, filesz: 16}}}
	im.section(sectionHeader{name: ".text", typ: 1}, []byte("x"))
	b := im.bytes()
	shoff := binary.LittleEndian.Uint64(b[40:])
	binary.LittleEndian.PutUint16(b[56:], 0xffff)
	binary.LittleEndian.PutUint32(b[shoff+44:], 2)
	f := mustNew(t, b)
	expect.True(t, len(f.Segments()) == 2 && len(f.Problems()) == 0,
		"%d segments, %v", len(f.Segments()), f.Problems())
}

// editDynamic calls edit with each entry of a file's dynamic section.
func editDynamic(t *testing.T, data []byte, edit func(entry []byte)) {
	t.Helper()
	f := mustNew(t, data)
	for i := range f.programs {
		p := &f.programs[i]
		for at := p.off; p.typ == ptDynamic && at+16 <= p.off+p.filesz; at += 16 {
			edit(data[at : at+16])
		}
	}
}

// TestNamesEnd: without section headers, names end where the dynamic section says.
func TestNamesEnd(t *testing.T) {
	data := readHost(t)
	clear(data[40:48]) // no section headers
	clear(data[58:64])
	editDynamic(t, data, func(entry []byte) {
		if entry[0] == dtStrsz {
			binary.LittleEndian.PutUint64(entry[8:], 8)
		}
	})
	for s := range mustNew(t, data).Symbols(true) {
		must.True(t, len(s.Name) <= 8, "%q lies behind the names", s.Name)
	}
}

// Pointers relative to data count from .got.plt. In an image without one, they count from .got.
func TestDataAddress(t *testing.T) {
	for _, c := range []struct {
		sections []string
		want     uint64
	}{{[]string{".got", ".got.plt"}, 0x2000}, {[]string{".got"}, 0x1000}, {nil, 0}} {
		var im image
		for i, name := range c.sections {
			im.section(sectionHeader{name: name, typ: 1, addr: uint64(i+1) << 12}, make([]byte, 8))
		}
		expect.Equal(t, mustNew(t, im.bytes()).CFISections().DataAddr, c.want, "%q", c.sections)
	}
}

// TestDynamicEnds: words behind the first DT_NULL, which linkers leave as room, do not count.
func TestDynamicEnds(t *testing.T) {
	data, behind, edited := readHost(t), false, 0
	clear(data[40:48])
	clear(data[58:64])
	want := mustNew(t, data).dynamic()
	editDynamic(t, data, func(entry []byte) {
		if behind {
			binary.LittleEndian.PutUint64(entry, dtSymtab)
			binary.LittleEndian.PutUint64(entry[8:], 1)
			edited++
		}
		behind = behind || binary.LittleEndian.Uint64(entry) == 0
	})
	if got := mustNew(t, data).dynamic(); got != want || want.symtab == 0 || edited == 0 {
		t.Errorf("%+v, want %+v, with %d words behind the end", got, want, edited)
	}
}

// TestHeaderBelowSegments: if no segment begins with the file, the ELF header is as far below the first
// segment in memory as it is in the file.
func TestHeaderBelowSegments(t *testing.T) {
	im := image{segments: []program{{typ: ptLoad, off: 0x40, vaddr: 0x5040, memsz: 16, filesz: 16}}}
	f, err := FromMemory(im.bytes(), 0x7f0000000000, "mapped")
	expect.True(t, err == nil && f.Bias() == 0x7f0000000000-0x5000, "bias %#x, %v", f.Bias(), err)
}

// TestEHFramePtrDatarel: a pointer that counts from the beginning of the header.
func TestEHFramePtrDatarel(t *testing.T) {
	for enc, want := range map[byte]uint64{0x3b: 0x2010, 0x1b: 0x2014} {
		got, ok := ehFramePtr([]byte{1, enc, 3, 0x3b, 0x10, 0, 0, 0}, 0x2000)
		expect.True(t, ok && got == want, "%#x: %#x, %v, want %#x", enc, got, ok, want)
	}
}

// TestSymbolsWithoutSections: the hash table that the dynamic section names says how many symbols
// there are, as the section does.
func TestSymbolsWithoutSections(t *testing.T) {
	data := readHost(t)
	count := func() (n int) {
		for range mustNew(t, data).Symbols(true) {
			n++
		}
		return n
	}
	want := count()
	clear(data[40:48])
	clear(data[58:64])
	got := count()
	expect.True(t, got == want && want != 0, "%d symbols by the dynamic section, %d by sections", got, want)
	editDynamic(t, data, func(entry []byte) {
		if binary.LittleEndian.Uint64(entry) == dtHash {
			entry[0] = 21 // DT_DEBUG
		}
	})
	got = count()
	expect.True(t, got == want, "%d symbols by GNU's hash table, %d by sections", got, want)
}

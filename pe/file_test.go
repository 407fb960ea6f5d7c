package pe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestFile(t *testing.T) {
	im := sample()
	path := filepath.Join(tempdir.New(t), "a.dll")
	must.Do(t, os.WriteFile(path, im.Bytes(), 0o600))
	opened := must.Get(Open(path))(t)
	mapped := must.Get(FromMemory(im.Mapped(), "mapped"))(t)
	for name, f := range map[string]*File{"file": opened, "mapped": mapped} {
		t.Run(name, func(t *testing.T) { checkSample(t, f) })
	}
	expect.True(t, opened.Section(".debug_frame") != nil,
		"the long section name is not read through the string table")
	d := opened.DWARF()
	expect.True(t, bytes.Equal(d.EHFrame, []byte{0, 0, 0, 0}) && d.EHFrameAddr == testBase+0x6000 &&
		bytes.Equal(d.DebugFrame, []byte{1, 2, 3, 4}) && d.DebugFrameAddr == testBase+0x7000 &&
		d.TextAddr == testBase+0x1000, "DWARF sections: %+v", d)
}

func checkSample(t *testing.T, f *File) {
	expect.True(t, f.Machine() == MachineAMD64 && f.ImageBase() == testBase && f.SizeOfImage() == 0x8000 &&
		len(f.Sections()) == 6 && len(f.Problems()) == 0,
		"headers: %#x %#x %#x %d %v", f.Machine(), f.ImageBase(), f.SizeOfImage(), len(f.Sections()),
		f.Problems())
	id, ok := f.DebugID()
	want := "0403020106050807090A0B0C0D0E0F102A"
	expect.True(t, ok && id.String() == want && id.PDB == `C:\x\y.pdb`, "debug id %v %s %q", ok, id, id.PDB)
	exports, err := f.Exports()
	expect.Equal(t, fmt.Sprint(exports, err), "[{Alpha 4096 5 } {Beta 0 6 OTHER.Beta} {Gamma 4112 7 }] <nil>",
		"exports")
	fn, why := f.AMD64().Find(0x1011)
	expect.True(t, why == amd64.OK && fn.Unwind == 0x4004, "function %+v, %v", fn, why)
	i, fault := f.AMD64().Info(0x4004)
	expect.True(t, fault.OK() && i.Prolog == 4 && i.Count == 1, "info %+v, %v", i, fault)
}

func TestBytesAt(t *testing.T) {
	f := must.Get(New(sample().Bytes(), "x"))(t)
	for _, c := range []struct {
		name string
		rva  uint32
		n    int
		ok   bool
	}{
		{"headers", 0, 2, true},
		{"last byte of the headers", testHeaders - 1, 1, true},
		{"between headers and section", testHeaders, 1, false},
		{"section", 0x1000, 0x100, true},
		{"past its data", 0x1000, 0x101, false},
		{"bytes only memory has", 0x4000 + 12, 1, false},
		{"negative", 0x1000, -1, false},
		{"nothing", 0x1000, 0, true},
		{"top of the address space", 0xffffffff, 2, false},
	} {
		b, ok := f.BytesAt(c.rva, c.n)
		if ok != c.ok || ok && len(b) != c.n {
			t.Errorf("%s: %d bytes, %v", c.name, len(b), ok)
		}
	}
	b := f.Tail(0x10fe, 16)
	expect.True(t, len(b) == 2, "tail of %d bytes, want 2", len(b))
}

// TestBlocksOverlap: the block that begins later applies, and blocks end at 4 GiB.
func TestBlocksOverlap(t *testing.T) {
	f := FromBlocks(MachineAMD64, nil,
		[]Block{{RVA: 0x20, Data: []byte{9}}, {RVA: 0x10, Data: make([]byte, 0x20)},
			{RVA: 0xfffffffe, Data: make([]byte, 8)}})
	b, ok := f.BytesAt(0x20, 1)
	expect.True(t, ok && b[0] == 9, "at 20h: %v %v", b, ok)
	_, ok = f.BytesAt(0x21, 1)
	expect.True(t, !ok, "the earlier block shows behind the later one")
	b = f.Tail(0xfffffffe, 8)
	expect.True(t, len(b) == 2, "%d bytes below 4 GiB, want 2", len(b))
}

func TestArch(t *testing.T) {
	for _, c := range []struct {
		machine uint16
		arch    context.Arch
		unix    bool
	}{
		{0x8664, context.ArchAMD64, false}, {0xaa64, context.ArchARM64, false},
		{0xfd1d, context.ArchAMD64, true}, {0xd11d, context.ArchARM64, true},
		{0xc020, context.ArchAMD64, true}, {0xec20, context.ArchARM64, true},
		{0x14c, context.NoArch, false}, {0, context.NoArch, false},
	} {
		f := FromBlocks(c.machine, nil, nil)
		a, unix := f.Arch()
		expect.True(t, a == c.arch && unix == c.unix, "%#x: %v %v", c.machine, a, unix)
	}
}

func TestPE32(t *testing.T) {
	im := sample()
	im.PE32, im.Machine = true, 0x14c
	f, err := New(im.Bytes(), "x")
	must.True(t, err == nil && f.ImageBase() == testBase&0xffffffff, "%v", err)
	id, ok := f.DebugID()
	expect.True(t, ok && id.Age == 0x2a, "no debug id")
	if _, ok := f.AMD64().Lookup(0x1000); ok || f.AMD64().Len() != 0 {
		t.Error("the exception directory of another architecture is read as x64's")
	}
}

// TestTruncated cuts an image at every length. The result is a *FormatError, or
// an image whose contents can be read without a panic.
func TestTruncated(t *testing.T) {
	full, refused := sample().Bytes(), 0
	for n := range full {
		f, err := New(full[:n:n], "cut")
		var fe *FormatError
		switch {
		case err == nil:
			askAll(f)
		case !errors.As(err, &fe) || fe.Reason == OK || f != nil:
			t.Fatalf("%d bytes: %v", n, err)
		default:
			refused++
		}
	}
	expect.True(t, refused >= peasm.Signature+24, "only %d lengths refused", refused)
	full = sample().Mapped()
	for n := range full[:0x3200] {
		if f, err := FromMemory(full[:n:n], "cut"); err == nil {
			askAll(f)
		}
	}
}

// TestFlipped sets every byte of the headers to some values.
func TestFlipped(t *testing.T) {
	full := sample().Bytes()
	for i := range testHeaders {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			was := full[i]
			full[i] = v
			if f, err := New(full, "flipped"); err == nil {
				askAll(f)
			}
			full[i] = was
		}
	}
}

// askAll calls the methods that read an image's contents.
func askAll(f *File) {
	f.Exports()
	f.DebugID()
	f.DWARF()
	f.Problems()
	for i := range min(f.AMD64().Len(), 100) {
		e := f.AMD64().Entry(i)
		f.AMD64().Check(e)
		f.AMD64().Find(e.Begin)
	}
}

func TestHeaderErrors(t *testing.T) {
	change := func(at int, v ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], v); return b }
	}
	for _, c := range []struct {
		name      string
		edit      func([]byte) []byte
		structure string
		why       Reason
	}{
		{"empty", func([]byte) []byte { return nil }, "DOS header", Short},
		{"no MZ", change(0, 'Z'), "DOS header", NotPE},
		{"PE header past the end", change(0x3c, 0xff, 0xff, 0xff, 0xff), "COFF header", Short},
		{"no PE", change(0x81, 'F'), "PE signature", NotPE},
		{"optional header of no bytes", change(0x94, 0, 0), "optional header", NotOptional},
		{"optional header cut", change(0x94, 60, 0), "optional header", Short},
		{"unknown magic", change(0x98, 7, 1), "optional header", NotOptional},
		{"65535 sections", change(0x86, 0xff, 0xff), "section table", Short},
	} {
		f, err := New(c.edit(sample().Bytes()), c.name)
		var fe *FormatError
		expect.True(t, errors.As(err, &fe) && fe.Structure == c.structure && fe.Reason == c.why && f == nil,
			"%s: %v", c.name, err)
	}
	_, err := Open(tempdir.New(t))
	expect.True(t, err != nil, "a folder is opened")
}

func TestExportErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int // in .rdata
		v    uint32
		why  Reason
	}{
		{"four thousand million names", 24, 0xffffffff, Outside},
		{"more functions than bytes", 20, 0x10000000, Outside},
		{"names outside", 32, 0x9000, Outside},
		{"ordinal past the functions", 0x60, 7, Outside},
		{"name outside", 0x50, 0x9000, BadString},
	} {
		im := sample()
		put32(im.Sections[2].Data(), c.at, c.v)
		f, err := New(im.Bytes(), c.name)
		must.Do(t, err)
		_, err = f.Exports()
		var fe *FormatError
		expect.True(t, errors.As(err, &fe) && fe.Reason == c.why, "%s: %v", c.name, err)
	}
}

func TestProblems(t *testing.T) {
	im := sample()
	im.Dirs[dirException] = peasm.Directory{RVA: 0x2000, Size: 0x4000}
	f := must.Get(New(im.Bytes(), "x"))(t)
	var fe *FormatError
	expect.True(t, len(f.Problems()) == 1 && errors.As(f.Problems()[0], &fe) &&
		fe.Structure == "exception directory" && fe.Value == 0x4000, "problems: %v", f.Problems())
	expect.True(t, f.AMD64().Len() == 2, "%d entries, want the 2 that are there", f.AMD64().Len())
}

// What the images of package peasm have everywhere.
const (
	testBase    = peasm.Base
	testHeaders = peasm.Headers
)

func put16(b []byte, at int, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// oneSection is an image of one section, which is the directory.
func oneSection(name string, rva uint32, data []byte, directory int, size uint32) *peasm.File {
	return &peasm.File{Sections: []*peasm.Section{peasm.Raw(name, rva, data)},
		Dirs: map[int]peasm.Directory{directory: {RVA: rva, Size: size}}}
}

// pdata writes words.
func pdata(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// sample is an image with something of everything.
func sample() *peasm.File {
	rdata := make([]byte, 0x300)
	put32(rdata, 16, 5)      // ordinal base
	put32(rdata, 20, 3)      // functions
	put32(rdata, 24, 3)      // names
	put32(rdata, 28, 0x3040) // addresses
	put32(rdata, 32, 0x3050) // names
	put32(rdata, 36, 0x3060) // ordinals
	for i, rva := range []uint32{0x1000, 0x30a0, 0x1010} {
		put32(rdata, 0x40+4*i, rva)
	}
	for i, rva := range []uint32{0x3080, 0x3088, 0x3090} {
		put32(rdata, 0x50+4*i, rva)
	}
	for i, o := range []uint16{0, 1, 2} {
		put16(rdata, 0x60+2*i, o)
	}
	copy(rdata[0x80:], "Alpha\x00\x00\x00Beta\x00\x00\x00\x00Gamma")
	copy(rdata[0xa0:], "OTHER.Beta")
	put32(rdata, 0x100+28+12, 2) // second debug entry is CodeView
	put32(rdata, 0x100+28+16, 48)
	put32(rdata, 0x100+28+20, 0x3180)
	copy(rdata[0x180:], "RSDS")
	for i := range 16 {
		rdata[0x184+i] = byte(i + 1)
	}
	put32(rdata, 0x194, 0x2a)
	copy(rdata[0x198:], `C:\x\y.pdb`)
	return &peasm.File{
		Sections: []*peasm.Section{
			peasm.Raw(".text", 0x1000, make([]byte, 0x100)),
			peasm.Raw(".pdata", 0x2000, pdata(0x1000, 0x1010, 0x4000, 0x1010, 0x1020, 0x4004)),
			peasm.Raw(".rdata", 0x3000, rdata),
			virtual(peasm.Raw(".xdata", 0x4000, []byte{1, 0, 0, 0, 1, 4, 1, 0, 4, 0x42, 0, 0}), 0x2000),
			virtual(peasm.Raw(".eh_frame", 0x6000, []byte{0, 0, 0, 0, 9, 9, 9, 9}), 4),
			peasm.Raw(".debug_frame", 0x7000, []byte{1, 2, 3, 4}),
		},
		Dirs: map[int]peasm.Directory{dirExport: {RVA: 0x3000, Size: 0xc0},
			dirException: {RVA: 0x2000, Size: 24}, dirDebug: {RVA: 0x3100, Size: 56}},
	}
}

func virtual(s *peasm.Section, size uint32) *peasm.Section { s.Virtual = size; return s }

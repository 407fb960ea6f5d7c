package pe

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
)

// TestForwarderEdge: an address after the export directory is no forwarder, but one at its
// last byte is.
func TestForwarderEdge(t *testing.T) {
	const rva, size = 0x2000, 0x60
	for _, c := range []struct {
		at      uint32
		forward bool
	}{{rva + size - 1, true}, {rva + size, false}} {
		b := make([]byte, 0x100)
		put32(b, 16, 7) // ordinal base
		put32(b, 20, 1)
		put32(b, 24, 1)
		put32(b, 28, rva+0x28)
		put32(b, 32, rva+0x2c)
		put32(b, 36, rva+0x30)
		put32(b, 0x28, c.at)
		put32(b, 0x2c, rva+0x34)
		copy(b[0x34:], "Name")
		copy(b[size-1:], "A.B")
		f, err := New(oneSection(".edata", rva, b, dirExport, size).Bytes(), "a.dll")
		must.Do(t, err)
		got, err := f.Exports()
		want := Export{Name: "Name", Ordinal: 7, RVA: c.at}
		if c.forward {
			want.RVA, want.Forward = 0, "A.B"
		}
		expect.True(t, err == nil && len(got) == 1 && got[0] == want,
			"%#x: %+v, %v, want %+v", c.at, got, err, want)
	}
}

// TestVirtualSize: of a section's bytes in the file, those after its last page are not mapped.
func TestVirtualSize(t *testing.T) {
	for virtually, want := range map[uint32]int{0x10: 0x1000, 0x1001: 0x2000, 0x9000: 0x3000, 0: 0x3000} {
		im := peasm.File{Sections: []*peasm.Section{virtual(peasm.Raw(".x", 0x1000, make([]byte, 0x3000)),
			virtually)}}
		b := im.Bytes()
		if virtually == 0 { // as some linkers leave it
			at := bytes.Index(b, []byte(".x\x00"))
			put32(b, at+8, 0)
		}
		f := must.Get(New(b, "a.dll"))(t)
		expect.Equal(t, len(f.Tail(0x1000, 0x8000)), want, "a section of %#x bytes: are mapped", virtually)
	}
}

// TestDebugRecords: a record may be in the file only, and records of other kinds are skipped.
func TestDebugRecords(t *testing.T) {
	record := func(b []byte, at int, magic, path string) {
		copy(b[at:], magic)
		b[at+4] = 1
		put32(b, at+20, 9)
		copy(b[at+24:], path)
	}
	for _, c := range []struct {
		name string
		rva  uint32
		skip bool // behind a record of another kind
	}{{"in the file", 0, false}, {"mapped", 0x2100, false}, {"behind another kind", 0x2100, true}} {
		b := make([]byte, 0x200)
		entry := 0
		if c.skip {
			put32(b, 12, debugCodeView)
			put32(b, 16, 48)
			put32(b, 20, 0x2180)
			record(b, 0x180, "NB10", "b.pdb")
			entry = debugEntry
		}
		put32(b, entry+12, debugCodeView)
		put32(b, entry+16, 48)
		put32(b, entry+20, c.rva)
		put32(b, entry+24, testHeaders+0x100)
		record(b, 0x100, "RSDS", "a.pdb")
		f := must.Get(New(oneSection(".rdata", 0x2000, b, dirDebug, uint32(entry+debugEntry)).Bytes(),
			"a.dll"))(t)
		id, ok := f.DebugID()
		expect.True(t, ok && id.PDB == "a.pdb" && id.Age == 9, "%s: %+v, %v", c.name, id, ok)
	}
}

// TestCompressedFrames: Go's linker states the size of a compressed section in the file's size
// only.
func TestCompressedFrames(t *testing.T) {
	want := bytes.Repeat([]byte{1, 2, 3, 4}, 100)
	var z bytes.Buffer
	z.WriteString("ZLIB")
	binary.Write(&z, binary.BigEndian, uint64(len(want)))
	w := zlib.NewWriter(&z)
	w.Write(want)
	w.Close()
	const long = ".zdebug_frame"
	im := peasm.File{Sections: []*peasm.Section{virtual(peasm.Raw("/4", 0x1000, z.Bytes()), 1)}}
	b := im.Bytes()
	pe := int(u32(b[0x3c:]))
	put32(b, pe+12, uint32(len(b))) // an empty symbol table, and the strings behind it
	b = binary.LittleEndian.AppendUint32(b, uint32(4+len(long)+1))
	b = append(append(b, long...), 0)
	f := must.Get(New(b, "go.exe"))(t)
	if d := f.DWARF(); !bytes.Equal(d.DebugFrame, want) || !d.Compressed || d.Err != nil {
		t.Errorf("%d bytes, compressed %v, %v", len(d.DebugFrame), d.Compressed, d.Err)
	}
}

// TestBudget: the image's size bounds its names and functions, of a file and of a mapped image.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name string
		f    *File
		text int
	}{
		{"nothing", &File{}, 1 << 16},
		{"a file", &File{raw: make([]byte, 1000), runs: []Block{{RVA: 0, Data: make([]byte, 1<<20)}}},
			1<<16 + 8000},
		{"blocks", &File{runs: []Block{{RVA: 0, Data: make([]byte, 100)},
			{RVA: 1000, Data: make([]byte, 900)}}}, 1<<16 + 8000},
		{"a large file", &File{raw: make([]byte, 1<<22)}, maxText},
	} {
		expect.Equal(t, c.f.textRoom(), c.text, "%s: bytes of names", c.name)
	}
}

// TestImportsOfOneTable: DLLs that share one table of functions import no more than the image
// has room for.
func TestImportsOfOneTable(t *testing.T) {
	b := make([]byte, 0x1000)
	for i := 0; i+importSize <= 0x800; i += importSize {
		put32(b, i, importRVA+0x800)
		put32(b, i+12, importRVA+0xff0)
	}
	for i := 0x800; i < 0xff0; i += 8 {
		put64(b, i, 1<<63|7)
	}
	im := oneSection(".idata", importRVA, b, peasm.Import, 40)
	f, err := New(im.Bytes(), "a.dll")
	must.Do(t, err)
	got, err := f.Imports()
	n := 0
	for i := range got {
		n += len(got[i].Ordinals)
	}
	if fe, ok := err.(*FormatError); !ok || fe.Reason != TooLarge || n > f.bytes()/minThunk || n < 254 {
		t.Errorf("%d functions of an image of %d bytes, %v", n, f.bytes(), err)
	}
}

// TestNamesOfDLLs: DLLs that share a long name are not all kept.
func TestNamesOfDLLs(t *testing.T) {
	b := make([]byte, 0x3000)
	for i := 0; i+importSize <= 0x1f00; i += importSize {
		put32(b, i, importRVA+0x1f80) // no function
		put32(b, i+12, importRVA+0x2000)
	}
	for i := range maxName - 1 {
		b[0x2000+i] = 'x'
	}
	f := importFile(t, false, b, 40)
	got, err := f.Imports()
	if fe, ok := err.(*FormatError); !ok || fe.Reason != TooLarge || len(got) > f.textRoom()/(maxName-1)+1 {
		t.Errorf("%d DLLs, %v", len(got), err)
	}
}

// TestAuxiliarySymbols: the records that follow a symbol are no symbols.
func TestAuxiliarySymbols(t *testing.T) {
	symbol := func(name string, value uint32, aux byte) []byte {
		b := make([]byte, symbolSize)
		copy(b, name)
		put32(b, 8, value)
		b[12], b[14], b[17] = 1, symbolFunction, aux
		return b
	}
	b := oneSection(".text", 0x1000, make([]byte, 0x100), dirExport, 0).Bytes()
	coff := binary.LittleEndian.Uint32(b[0x3c:])
	put32(b, int(coff)+12, uint32(len(b)))
	put32(b, int(coff)+16, 3)
	b = slices.Concat(b, symbol("first", 0x10, 1), symbol("none", 0x20, 0), symbol("last", 0x30, 0),
		[]byte{4, 0, 0, 0})
	f := must.Get(New(b, "a.dll"))(t)
	expect.Slices(t, f.Functions(), []Function{{"first", 0x1010}, {"last", 0x1030}})
}

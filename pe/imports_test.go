package pe

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
)

const importRVA = 0x1000

// importSection writes the import directory of one DLL: a function by name, one
// by ordinal, or what the caller makes of it.
func importSection(wide bool, edit func([]byte)) []byte {
	b := make([]byte, 0x100)
	put32(b, 0, importRVA+0x40)  // OriginalFirstThunk
	put32(b, 12, importRVA+0x80) // Name
	put32(b, 16, importRVA+0x60) // FirstThunk: not what must be read
	if wide {
		put64(b, 0x40, importRVA+0xa0)
		put64(b, 0x48, 1<<63|7)
	} else {
		put32(b, 0x40, importRVA+0xa0)
		put32(b, 0x44, 1<<31|7)
	}
	put64(b, 0x60, importRVA+0xc0)
	copy(b[0x80:], "kernel32.dll")
	copy(b[0xa0:], "\x05\x00ExitProcess")
	copy(b[0xc0:], "\x05\x00Bound")
	if edit != nil {
		edit(b)
	}
	return b
}

func importFile(t *testing.T, pe32 bool, section []byte, size uint32) *File {
	t.Helper()
	im := oneSection(".idata", importRVA, section, peasm.Import, size)
	im.PE32 = pe32
	return must.Get(New(im.Bytes(), "a.dll"))(t)
}

func TestImports(t *testing.T) {
	for _, pe32 := range []bool{false, true} {
		got, err := importFile(t, pe32, importSection(!pe32, nil), 40).Imports()
		expect.True(t, err == nil && len(got) == 1 && got[0].DLL == "kernel32.dll" &&
			slices.Equal(got[0].Names, []string{"ExitProcess"}) && slices.Equal(got[0].Ordinals, []uint16{7}),
			"PE32 %v: %+v, %v", pe32, got, err)
	}
	got, err := importFile(t, false, importSection(true, func(b []byte) { put32(b, 0, 0) }), 40).Imports()
	expect.True(t, err == nil && len(got) == 1 && slices.Equal(got[0].Names, []string{"Bound"}),
		"without OriginalFirstThunk: %+v, %v", got, err)
	got, err = importFile(t, false, importSection(true, nil), 0).Imports()
	expect.True(t, got == nil && err == nil, "no directory: %v, %v", got, err)
}

func TestImportsDamaged(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func([]byte)
		want Reason
	}{
		{"name outside", func(b []byte) { put32(b, 12, 0x9000) }, BadString},
		{"thunks outside", func(b []byte) { put32(b, 0, 0x9000) }, Outside},
		{"function outside", func(b []byte) { put64(b, 0x40, 0x9000) }, BadString},
		{"no thunks", func(b []byte) { put32(b, 0, 0); put32(b, 16, 0) }, Outside},
	} {
		_, err := importFile(t, false, importSection(true, c.edit), 40).Imports()
		fe, ok := err.(*FormatError)
		expect.True(t, ok && fe.Reason == c.want, "%s: %v, want %v", c.name, err, c.want)
	}
	cut := importSection(true, nil)[:0x14] // a descriptor, and the file ends
	_, err := importFile(t, false, append(cut, 0, 0, 0, 0), 40).Imports()
	expect.True(t, err != nil, "a directory that runs out of its section is read")
}

// A small image whose tables overlap is not read without end.
func TestImportsWithoutEnd(t *testing.T) {
	b := make([]byte, 0x20000)
	for i := 0; i+importSize <= 0x8000; i += importSize {
		put32(b, i, importRVA+0x8000) // all have the same functions
		put32(b, i+12, importRVA+0x18000)
	}
	for i := 0x8000; i < 0x17ff8; i += 8 {
		put64(b, i, importRVA+0x18000-hintSize) // all of the same name
	}
	for i := 0x18000; i < 0x18000+4000; i++ {
		b[i] = 'x'
	}
	f := importFile(t, false, b, 40)
	got, err := f.Imports()
	fe, ok := err.(*FormatError)
	total := 0
	for i := range got {
		for _, n := range got[i].Names {
			total += len(n)
		}
	}
	expect.True(t, ok && fe.Reason == TooLarge && total <= f.textRoom()+maxName,
		"%d bytes of names, %v", total, err)
}

const resourceRVA = 0x2000

// versionSection writes three levels of directories with an icon before the
// version.
func versionSection(edit func([]byte)) []byte {
	b := make([]byte, 0x100)
	directory := func(at int, entries ...uint32) {
		binary.LittleEndian.PutUint16(b[at+14:], uint16(len(entries)/2))
		for i, v := range entries {
			put32(b, at+16+4*i, v)
		}
	}
	directory(0, 3, 1<<31|0xf0, 16, 1<<31|0x20)
	directory(0x20, 1, 1<<31|0x40)
	directory(0x40, 1033, 0x60)
	put32(b, 0x60, resourceRVA+0x70)
	put32(b, 0x64, 92)
	put32(b, 0x70+40, versionSignature)
	put32(b, 0x70+48, 4<<16|6)
	put32(b, 0x70+52, 27317<<16|7)
	if edit != nil {
		edit(b)
	}
	return b
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func([]byte)
		ok   bool
	}{
		{"whole", nil, true},
		{"no version among the types", func(b []byte) { put32(b, 24, 17) }, false},
		{"a type that is no directory", func(b []byte) { put32(b, 28, 0x20) }, false},
		{"a language that is a directory", func(b []byte) { put32(b, 0x54, 1<<31|0x40) }, false},
		{"a directory outside", func(b []byte) { put32(b, 28, 1<<31|0x9000) }, false},
		{"an empty directory", func(b []byte) { put16(b, 0x2e, 0) }, false},
		{"data outside", func(b []byte) { put32(b, 0x60, 0x9000) }, false},
		{"no signature", func(b []byte) { put32(b, 0x70+40, 1) }, false},
	} {
		im := oneSection(".rsrc", resourceRVA, versionSection(c.edit), peasm.Resource, 0x100)
		f := must.Get(New(im.Bytes(), "a.dll"))(t)
		v, ok := f.Version()
		if ok != c.ok || ok && v != (Version{4, 6, 27317, 7}) {
			t.Errorf("%s: %v, %v", c.name, v, ok)
		}
	}
}

func TestCLRHeader(t *testing.T) {
	im := peasm.File{Dirs: map[int]peasm.Directory{peasm.CLR: {RVA: 0x2008, Size: 72}}}
	f, err := New(im.Bytes(), "a.exe")
	expect.True(t, err == nil && f.CLRHeader(), "%v", err)
	expect.True(t, !importFile(t, false, importSection(true, nil), 40).CLRHeader(),
		"a CLR header where there is none")
}

// TestExportsWithoutEnd: names that share their bytes are not all kept.
func TestExportsWithoutEnd(t *testing.T) {
	const n, rva = 20000, 0x2000
	b := make([]byte, exportHead+4*n+2*n)
	put32(b, 20, 1) // functions
	put32(b, 24, n) // names
	put32(b, 28, rva)
	put32(b, 32, rva+exportHead)
	put32(b, 36, rva+exportHead+4*n)
	name := uint32(rva + len(b))
	for i := range n {
		binary.LittleEndian.PutUint32(b[exportHead+4*i:], name)
	}
	for range maxName - 1 {
		b = append(b, 'x')
	}
	im := oneSection(".edata", rva, append(b, 0), dirExport, exportHead)
	f, err := New(im.Bytes(), "exports")
	must.Do(t, err)
	got, err := f.Exports()
	fe, ok := err.(*FormatError)
	if most := f.textRoom() / maxName; !ok || fe.Reason != TooLarge || len(got) < most || len(got) > most+2 {
		t.Errorf("%d names, %v", len(got), err)
	}
}

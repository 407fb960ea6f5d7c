package pe

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/peasm"
)

// TestBudget: the image's size bounds its names and functions, of a file and of a mapped image.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name string
		f    *File
		text int
	}{
		{"nothing", &File{}, 1 << 16},
		{"a file", &File{raw: make([]byte, 1000), runs: []Block{{RVA: 0, Data: make([]byte, 1<<20)}}}, 1<<16 + 8000},
		{"blocks", &File{runs: []Block{{RVA: 0, Data: make([]byte, 100)}, {RVA: 1000, Data: make([]byte, 900)}}}, 1<<16 + 8000},
		{"a large file", &File{raw: make([]byte, 1<<22)}, maxText},
	} {
		if got := c.f.textRoom(); got != c.text {
			t.Errorf("%s: %d bytes of names, want %d", c.name, got, c.text)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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

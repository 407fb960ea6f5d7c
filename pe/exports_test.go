package pe

import (
	"encoding/binary"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Exports()
	fe, ok := err.(*FormatError)
	if most := f.textRoom() / maxName; !ok || fe.Reason != TooLarge || len(got) < most || len(got) > most+2 {
		t.Errorf("%d names, %v", len(got), err)
	}
}

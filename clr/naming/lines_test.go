package naming

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// flatMemory is readable from an address on.
type flatMemory struct {
	base uint64
	b    []byte
}

func (m flatMemory) ReadAt(p []byte, addr uint64) bool {
	if addr < m.base || addr-m.base > uint64(len(m.b)) || uint64(len(p)) > uint64(len(m.b))-(addr-m.base) {
		return false
	}
	copy(p, m.b[addr-m.base:])
	return true
}

// lined returns an image in memory with these entries in its debug directory at 0x100.
func lined(entries ...[]byte) (*Images, *image) {
	b := make([]byte, 0x100)
	data := 0x100 + debugEntry*len(entries)
	var behind []byte
	for _, e := range entries {
		row := slices.Clone(e[:debugEntry])
		binary.LittleEndian.PutUint32(row[16:], uint32(len(e)-debugEntry))
		binary.LittleEndian.PutUint32(row[20:], uint32(data+len(behind)))
		b, behind = append(b, row...), append(behind, e[debugEntry:]...)
	}
	b = append(b, behind...)
	im := &image{path: "/app/A.dll",
		head: &header{base: 0x10000, sections: []pe.Section{},
			debug: directory{0x100, uint32(debugEntry * len(entries))}}}
	return NewImages(flatMemory{0x10000, b}), im
}

// entry returns a row of a debug directory, with its data.
func entry(typ uint32, stamp [4]byte, data []byte) []byte {
	row := make([]byte, debugEntry)
	copy(row[4:], stamp[:])
	binary.LittleEndian.PutUint32(row[12:], typ)
	return append(row, data...)
}

// theirs returns the CodeView entry of clrasm.Lines.
func theirs(path string) []byte {
	data := append([]byte("RSDS"), 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	data = append(data, 1, 0, 0, 0)
	return entry(debugCodeView, [4]byte{0, 0, 0, 9}, append(append(data, path...), 0))
}

// packed returns an embedded PDB whose header claims a size.
func packed(pdb []byte, size int) []byte {
	var out bytes.Buffer
	out.WriteString("MPDB")
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(size)))
	w, _ := flate.NewWriter(&out, 9)
	w.Write(pdb)
	w.Close()
	return entry(debugEmbedded, [4]byte{}, out.Bytes())
}

func TestPlaces(t *testing.T) {
	pdb := clrasm.Lines()
	other := clrasm.NewLines([20]byte{7})
	other.Points(other.Document("/wrong.cs"), clrasm.Point{IL: 0, Line: 1, Document: 1})
	found := metadata.Place{File: "/src/app/A.cs", Line: 70, Column: 9}
	for _, c := range []struct {
		name    string
		entries [][]byte
		files   map[string][]byte
		want    metadata.Place
	}{
		{"beside it", [][]byte{theirs(`C:\build\A.pdb`)}, map[string][]byte{"/app/A.pdb": pdb}, found},
		{"by another name, beside it", [][]byte{theirs("/build/Renamed.pdb")},
			map[string][]byte{"/app/A.pdb": pdb}, found},
		{"where it was built", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/build/A.pdb": pdb}, found},
		{"another build beside it", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/app/A.pdb": other.Bytes(), "/build/A.pdb": pdb}, found},
		{"another build only", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/app/A.pdb": other.Bytes()}, metadata.Place{}},
		{"a PDB of Windows", [][]byte{theirs("A.pdb")},
			map[string][]byte{"/app/A.pdb": []byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00 and on")},
			metadata.Place{}},
		{"embedded", [][]byte{theirs("A.pdb"), packed(pdb, len(pdb))}, nil, found},
		{"embedded, not all of it", [][]byte{packed(pdb[:len(pdb)/2], len(pdb))}, nil, metadata.Place{}},
		{"embedded, more than it says", [][]byte{packed(append(slices.Clone(pdb), 0), len(pdb))}, nil, found},
		{"embedded, too large", [][]byte{packed(pdb, maxPDB+1)}, nil, metadata.Place{}},
		{"no debug directory", nil, map[string][]byte{"/app/A.pdb": pdb}, metadata.Place{}},
		{"cut", [][]byte{theirs("")[:debugEntry+20]}, map[string][]byte{"/app/A.pdb": pdb}, metadata.Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, im := lined(c.entries...)
			n.File = func(path string, most int64) ([]byte, error) {
				if b := c.files[path]; b != nil {
					return b, nil
				}
				return nil, errors.New("none")
			}
			got, ok := n.place(im, 1, 3)
			expect.True(t, got == c.want && ok == (c.want.Line != 0), "%v %v, want %v", got, ok, c.want)
			n, im = lined(c.entries...)
			n.place(im, 1, 3) // no files are read
		})
	}
}

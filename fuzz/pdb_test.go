package fuzz

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/symbol/pdb"
	"github.com/seedwalk/seedwalk/testkit/pdbfile"
)

// FuzzPDB reads any bytes as a PDB: an error is typed, a name is bounded, and so is the memory.
func FuzzPDB(f *testing.F) {
	file := pdbfile.File{
		Age: 1, Sections: []pdbfile.Section{{RVA: 0x1000, Size: 0x1000, Flags: 0x60000020}}, Names: []byte("\x00a.c\x00"),
		Publics: []pdbfile.Name{{Segment: 1, Offset: 0x10, Text: "?f@@YAXXZ"}},
		Modules: []pdbfile.Module{{Procedures: []pdbfile.Name{{Segment: 1, Offset: 0x10, Size: 0x20, Text: "f"}},
			Lines: []pdbfile.Line{{Segment: 1, Offset: 0x10, Size: 0x20, File: 1, Entries: [][2]uint32{{0, 7}, {4, 8}}}}}},
	}
	f.Add(file.Bytes(), uint32(0x1014))
	file.Omap = true
	f.Add(file.Bytes(), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, rva uint32) {
		bounded(t, 1<<16, len(b), func() {
			db, err := pdb.New(b, "x.pdb")
			var refused *pdb.Error
			if err != nil {
				if !errors.As(err, &refused) {
					t.Error(err)
				}
				return
			}
			names, err := db.Symbols()
			if err != nil && !errors.As(err, &refused) {
				t.Error(err)
			}
			for _, n := range names {
				if n.Name == "" || len(n.Name) > len(b) {
					t.Errorf("%+v", n)
				}
			}
			if file, line := db.Line(rva); (file == "") != (line == 0) || len(file) > len(b) {
				t.Errorf("%q:%d", file, line)
			}
		})
	})
}

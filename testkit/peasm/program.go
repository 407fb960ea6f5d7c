package peasm

import (
	"fmt"
	"maps"
	"slices"
)

// Image describes a small program or library by its interface. The zero Image is an empty x86-64 program.
type Image struct {
	Machine uint16 // 0 = x86-64; a 32-bit machine makes a PE32
	Managed bool
	DLL     bool
	Imports map[string][]string // functions of DLLs
	Exports []string            // all at the same address
	Version [4]uint16           // zero: no version resource
}

const (
	programRVA  = 0x1000
	programSize = 0x1000
	allFlags    = 0xe0000020 // code that can be read and written
)

// Bytes writes the file.
func (im Image) Bytes() []byte {
	s := NewSection(".all", programRVA)
	s.Flags = allFlags
	f := File{Machine: im.Machine, PE32: im.Machine == I386 || im.Machine == ARMNT, DLL: im.DLL,
		Entry: programRVA, Sections: []*Section{s}, Dirs: map[int]Directory{}}
	if f.PE32 {
		f.Base = 0x400000
	}
	s.Bytes(0xc3).Align(8) // the entry point: ret
	if len(im.Exports) > 0 {
		f.Dirs[Export] = exports(s, im.Exports)
	}
	if len(im.Imports) > 0 {
		f.Dirs[Import] = imports(s, im.Imports, f.PE32)
	}
	if im.Version != [4]uint16{} {
		f.Dirs[Resource] = version(s, im.Version)
	}
	if im.Managed {
		f.Dirs[CLR] = Directory{RVA: s.Here(), Size: 72}
		s.Zero(72)
	}
	s.Goto(programRVA + programSize)
	return f.Bytes()
}

func exports(s *Section, names []string) Directory {
	n := uint32(len(names))
	var labels []string
	s.Label("own name").Text("tiny.dll").Align(8)
	for _, name := range names {
		labels = append(labels, "export "+name)
		s.Label("export " + name).Text(name).Align(8)
	}
	s.Label("exports").U32(0, 0, 0).AtLabel("own name").U32(1, n, n).AtLabel("addresses", "names", "ordinals")
	s.Label("addresses")
	for range names {
		s.U32(programRVA)
	}
	s.Label("names").AtLabel(labels...).Label("ordinals")
	for i := range names {
		s.U16(uint16(i))
	}
	s.Align(8)
	return Directory{Label: "exports", Size: 40}
}

func imports(s *Section, dlls map[string][]string, pe32 bool) Directory {
	names := slices.Sorted(maps.Keys(dlls))
	for i, dll := range names {
		for k, function := range dlls[dll] {
			s.Label(fmt.Sprint("hint ", i, k)).U16(0).Text(function).Align(8)
		}
		s.Label("dll " + dll).Text(dll).Align(8)
		for _, table := range []string{"names of ", "addresses of "} {
			s.Label(table + dll)
			for k := range dlls[dll] {
				s.AtLabel(fmt.Sprint("hint ", i, k))
				if !pe32 {
					s.U32(0)
				}
			}
			s.Zero(8)
		}
	}
	s.Align(8).Label("imports")
	for _, dll := range names {
		s.AtLabel("names of "+dll).U32(0, 0).AtLabel("dll "+dll, "addresses of "+dll)
	}
	s.Zero(20)
	return Directory{Label: "imports", Size: 20 * uint32(len(names)+1)}
}

// version writes a resource tree of one leaf, VS_FIXEDFILEINFO within it.
func version(s *Section, v [4]uint16) Directory {
	begin := s.Here()
	const one = 1 << 16 // no named entries, one with a number
	for i, id := range []uint32{16, 1, 1033} {
		next := uint32(24 * (i + 1))
		if i < 2 {
			next |= 1 << 31
		}
		s.U32(0, 0, 0, one, id, next)
	}
	s.AtLabel("version").U32(92, 0, 0).Label("version").Zero(40)
	s.U32(0xfeef04bd, 1<<16, uint32(v[0])<<16|uint32(v[1]), uint32(v[2])<<16|uint32(v[3])).Zero(36).Align(8)
	return Directory{RVA: begin, Size: s.Here() - begin}
}

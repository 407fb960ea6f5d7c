// Package peasm is the test kit's assembler of PE images: sections with labels,
// and images that hold what a test asks for by name. It knows nothing of package
// pe, so that a mistake of one does not cancel the other's.
//
// Source: Microsoft, "PE Format" (COFF header, optional header, section table).
//
// Glossary. A *label* names a place in any section of an image; a *directory* is
// one of the sixteen that the optional header lists.
//
// Strategy. Headers are at fixed offsets, so that tests can damage a chosen field. The
// signature is at 80h. If there are at most fifteen sections, their bodies begin at 400h.
// Bytes between bodies are EEh and belong to no part of the image.
//
// Known gaps: no relocations, no COFF symbols, a check sum of zero.
package peasm

import (
	"fmt"
	"strconv"
)

// Offsets in a file, and what the loader asks for.
const (
	Signature = 0x80 // "PE\0\0"
	Headers   = 0x400
	Base      = 0x140000000

	optional      = Signature + 24
	sectionHeader = 40
	fileAlign     = 0x200
	memoryAlign   = 0x1000

	CodeFlags = 0x60000020 // code that can be read and executed
)

// Machines.
const (
	AMD64 = 0x8664
	ARM64 = 0xaa64
	I386  = 0x14c
	ARMNT = 0x1c4
)

// Directories.
const (
	Export    = 0
	Import    = 1
	Resource  = 2
	Exception = 3
	Debug     = 6
	CLR       = 14
)

// Directory is where a directory lies: at a label or, without one, an RVA.
type Directory struct {
	Label     string
	RVA, Size uint32
}

// File is an image to write.
type File struct {
	Machine  uint16 // 0 = AMD64
	PE32     bool   // of 32 bits
	Base     uint64 // 0 = Base; its lower half with PE32
	DLL      bool
	Entry    uint32 // RVA of the entry point
	Sections []*Section
	Dirs     map[int]Directory
	Size     uint32 // SizeOfImage; 0 = all pages that sections touch
}

// Bytes writes the image as a file.
func (f *File) Bytes() []byte {
	labels := f.resolve()
	size := f.headerSize()
	head := make([]byte, size)
	names := []byte{0, 0, 0, 0}
	var body []byte
	for i, s := range f.Sections {
		h := head[optional+f.optionalSize()+sectionHeader*i:]
		if len(s.Name) > 8 {
			copy(h, "/"+strconv.Itoa(len(names)))
			names = append(append(names, s.Name...), 0)
		} else {
			copy(h, s.Name)
		}
		flags := s.Flags
		if flags == 0 {
			flags = CodeFlags
		}
		put32(h, 8, s.virtual(), s.RVA, uint32(len(s.b)), uint32(size+len(body)))
		put32(h, 36, flags)
		body = append(body, s.b...)
		for len(body)%fileAlign != 0 {
			body = append(body, 0xee)
		}
	}
	put32(head, Signature+12, uint32(size+len(body))) // COFF symbols: none, then the strings
	f.writeHeaders(head, labels)
	put32(names, 0, uint32(len(names)))
	return append(append(head, body...), names...)
}

// Mapped lays the image out as the loader does.
func (f *File) Mapped() []byte {
	file := f.Bytes()
	end := uint32(memoryAlign)
	for _, s := range f.Sections {
		end = max(end, s.RVA+uint32(len(s.b)))
	}
	out := make([]byte, end)
	copy(out, file[:f.headerSize()])
	for _, s := range f.Sections {
		copy(out[s.RVA:], s.b)
	}
	return out
}

// resolve writes the places of labels where they are asked for.
func (f *File) resolve() map[string]uint32 {
	all := map[string]uint32{}
	for _, s := range f.Sections {
		for l, at := range s.labels {
			all[l] = at
		}
	}
	for _, s := range f.Sections {
		for _, x := range s.fixes {
			le.PutUint32(s.b[x.at:], find(all, x.label))
		}
	}
	return all
}

func find(labels map[string]uint32, name string) uint32 {
	at, ok := labels[name]
	if !ok {
		panic(fmt.Sprintf("peasm: no label %q", name))
	}
	return at
}

func (f *File) optionalSize() int {
	if f.PE32 {
		return 96 + 16*8
	}
	return 112 + 16*8
}

func (f *File) headerSize() int {
	n := optional + f.optionalSize() + sectionHeader*len(f.Sections)
	return max(Headers, (n+fileAlign-1)&^(fileAlign-1))
}

func (f *File) writeHeaders(h []byte, labels map[string]uint32) {
	machine, characteristics := f.Machine, uint16(0x22) // executable, large addresses
	if machine == 0 {
		machine = AMD64
	}
	if f.DLL {
		characteristics |= 0x2000
	}
	copy(h, "MZ")
	put32(h, 0x3c, Signature)
	copy(h[Signature:], "PE\x00\x00")
	put16(h, Signature+4, machine, uint16(len(f.Sections)))
	put16(h, Signature+20, uint16(f.optionalSize()), characteristics)
	f.writeOptional(h[optional:], labels)
}

func (f *File) writeOptional(o []byte, labels map[string]uint32) {
	base, magic, dirs := f.Base, uint16(0x20b), 112
	if base == 0 {
		base = Base
	}
	if f.PE32 {
		magic, dirs = 0x10b, 96
		put32(o, 28, uint32(base))
	} else {
		le.PutUint64(o[24:], base)
	}
	put16(o, 0, magic)
	put32(o, 16, f.Entry)
	put32(o, 32, memoryAlign, fileAlign)
	put16(o, 40, 6) // version of the operating system
	put16(o, 48, 6) // and of the subsystem
	put32(o, 56, f.imageSize(), uint32(f.headerSize()))
	put16(o, 68, 3) // console
	put32(o, dirs-4, 16)
	for i, d := range f.Dirs {
		rva := d.RVA
		if d.Label != "" {
			rva = find(labels, d.Label)
		}
		put32(o, dirs+8*i, rva, d.Size)
	}
}

func (f *File) imageSize() uint32 {
	size := f.Size
	if size == 0 {
		size = memoryAlign
		for _, s := range f.Sections {
			size = max(size, (s.RVA+s.virtual()+memoryAlign-1)&^(memoryAlign-1))
		}
	}
	return size
}

func put16(b []byte, at int, v ...uint16) {
	for i, x := range v {
		le.PutUint16(b[at+2*i:], x)
	}
}

func put32(b []byte, at int, v ...uint32) {
	for i, x := range v {
		le.PutUint32(b[at+4*i:], x)
	}
}

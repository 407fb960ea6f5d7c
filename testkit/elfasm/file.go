// Package elfasm is the test kit's assembler of 64-bit ELF images and of call
// frame information. It shares nothing with the readers, so that a mistake of
// one does not cancel the other's.
//
// Sources: the ELF gABI, chapters 4 and 5; DWARF 5, section 6.4; the LSB's
// .eh_frame.
//
// Strategy. A file is the header, the program headers, the sections' bodies in
// the order given, the names, and the section headers. A body begins at a multiple
// of 16, or where its section says.
//
// Known gaps: 64-bit and little-endian only. The call frame information is always
// well formed. The reader's own tests write the damaged kinds.
package elfasm

import (
	"bytes"
	"encoding/binary"
)

// Machines, and the types of segments and sections that tests write.
const (
	AMD64 = 62
	ARM64 = 183

	Load = 1 // PT_LOAD

	ProgBits = 1 // SHT_PROGBITS
	SymTab   = 2
	StrTab   = 3

	ReadExecute = 5 // PF_R|PF_X

	headerSize  = 64
	programSize = 56
	sectionSize = 64
	dynamic     = 3 // ET_DYN
)

var le = binary.LittleEndian

// Segment is a program header.
type Segment struct {
	Type, Flags       uint32
	Off, Addr         uint64
	FileSize, MemSize uint64 // FileSize 0 = the whole file, in memory too
	Align             uint64
}

// Section is a section and its bytes.
type Section struct {
	Name             string
	Type             uint32
	Flags, Addr      uint64
	At               uint64 // where its body stands; 0 = behind the one before
	Link, Info       uint32
	Align, EntrySize uint64
	Body             []byte
}

// File is an image to write.
type File struct {
	Machine  uint16 // 0 = AMD64
	Entry    uint64
	Segments []Segment
	Sections []Section // from number 1 on; number 0 and .shstrtab are added
}

// Bytes writes the file. Without sections it has no section headers.
func (f *File) Bytes() []byte {
	out := make([]byte, headerSize+programSize*len(f.Segments))
	names, heads := []byte{0}, make([]byte, sectionSize)
	for i := range f.Sections {
		s := &f.Sections[i]
		out = pad(out, s.At)
		heads = appendHead(heads, s, uint32(len(names)), uint64(len(out)), uint64(len(s.Body)))
		names = append(append(names, s.Name...), 0)
		out = append(out, s.Body...)
	}
	table := uint64(0)
	if len(f.Sections) > 0 {
		own := Section{Name: ".shstrtab", Type: StrTab}
		at := uint32(len(names))
		names = append(append(names, own.Name...), 0)
		heads = appendHead(heads, &own, at, uint64(len(out)), uint64(len(names)))
		out = append(out, names...)
		table = uint64(len(out))
		out = append(out, heads...)
	}
	f.header(out, table)
	for i, s := range f.Segments {
		s.put(out[headerSize+programSize*i:], uint64(len(out)))
	}
	return out
}

// pad appends zeros up to an offset, or to a multiple of 16.
func pad(b []byte, at uint64) []byte {
	if at == 0 {
		at = (uint64(len(b)) + 15) &^ 15
	}
	return append(b, make([]byte, at-uint64(len(b)))...)
}

func appendHead(b []byte, s *Section, name uint32, off, size uint64) []byte {
	b = put32(b, name, s.Type)
	b = put64(b, s.Flags, s.Addr, off, size)
	b = put32(b, s.Link, s.Info)
	return put64(b, s.Align, s.EntrySize)
}

func (f *File) header(out []byte, sections uint64) {
	machine := f.Machine
	if machine == 0 {
		machine = AMD64
	}
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01")
	b.Write(make([]byte, 9))
	b.Write(put16(nil, dynamic, machine))
	b.Write(put32(nil, 1))
	b.Write(put64(nil, f.Entry, headerSize, sections))
	b.Write(put32(nil, 0))
	b.Write(put16(nil, headerSize, programSize, uint16(len(f.Segments)), sectionSize))
	if sections != 0 {
		b.Write(put16(nil, uint16(len(f.Sections)+2), uint16(len(f.Sections)+1)))
	}
	copy(out, b.Bytes())
}

func (s *Segment) put(to []byte, file uint64) {
	size, mem := s.FileSize, s.MemSize
	if size == 0 {
		size, mem = file, file
	}
	copy(to, put64(put32(nil, s.Type, s.Flags), s.Off, s.Addr, s.Addr, size, mem, s.Align))
}

// Code is an image of one segment whose bytes are code, at addr in the file as in
// memory.
func Code(machine uint16, addr uint64, code []byte) []byte {
	n := uint64(len(code))
	f := File{Machine: machine,
		Segments: []Segment{{Type: Load, Flags: ReadExecute, Off: addr, Addr: addr,
			FileSize: n, MemSize: n, Align: 0x1000}}}
	return append(pad(f.Bytes(), addr), code...)
}

func put16(b []byte, v ...uint16) []byte {
	for _, x := range v {
		b = le.AppendUint16(b, x)
	}
	return b
}

func put32(b []byte, v ...uint32) []byte {
	for _, x := range v {
		b = le.AppendUint32(b, x)
	}
	return b
}

func put64(b []byte, v ...uint64) []byte {
	for _, x := range v {
		b = le.AppendUint64(b, x)
	}
	return b
}

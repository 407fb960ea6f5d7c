// Package pdbfile writes PDB files (MSF 7.00) for tests. It shares nothing with the reader.
//
// Source: LLVM's documentation "The PDB File Format".
package pdbfile

import (
	"encoding/binary"
	"slices"
)

var le = binary.LittleEndian

// Block is the size of a block, bytes.
const Block = 512

// File is what a PDB says.
type File struct {
	GUID     [16]byte
	Age      uint32
	Sections []Section
	Modules  []Module
	Publics  []Name
	Names    []byte // names of source files, each ended by a zero; the first one is empty
	Omap     bool   // code was moved after linking
}

// Section is a section of the image.
type Section struct {
	RVA, Size uint32
	Flags     uint32 // Characteristics
}

// Name is a name of code. Size is 0 for a public.
type Name struct {
	Segment      uint16
	Offset, Size uint32
	Text         string
}

// Module is an object file.
type Module struct {
	Procedures []Name
	Lines      []Line
}

// Line is a line of a function: its own line table.
type Line struct {
	Segment      uint16
	Offset, Size uint32
	File         uint32      // offset in Names
	Entries      [][2]uint32 // offset in the function, and line
}

func words(v ...uint32) (b []byte) {
	for _, v := range v {
		b = le.AppendUint32(b, v)
	}
	return b
}

func halves(v ...uint16) (b []byte) {
	for _, v := range v {
		b = le.AppendUint16(b, v)
	}
	return b
}

func align(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func record(kind uint16, parts ...[]byte) []byte {
	b := align(append(halves(0, kind), slices.Concat(parts...)...))
	le.PutUint16(b, uint16(len(b)-2))
	return b
}

func zero(s string) []byte { return append([]byte(s), 0) }

// Numbers of the streams. Modules follow.
const (
	Info = 1 + iota
	_
	DBI
	_
	Records
	Sections
	Names
	firstModule
)

// Streams returns the contents of the streams, by number.
func (f *File) Streams() [][]byte {
	out := make([][]byte, firstModule)
	table := zero("/names")
	out[Info] = slices.Concat(words(20000404, 1, f.Age+7), f.GUID[:], words(uint32(len(table))), table,
		words(1, 8, 1, 1, 0, 0, Names))
	for _, n := range f.Publics {
		out[Records] = append(out[Records],
			record(0x110e, words(2, n.Offset), halves(n.Segment), zero(n.Text))...)
	}
	for _, s := range f.Sections {
		out[Sections] = append(out[Sections],
			slices.Concat([]byte(".section"), words(s.Size, s.RVA, 0, 0, 0, 0, 0, s.Flags))...)
	}
	out[Names] = slices.Concat(words(0xeffeeffe, 1, uint32(len(f.Names))), f.Names, words(0, 0))
	var modules []byte
	for i := range f.Modules {
		symbols, lines := f.Modules[i].parts()
		modules = append(modules,
			slices.Concat(words(0), make([]byte, 28), halves(0, uint16(firstModule+i)),
				words(uint32(len(symbols)), 0, uint32(len(lines))),
				make([]byte, 16), zero("a.obj"), zero("a.obj"))...)
		modules = align(modules)
		out = append(out, append(symbols, lines...))
	}
	debug := halves(0xffff, 0xffff, 0xffff, 0xffff, 0xffff, Sections)
	if f.Omap {
		le.PutUint16(debug[8:], Names)
	}
	out[DBI] = slices.Concat(words(^uint32(0), 19990903, f.Age), halves(0xffff, 0, 0xffff, 0, Records, 0),
		words(uint32(len(modules)), 0, 0, 0, 0, 0, uint32(len(debug)), 0),
		halves(0, 0x8664), words(0), modules, debug)
	return out
}

// parts are the symbols and the lines of a module.
func (m *Module) parts() (symbols, lines []byte) {
	symbols = words(4)
	for _, n := range m.Procedures {
		symbols = append(symbols,
			record(0x1110, words(0, 0, 0, n.Size, 0, 0, 0, n.Offset),
				halves(n.Segment), []byte{0}, zero(n.Text))...)
	}
	var files []byte
	for _, l := range m.Lines {
		entries := []byte{}
		for _, e := range l.Entries {
			entries = append(entries, words(e[0], e[1]|1<<31)...)
		}
		part := slices.Concat(words(l.Offset), halves(l.Segment, 0), words(l.Size),
			words(uint32(len(files)), uint32(len(l.Entries)), uint32(12+len(entries))), entries)
		lines = append(lines, slices.Concat(words(0xf2, uint32(len(part))), part)...)
		files = append(files, slices.Concat(words(l.File), []byte{0, 0, 0, 0})...)
	}
	return symbols, slices.Concat(lines, words(0xf4, uint32(len(files))), files)
}

// Bytes returns the file.
func (f *File) Bytes() []byte { return Pack(f.Streams()) }

// Pack makes a file of streams. Their blocks lie in reverse order.
func Pack(streams [][]byte) []byte {
	const head = 4 // the first block, two maps of free blocks, and the map of the directory
	total := 0
	for _, s := range streams {
		total += blocks(len(s))
	}
	out, next := make([]byte, (head+total)*Block), head+total-1
	directory, lists := words(uint32(len(streams))), []byte{}
	for _, s := range streams {
		directory = append(directory, words(uint32(len(s)))...)
		for ; len(s) > 0; s = s[min(len(s), Block):] {
			copy(out[next*Block:(next+1)*Block], s)
			lists, next = append(lists, words(uint32(next))...), next-1
		}
	}
	directory = append(directory, lists...)
	first := len(out) / Block
	for i := range blocks(len(directory)) {
		le.PutUint32(out[3*Block+4*i:], uint32(first+i))
	}
	out = append(out, directory...)
	out = append(out, make([]byte, blocks(len(directory))*Block-len(directory))...)
	copy(out, "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00")
	copy(out[32:], words(Block, 1, uint32(len(out)/Block), uint32(len(directory)), 0, 3))
	return out
}

func blocks(n int) int { return (n + Block - 1) / Block }

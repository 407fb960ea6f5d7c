// Package elfasm makes small x86-64 ELF images for tests: one function with
// call frame information, written byte by byte and sharing no code with the
// readers.
//
// Source: the ELF gABI and the LSB's .eh_frame, by hand.
//
// Known gaps: one segment, no dynamic section.
package elfasm

import "encoding/binary"

// What the image holds.
const (
	Func = 0x1000 // virtual address of the function "outer"
	Size = 6      // its bytes
)

// code is push rbp; mov rbp, rsp; pop rbp; ret.
var code = []byte{0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}

const (
	codeAt   = 0x1000
	frameAt  = 0x1100
	namesAt  = 0x1200
	symAt    = 0x1280
	headsAt  = 0x1300
	sections = 6
)

// program is the FDE's: cfa rsp+8; after push rsp+16 and rbp saved; after mov
// from rbp; after pop rsp+8 again.
var program = []byte{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x41, 0x0c, 7, 8, 0, 0}

// Image returns the file. Its bytes from 0x1000 on are loaded there.
func Image() []byte { return ImageWith(program) }

// ImageWith is Image with another call frame program in the function's FDE.
func ImageWith(program []byte) []byte {
	b := make([]byte, headsAt+64*sections)
	copy(b, "\x7fELF\x02\x01\x01")
	put16(b, 16, 3, 62)
	put32(b, 20, 1)
	put64(b, 24, Func, 64, headsAt)
	put16(b, 52, 64, 56, 1, 64, sections, 5)
	put32(b, 64, 1, 5) // PT_LOAD, readable and executable
	put64(b, 72, codeAt, codeAt, codeAt, 0x200, 0x200, 0x1000)
	copy(b[codeAt:], code)
	frame := ehFrame(program)
	copy(b[frameAt:], frame)
	names := "\x00outer\x00.text\x00.eh_frame\x00.symtab\x00.strtab\x00"
	copy(b[namesAt:], names)
	put32(b, symAt+24, 1)
	copy(b[symAt+28:], []byte{0x12, 0, 1, 0}) // a global function of section 1
	put64(b, symAt+32, Func, Size)
	section(b, 1, 7, 1, codeAt, codeAt, Size, 0, 0)
	section(b, 2, 13, 1, frameAt, frameAt, uint64(len(frame)), 0, 0)
	section(b, 3, 23, 2, 0, symAt, 48, 5, 24)
	section(b, 4, 31, 3, 0, namesAt, uint64(len(names)), 0, 0)
	section(b, 5, 31, 3, 0, namesAt, uint64(len(names)), 0, 0)
	return b
}

func ehFrame(program []byte) []byte {
	cie := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(cie)))
	out = append(out, cie...)
	at := len(out)
	out = binary.LittleEndian.AppendUint32(out, uint32(4+8+1+len(program)))
	out = binary.LittleEndian.AppendUint32(out, uint32(at+4))
	begin := int64(Func) - int64(frameAt+len(out))
	out = binary.LittleEndian.AppendUint32(out, uint32(begin))
	out = binary.LittleEndian.AppendUint32(out, Size)
	out = append(out, 0)
	out = append(out, program...)
	return append(out, 0, 0, 0, 0)
}

func section(b []byte, i int, name, typ uint32, addr, off, size uint64, link uint32, entry uint64) {
	at := headsAt + 64*i
	put32(b, at, name, typ)
	put64(b, at+16, addr, off, size)
	put32(b, at+40, link)
	put64(b, at+56, entry)
}

func put16(b []byte, at int, v ...uint16) {
	for i, x := range v {
		binary.LittleEndian.PutUint16(b[at+2*i:], x)
	}
}

func put32(b []byte, at int, v ...uint32) {
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[at+4*i:], x)
	}
}

func put64(b []byte, at int, v ...uint64) {
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[at+8*i:], x)
	}
}

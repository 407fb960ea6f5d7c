package cfi

import "encoding/binary"

// asm writes call frame sections, independently of the reader: each record's
// length is patched when it ends.
type asm struct {
	b     []byte
	wide  bool // 64-bit DWARF
	debug bool
	start int
}

func (a *asm) u8(v ...uint8) *asm    { a.b = append(a.b, v...); return a }
func (a *asm) u16(v uint16) *asm     { a.b = binary.LittleEndian.AppendUint16(a.b, v); return a }
func (a *asm) u32(v uint32) *asm     { a.b = binary.LittleEndian.AppendUint32(a.b, v); return a }
func (a *asm) u64(v uint64) *asm     { a.b = binary.LittleEndian.AppendUint64(a.b, v); return a }
func (a *asm) str(s string) *asm     { a.b = append(append(a.b, s...), 0); return a }
func (a *asm) raw(p []byte) *asm     { a.b = append(a.b, p...); return a }
func (a *asm) uleb(v uint64) *asm    { a.b = binary.AppendUvarint(a.b, v); return a }
func (a *asm) block(p ...uint8) *asm { return a.uleb(uint64(len(p))).raw(p) }
func (a *asm) sleb(v int64) *asm {
	for {
		b := uint8(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return a.u8(b)
		}
		a.u8(b | 0x80)
	}
}

// begin starts a record and returns its offset; end patches its length.
func (a *asm) begin() int {
	off := len(a.b)
	if a.wide {
		a.u32(0xffffffff).u64(0)
	} else {
		a.u32(0)
	}
	a.start = len(a.b)
	return off
}

func (a *asm) end() *asm {
	n := len(a.b) - a.start
	if a.wide {
		binary.LittleEndian.PutUint64(a.b[a.start-8:], uint64(n))
	} else {
		binary.LittleEndian.PutUint32(a.b[a.start-4:], uint32(n))
	}
	return a
}

// cieID and ciePtr write a record's id field.
func (a *asm) cieID() *asm {
	switch {
	case !a.debug:
		return a.u32(0)
	case a.wide:
		return a.u64(1<<64 - 1)
	}
	return a.u32(1<<32 - 1)
}

func (a *asm) ciePtr(cie int) *asm {
	switch {
	case !a.debug:
		return a.u32(uint32(len(a.b) - cie))
	case a.wide:
		return a.u64(uint64(cie))
	}
	return a.u32(uint32(cie))
}

// Where the test function of plainTable lies.
const (
	fnLo = 0x1000
	fnHi = 0x1100
)

// simpleCIE writes a version 1 CIE: code alignment 1, data alignment -8,
// return address 16, absolute addresses; CFA = rsp+8, RA at CFA-8.
func (a *asm) simpleCIE(program ...uint8) int {
	off := a.begin()
	a.cieID().u8(1).str("").uleb(1).sleb(-8).u8(16)
	if program == nil {
		program = []uint8{DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}
	}
	a.raw(program).end()
	return off
}

// simpleFDE writes an FDE of [fnLo, fnHi) for a CIE without augmentation.
func (a *asm) simpleFDE(cie int, program ...uint8) *asm {
	a.begin()
	return a.ciePtr(cie).u64(fnLo).u64(fnHi - fnLo).raw(program).end()
}

// ehFrame is one CIE and one FDE with the given program.
func ehFrame(program ...uint8) []byte {
	var a asm
	a.simpleFDE(a.simpleCIE(), program...)
	return a.u32(0).b
}

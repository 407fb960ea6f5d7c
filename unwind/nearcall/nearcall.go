// Package nearcall checks, by the code before an address, whether a call can return to the address.
//
// Sources: Intel SDM volume 2A, "CALL" and section 2.1.5 (ModRM and SIB, tables 2-2 and 2-3); Arm
// Architecture Reference Manual, branch (immediate) and branch (register).
//
// Strategy: a test, not a proof: x86-64 code cannot be read backwards with certainty, and any five bytes may
// end in what looks like a call. Prefixes precede the checked bytes and do not matter.
//
// Glossary. A *near* call stays in its code segment: relative (E8), or through a register or memory (FF /2).
//
// Known gaps: far calls, and calls with an operand size prefix, which no compiler writes.
package nearcall

import "encoding/binary"

// Longest is how many bytes before an address are read.
const Longest = 7

// RelativeSize is the size in bytes of a relative call: opcode E8 and a distance of four bytes.
const RelativeSize = 5

// AMD64 reports whether x86-64 code ends in a near call: E8 rel32, or FF /2 with any operand. code is the
// available bytes before the address.
func AMD64(code []byte) bool {
	end := len(code)
	if _, ok := Relative(code, 0); ok {
		return true
	}
	for n := 2; n <= Longest && n <= end; n++ {
		if b := code[end-n:]; b[0] == 0xff && b[1]>>3&7 == 2 && 1+operand(b[1:]) == n {
			return true
		}
	}
	return false
}

// Relative returns the target of an x86-64 call E8 rel32 that returns to ra. code is the available bytes
// before ra. ok is false if they end in no such call.
func Relative(code []byte, ra uint64) (target uint64, ok bool) {
	end := len(code)
	if end < RelativeSize || code[end-RelativeSize] != 0xe8 {
		return 0, false
	}
	return ra + uint64(int32(binary.LittleEndian.Uint32(code[end-4:]))), true
}

// operand returns the length of a ModRM byte with its SIB byte and displacement.
func operand(b []byte) int {
	const sib, ripOrNone = 4, 5
	mod, rm, n := b[0]>>6, b[0]&7, 1
	if mod == 3 {
		return n
	}
	base := rm
	if rm == sib {
		if n++; len(b) < 2 {
			return n
		}
		base = b[1] & 7
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && base == ripOrNone: // without a base a SIB byte has disp32 too
		n += 4
	}
	return n
}

// ARM64 reports whether ARM64 code ends in a call: BL, BLR, or one of BLR's forms
// that authenticate the pointer.
func ARM64(code []byte) bool {
	if len(code) < 4 {
		return false
	}
	return IsARM64(binary.LittleEndian.Uint32(code[len(code)-4:]))
}

// IsARM64 reports whether an ARM64 instruction is a call.
func IsARM64(w uint32) bool {
	const (
		bl         = 0x94000000
		blr        = 0xd63f0000
		blrAuth    = 0xd63f0800 // BLRAA, BLRAB: bit 24 is set; BLRAAZ, BLRABZ: it is clear, and Rm is 31
		withRm     = 1 << 24
		rm, zeroRm = 0x1f, 0x1f
	)
	switch {
	case w&0xfc000000 == bl, w&0xfffffc1f == blr:
		return true
	case w&0xfefff800 == blrAuth:
		return w&withRm != 0 || w&rm == zeroRm
	}
	return false
}

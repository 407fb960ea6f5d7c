package x86

import "encoding/binary"

// Instructions with which functions return, decoded without the rest of the instruction set.

// PopReturn decodes pop reg; lfence; jmp reg: a return of functions that clang hardens against load value
// injection. It returns the length of the pop, 0 for other code.
func PopReturn(code []byte) (n int, reg uint8) {
	n, reg = Pop(code)
	if n == 0 || len(code) < 2*n+4 || string(code[n:n+Fence]) != "\x0f\xae\xe8" ||
		n == 2 && code[n+Fence] != code[0] ||
		code[2*n+2] != 0xff || code[2*n+3] != 0xe0|reg&7 {
		return 0, 0
	}
	return n, reg
}

// Fence is the length of lfence.
const Fence = 3

// Pop decodes pop r64 and returns its length, 0 for other code.
func Pop(code []byte) (n int, reg uint8) {
	switch {
	case len(code) >= 1 && code[0]&0xf8 == 0x58:
		return 1, code[0] & 7
	case len(code) >= 2 && code[0]&0xf0 == 0x40 && code[1]&0xf8 == 0x58:
		return 2, code[0]&1<<3 | code[1]&7
	}
	return 0, 0
}

// DirectJump decodes a jump without prefixes and returns the distance from it to its target.
func DirectJump(code []byte) (distance uint64, ok bool) {
	switch {
	case len(code) >= 2 && code[0] == 0xeb:
		return 2 + uint64(int8(code[1])), true
	case len(code) >= 5 && code[0] == 0xe9:
		return 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))), true
	}
	return 0, false
}

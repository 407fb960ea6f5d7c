package x86

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context"
)

// Writes returns the general registers that an instruction may change, as bits by register number. It leaves
// out the effects of calls, pushes, pops, and leave. It may name more registers than the instruction writes.
// Writes returns 0 for an instruction that it does not know. Source: Intel's manual, volume 2.
func (in *Insn) Writes() uint16 {
	switch {
	case in.VEX:
		return in.writesVEX()
	case in.Table == 0:
		return in.writesOne()
	case in.Table == 1:
		return in.writesTwo()
	case in.Table == 2 && in.Op >= 0xf0:
		return bit(in.Reg) // movbe, crc32, adcx
	case in.Table == 3 && in.Op >= 0x14 && in.Op <= 0x17:
		return in.toRM(false)
	case in.Table == 3 && (in.Op == 0x61 || in.Op == 0x63): // pcmpestri, pcmpistri
		return bitCX
	}
	return 0
}

func bit(reg uint8) uint16 { return 1 << (reg & 15) }

// toRM returns the bit of the r/m operand, 0 if that is in memory.
func (in *Insn) toRM(byteSized bool) uint16 {
	if in.Memory {
		return 0
	}
	return in.part(in.RM, byteSized)
}

// part returns the bit of a register operand. Without REX, byte registers 4 to 7 are AH, CH, DH, and BH.
func (in *Insn) part(reg uint8, byteSized bool) uint16 {
	if byteSized && in.REX == 0 && reg >= 4 {
		reg -= 4
	}
	return bit(reg)
}

const (
	bitAX = 1 << context.RAX
	bitCX = 1 << context.RCX
	bitDX = 1 << context.RDX
)

func (in *Insn) writesOne() uint16 {
	op := in.Op
	small := op&1 == 0
	switch {
	case op < 0x40:
		return in.writesALU()
	case op == 0x63, op == 0x69, op == 0x6b, op == 0x8d:
		return bit(in.Reg)
	case op&0xfc == 0x80:
		if in.Reg&7 == 7 {
			return 0
		}
		return in.toRM(small)
	case op == 0x86, op == 0x87:
		return in.toRM(small) | in.part(in.Reg, small)
	case op == 0x88, op == 0x89, op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7, op >= 0xd0 && op <= 0xd3:
		return in.toRM(small)
	case op == 0x8a, op == 0x8b:
		return in.part(in.Reg, small)
	case op > 0x90 && op < 0x98, op == 0x90 && in.REX&1 != 0: // else nop
		return bitAX | bit(op&7|in.REX&1<<3)
	case op == 0x8c:
		return in.toRM(false)
	case op == 0x9f, op == 0xd7: // lahf, xlat
		return bitAX
	case op >= 0xe0 && op <= 0xe2: // loop
		return bitCX
	case op == 0x98, op == 0x99, op >= 0xa0 && op < 0xb0, op >= 0xe4 && op <= 0xed:
		return bitAX | bitDX | 1<<context.RCX | 1<<context.RSI | 1<<context.RDI
	case op&0xf0 == 0xb0:
		return in.part(op&7|in.REX&1<<3, op < 0xb8)
	case op == 0xf6, op == 0xf7:
		return in.writesGroup3(small)
	case op == 0xfe, op == 0xff:
		if in.Reg&7 < 2 {
			return in.toRM(small)
		}
	}
	return 0
}

// writesALU covers add, or, adc, sbb, and, sub, xor, and cmp, which writes no register.
func (in *Insn) writesALU() uint16 {
	op := in.Op
	switch {
	case op >= 0x38:
		return 0
	case op&7 < 2:
		return in.toRM(op&1 == 0)
	case op&7 < 4:
		return in.part(in.Reg, op&1 == 0)
	}
	return bitAX
}

// writesGroup3 covers test, not, neg, mul, imul, div, and idiv.
func (in *Insn) writesGroup3(small bool) uint16 {
	switch ext := in.Reg & 7; {
	case ext < 2:
		return 0
	case ext < 4:
		return in.toRM(small)
	}
	return bitAX | bitDX
}

func (in *Insn) writesTwo() uint16 {
	op := in.Op
	switch {
	case op&0xf0 == 0x40, op == 0x02, op == 0x03, op == 0xaf, op == 0xb6, op == 0xb7, op == 0xbe, op == 0xbf,
		op == 0xbc, op == 0xbd, op == 0xb8,
		op == 0x2c, op == 0x2d, op == 0x50, op == 0xd7, op == 0xc5, op == 0xb2, op == 0xb4, op == 0xb5:
		return bit(in.Reg)
	case op == 0xae, op == 0x1e && in.Rep && in.Reg&7 == 1: // rdfsbase, rdgsbase, rdssp
		return in.toRM(false)
	case op&0xf0 == 0x90, op == 0xb0:
		return in.toRM(true) | bitAX
	case op == 0xa4, op == 0xa5, op == 0xac, op == 0xad, op == 0xab, op == 0xb3, op == 0xbb, op == 0xb1:
		return in.toRM(false) | bitAX
	case op == 0xba && in.Reg&7 > 4, op == 0x7e && !in.Rep, op == 0xc7, op == 0x00,
		op == 0x01, op == 0x20, op == 0x21:
		return in.toRM(false) | bitAX | bitDX
	case op == 0xc0, op == 0xc1:
		return in.toRM(op == 0xc0) | in.part(in.Reg, op == 0xc0)
	case op >= 0xc8 && op <= 0xcf:
		return bit(op&7 | in.REX&1<<3)
	case op == 0xa2:
		return bitAX | bitDX | 1<<context.RCX | 1<<context.RBX
	case op == 0x05, op == 0x31, op == 0x32, op == 0x33:
		return bitAX | bitDX | 1<<context.RCX | 1<<context.R11
	}
	return 0
}

func (in *Insn) writesVEX() uint16 {
	op := in.Op
	switch {
	case in.Table == 1 && (op == 0x2c || op == 0x2d || op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x93),
		in.Table == 2 && (op == 0xf2 || op == 0xf5 || op == 0xf7), in.Table == 3 && op == 0xf0:
		return bit(in.Reg)
	case in.Table == 1 && op == 0x7e && !in.Rep, in.Table == 3 && op >= 0x14 && op <= 0x17:
		return in.toRM(false)
	case in.Table == 2 && op == 0xf3:
		return bit(in.Other)
	case in.Table == 3 && (op == 0x61 || op == 0x63):
		return bitCX
	case in.Table == 2 && op == 0xf6:
		return bit(in.Reg) | bit(in.Other)
	}
	return 0
}

// Plain reports whether the instruction only moves and computes.
func (in *Insn) Plain() bool {
	op := in.Op
	if in.Table == 1 {
		return op >= 0x10 && op < 0x30 || op >= 0x40 && op < 0x77 || op >= 0x90 && op < 0xa0 || op == 0xaf ||
			op >= 0xb6 && op < 0xc0 && op != 0xb9
	}
	return op < 0x40 || op == 0x63 || op == 0x69 || op == 0x6b || op >= 0x80 && op < 0x8f || op == 0x90 ||
		op >= 0xa8 && op < 0xaa || op >= 0xb0 && op < 0xc2 ||
		(op == 0xc6 || op == 0xc7) && in.Reg&7 == 0 || op >= 0xd0 && op < 0xd4 || op == 0xf6 || op == 0xf7 ||
		op >= 0xfe && in.Reg&7 < 2
}

// volatile are the general registers that no function preserves.
const volatile = bitAX | bitDX | 1<<context.RCX | 1<<context.R8 | 1<<context.R9 | 1<<context.R10 |
	1<<context.R11

// zeroing are the first bytes of the instructions that Zeroes accepts.
var zeroing = []byte{0xc5, 0x31, 0x45, 0x66, 0xd9, 0xdd, 0xdf, 0x0f}

// Zeroes returns the length in bytes of the first instruction of code. The instruction must be one by which
// gcc clears registers that no function preserves. Zeroes returns 0 for other code. The instructions
// are vzeroupper, vzeroall, emms, fldz, fstp st(i), ffreep st(i), and three of a register with itself: xor
// (31 /r, 32 bits), pxor, and xorps. code must not be empty.
func Zeroes(code []byte) int {
	if bytes.IndexByte(zeroing, code[0]) < 0 {
		return 0
	}
	in := Decode(code)
	switch {
	case in.Memory:
	case in.Table == 1 && in.Op == 0x77,
		in.Table == 1 && (in.Op == 0xef || in.Op == 0x57) && in.Reg == in.RM && in.Reg < 6 &&
			(!in.VEX || in.Other == in.RM),
		in.Table == 0 && in.Op == 0x31 && in.Reg == in.RM && volatile>>in.Reg&1 != 0,
		in.Table == 0 && in.Op == 0xd9 && in.Reg&7 == 5 && in.RM&7 == 6,
		in.Table == 0 && in.Op == 0xdd && in.Reg&7 == 3,
		in.Table == 0 && in.Op == 0xdf && in.Reg&7 == 0:
		return int(in.Size)
	}
	return 0
}

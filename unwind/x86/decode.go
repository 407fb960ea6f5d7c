// Package x86 decodes x86-64 instructions as far as needed to follow what code does to the stack: their
// length, their operands, and the registers that they change.
//
// Source: Intel's manual, volume 2.
//
// Glossary. *Map*: a table of opcodes: those of one byte, and those after 0F, 0F 38, and 0F 3A.
//
// Strategy: bit sets say which opcodes have a ModRM byte and an immediate. The lengths are tested against
// objdump and another decoder, on real libraries.
//
// Known gaps: no 3DNow!, XOP, or APX. Only writes to general registers are reported.
package x86

import "encoding/binary"

// An Insn is one decoded instruction: its length, its operands, and the general registers that it changes.
// The emulator computes its result.
type Insn struct {
	Size   uint8 // length in bytes, 0 for unknown instructions
	Table  uint8 // opcode map: 0, 1 (0F), 2 (0F 38), 3 (0F 3A)
	Op     uint8
	VEX    bool // VEX or EVEX encoded
	REX    uint8
	Short  bool // operand size prefix
	Rep    bool // F3
	PCRel  bool // the memory operand is relative to the next instruction
	Memory bool // the r/m operand is memory
	Reg    uint8
	RM     uint8 // of a register operand
	Other  uint8 // the register of VEX.vvvv
	Base   uint8 // of a memory operand, NoReg if none
	Index  uint8
	Disp   int64 // of a memory operand, or a jump's distance
	Imm    int64
}

// NoReg is no register.
const NoReg = 0xff

// Sets of opcodes, one bit each: those with a ModRM byte, and with an immediate of 1 byte or of 4.
type opcodes [4]uint64

func opcodeSet(list ...[2]uint8) (s opcodes) {
	for _, r := range list {
		for op := int(r[0]); op <= int(r[1]); op++ {
			s[op>>6] |= 1 << (op & 63)
		}
	}
	return s
}

func (s *opcodes) has(op uint8) bool { return s[op>>6]>>(op&63)&1 != 0 }

// Source: Intel's manual, volume 2, appendix A.
var (
	oneModRM = opcodeSet([2]uint8{0, 3}, [2]uint8{8, 0xb}, [2]uint8{0x10, 0x13}, [2]uint8{0x18, 0x1b},
		[2]uint8{0x20, 0x23}, [2]uint8{0x28, 0x2b},
		[2]uint8{0x30, 0x33}, [2]uint8{0x38, 0x3b}, [2]uint8{0x63, 0x63}, [2]uint8{0x69, 0x69},
		[2]uint8{0x6b, 0x6b}, [2]uint8{0x80, 0x8f},
		[2]uint8{0xc0, 0xc1}, [2]uint8{0xc6, 0xc7}, [2]uint8{0xd0, 0xd3}, [2]uint8{0xd8, 0xdf},
		[2]uint8{0xf6, 0xf7}, [2]uint8{0xfe, 0xff})
	oneImm8 = opcodeSet([2]uint8{0x04, 0x04}, [2]uint8{0x0c, 0x0c}, [2]uint8{0x14, 0x14},
		[2]uint8{0x1c, 0x1c}, [2]uint8{0x24, 0x24}, [2]uint8{0x2c, 0x2c},
		[2]uint8{0x34, 0x34}, [2]uint8{0x3c, 0x3c}, [2]uint8{0x6a, 0x6b}, [2]uint8{0x70, 0x80},
		[2]uint8{0x83, 0x83}, [2]uint8{0xa8, 0xa8}, [2]uint8{0xb0, 0xb7},
		[2]uint8{0xc0, 0xc1}, [2]uint8{0xc6, 0xc6}, [2]uint8{0xcd, 0xcd},
		[2]uint8{0xe0, 0xe7}, [2]uint8{0xeb, 0xeb})
	oneImm32 = opcodeSet([2]uint8{0x05, 0x05}, [2]uint8{0x0d, 0x0d}, [2]uint8{0x15, 0x15},
		[2]uint8{0x1d, 0x1d}, [2]uint8{0x25, 0x25}, [2]uint8{0x2d, 0x2d},
		[2]uint8{0x35, 0x35}, [2]uint8{0x3d, 0x3d}, [2]uint8{0x68, 0x69}, [2]uint8{0x81, 0x81},
		[2]uint8{0xa9, 0xa9}, [2]uint8{0xc7, 0xc7}, [2]uint8{0xe8, 0xe9})
	oneInvalid = opcodeSet([2]uint8{0x06, 0x07}, [2]uint8{0x0e, 0x0e}, [2]uint8{0x16, 0x17},
		[2]uint8{0x1e, 0x1f}, [2]uint8{0x27, 0x27}, [2]uint8{0x2f, 0x2f},
		[2]uint8{0x37, 0x37}, [2]uint8{0x3f, 0x3f}, [2]uint8{0x60, 0x61}, [2]uint8{0x82, 0x82},
		[2]uint8{0x9a, 0x9a}, [2]uint8{0xce, 0xce}, [2]uint8{0xd4, 0xd6}, [2]uint8{0xea, 0xea})
	twoPlain = opcodeSet([2]uint8{0x05, 0x0b}, [2]uint8{0x0e, 0x0e}, [2]uint8{0x30, 0x37},
		[2]uint8{0x77, 0x77}, [2]uint8{0x80, 0x8f}, [2]uint8{0xa0, 0xa2},
		[2]uint8{0xa8, 0xaa}, [2]uint8{0xc8, 0xcf})
	twoImm8 = opcodeSet([2]uint8{0x0f, 0x0f}, [2]uint8{0x70, 0x73}, [2]uint8{0xa4, 0xa4},
		[2]uint8{0xac, 0xac}, [2]uint8{0xba, 0xba}, [2]uint8{0xc2, 0xc2}, [2]uint8{0xc4, 0xc6})
)

// MaxInsn is the length of the longest instruction.
const MaxInsn = 15

// Decode decodes the instruction at the start of code. Its Size is 0 if the instruction is unknown.
func Decode(code []byte) (in Insn) {
	d := decoder{code: code[:min(len(code), MaxInsn)]}
	d.instruction()
	if d.bad {
		return Insn{}
	}
	d.in.Size = uint8(d.at)
	return d.in
}

type decoder struct {
	code []byte
	at   int
	bad  bool
	in   Insn
}

func (d *decoder) byte() uint8 {
	if d.at >= len(d.code) {
		d.bad = true
		return 0
	}
	d.at++
	return d.code[d.at-1]
}

// signed reads a little-endian number of 1, 2, 4 or 8 bytes.
func (d *decoder) signed(n int) int64 {
	if d.bad || n > len(d.code)-d.at {
		d.bad = true
		return 0
	}
	var b [8]byte
	copy(b[:], d.code[d.at:d.at+n])
	d.at += n
	shift := 64 - 8*n
	return int64(binary.LittleEndian.Uint64(b[:])<<shift) >> shift
}

func (d *decoder) instruction() {
	in := &d.in
	op := d.byte()
	for op == 0x66 || op == 0xf2 || op == 0xf3 || op == 0x2e || op == 0x36 || op == 0x3e || op == 0x26 ||
		op == 0x64 || op == 0x65 || op == 0x67 || op == 0xf0 {
		in.Short, in.Rep = in.Short || op == 0x66, in.Rep || op == 0xf3
		op = d.byte()
	}
	if op&0xf0 == 0x40 {
		in.REX, op = op, d.byte()
	}
	switch op {
	case 0xc4, 0xc5, 0x62:
		d.vex(op)
	case 0x0f:
		d.escape()
	default:
		in.Op = op
		d.oneByte()
	}
}

// escape decodes the maps after 0F.
func (d *decoder) escape() {
	in := &d.in
	in.Table, in.Op = 1, d.byte()
	switch in.Op {
	case 0x38:
		in.Table, in.Op = 2, d.byte()
	case 0x3a:
		in.Table, in.Op = 3, d.byte()
	}
	d.tail()
}

// tail decodes the part after the opcode in maps 1 to 3.
func (d *decoder) tail() {
	in := &d.in
	if in.Table != 1 || !twoPlain.has(in.Op) {
		d.modRM()
	}
	switch {
	case in.Table == 3, in.Table == 1 && twoImm8.has(in.Op):
		in.Imm = d.signed(1)
	case in.Table == 1 && in.Op&0xf0 == 0x80 && !in.VEX:
		in.Disp = d.signed(4)
	}
}

// vex decodes a VEX or EVEX prefix and the instruction after it.
func (d *decoder) vex(first uint8) {
	in := &d.in
	in.VEX = true
	a := d.byte()
	in.Table, in.REX = 1, ^a>>5&4|0x40
	vvvv := a
	if first != 0xc5 {
		in.Table, in.REX = a&7, ^a>>5&7|0x40
		vvvv = d.byte()
		in.REX |= vvvv >> 4 & 8
	}
	if first == 0x62 {
		d.byte()
	}
	in.Other = ^vvvv >> 3 & 15
	in.Op = d.byte()
	if in.Table < 1 || in.Table > 3 {
		d.bad = true
		return
	}
	d.tail()
}

func (d *decoder) oneByte() {
	in := &d.in
	op := in.Op
	if oneInvalid.has(op) {
		d.bad = true
		return
	}
	if oneModRM.has(op) {
		d.modRM()
	}
	switch {
	case op >= 0x70 && op <= 0x7f, op == 0xeb, op >= 0xe0 && op <= 0xe3:
		in.Disp = d.signed(1)
	case op == 0xe8, op == 0xe9:
		in.Disp = d.signed(4)
	case op&0xf8 == 0xb8 && in.REX&8 != 0, op >= 0xa0 && op <= 0xa3:
		in.Imm = d.signed(8)
	case op&0xf8 == 0xb8, oneImm32.has(op), op == 0xf7 && in.Reg&6 == 0:
		in.Imm = d.signed(d.operand())
	case oneImm8.has(op), op == 0xf6 && in.Reg&6 == 0:
		in.Imm = d.signed(1)
	case op == 0xc2, op == 0xca:
		in.Imm = d.signed(2)
		d.bad = d.bad || in.Imm != 0 // in both ABIs the caller frees its arguments
	case op == 0xc8:
		in.Imm = d.signed(2)
		d.byte()
	}
}

// operand returns the size of an immediate that depends on the operand size.
func (d *decoder) operand() int {
	if d.in.Short && d.in.REX&8 == 0 {
		return 2
	}
	return 4
}

// modRM decodes ModRM, SIB, and displacement. For groups of operations, the low three bits of in.Reg are the
// opcode's extension.
func (d *decoder) modRM() {
	in := &d.in
	m := d.byte()
	mod := m >> 6
	in.Reg, in.RM = m>>3&7|in.REX&4<<1, m&7|in.REX&1<<3
	in.Base, in.Index = NoReg, NoReg
	if mod == 3 {
		return
	}
	in.Memory, in.Base = true, in.RM
	if m&7 == 4 {
		sib := d.byte()
		in.Base = sib&7 | in.REX&1<<3
		if x := sib>>3&7 | in.REX&2<<2; x != 4 {
			in.Index = x
		}
		if sib&7 == 5 && mod == 0 {
			in.Base, mod = NoReg, 2
		}
	} else if m&7 == 5 && mod == 0 {
		in.Base, in.Index, in.PCRel, mod = NoReg, NoReg, true, 2
	}
	switch mod {
	case 1:
		in.Disp = d.signed(1)
	case 2:
		in.Disp = d.signed(4)
	}
}

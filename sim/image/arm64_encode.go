package image

import "encoding/binary"

// Machine code of A64. Source: Arm Architecture Reference Manual for A-profile,
// "A64 base instructions".

const (
	x8  Reg = 8
	x9  Reg = 9
	x19 Reg = 19
	x29 Reg = 29
	x30 Reg = 30
	xsp Reg = 31
)

// Whole instructions.
const (
	a64Nop     = 0xd503201f
	a64PACIASP = 0xd503233f
	a64AUTIASP = 0xd50323bf
	a64PACIBSP = 0xd503237f
	a64AUTIBSP = 0xd50323ff
	a64Ret     = 0xd65f03c0
	a64BRX16   = 0xd61f0200
	a64BLRX8   = 0xd63f0100
)

// a64Fillers change nothing but volatile registers.
var a64Fillers = [...]uint32{
	a64Nop,
	0xaa0103e0, // mov x0, x1
	0x91000421, // add x1, x1, #1
	0xf100005f, // cmp x2, #0
	0xca0e01cd, // eor x13, x14, x14
}

// word emits one instruction.
func (a *asm) word(w uint32, effects ...Effect) {
	a.emit(binary.LittleEndian.AppendUint32(nil, w), effects...)
}

func (a *asm) filler(n int) { a.word(a64Fillers[uint(n)%uint(len(a64Fillers))]) }

// pairForm and singleForm are the opcodes of one register file.
type pairForm struct{ stp, stpPre, ldp, ldpPost uint32 }
type singleForm struct{ str, strPre, ldr, ldrPost uint32 }

// Index 1 is that of the vector registers' low 8 bytes.
var (
	a64Pair = [2]pairForm{
		{0xa9000000, 0xa9800000, 0xa9400000, 0xa8c00000},
		{0x6d000000, 0x6d800000, 0x6d400000, 0x6cc00000},
	}
	a64Single = [2]singleForm{
		{0xf9000000, 0xf8000c00, 0xf9400000, 0xf8400400},
		{0xfd000000, 0xfc000c00, 0xfd400000, 0xfc400400},
	}
)

func index(vector bool) int {
	if vector {
		return 1
	}
	return 0
}

// pairWord encodes stp and ldp: a multiple of 8 from -512 to 504.
func pairWord(op uint32, r, r2 Reg, imm int64) uint32 {
	return op | uint32(imm/8)&0x7f<<15 | uint32(r2)<<10 | uint32(xsp)<<5 | uint32(r)
}

// offsetWord encodes str and ldr at a multiple of 8 from 0 to 32760.
func offsetWord(op uint32, r Reg, imm int64) uint32 {
	return op | uint32(imm/8)<<10 | uint32(xsp)<<5 | uint32(r)
}

// indexWord encodes str and ldr that move SP by -256 to 255.
func indexWord(op uint32, r Reg, imm int64) uint32 {
	return op | uint32(imm)&0x1ff<<12 | uint32(xsp)<<5 | uint32(r)
}

// addWord encodes rd = rn + n. n is a positive or negative 12-bit number, which may be shifted by 12.
func addWord(rd, rn Reg, n int64) uint32 {
	op, m := uint32(0x91000000), uint32(n)
	if n < 0 {
		op, m = 0xd1000000, uint32(-n)
	}
	if m >= 1<<12 {
		op, m = op|1<<22, m>>12
	}
	return op | m<<10 | uint32(rn)<<5 | uint32(rd)
}

// addImm is rd = rn + n.
func (a *asm) addImm(rd, rn Reg, n int64) {
	a.word(addWord(rd, rn, n), Effect{Kind: Add, Reg: rd, Base: rn, Imm: n})
}

// alloca moves SP down by n bytes, 1 to 65536, that a walker cannot know.
func (a *asm) allocaARM64(n int64) {
	a.word(0x92800000|uint32(n-1)<<5|uint32(x9), Effect{Kind: Set, Reg: x9, Imm: -n}) // movn x9, #n-1
	a.word(0x8b2063ff|uint32(x9)<<16, Effect{Kind: AddReg, Reg: xsp, Base: x9})       // add sp, sp, x9
}

// callARM64 calls the function's own first instruction, or through x8.
func (a *asm) callARM64(direct bool) {
	w := uint32(a64BLRX8)
	if direct {
		w = 0x94000000 | uint32(-int32(a.off)/4)&0x3ffffff
	}
	a.word(w, Effect{Kind: Call})
}

package image

import "encoding/binary"

// Machine code of x86-64. Source: Intel SDM volume 2; the nops are those it
// recommends.

const (
	rax Reg = 0
	rcx Reg = 1
	rdx Reg = 2
	rbx Reg = 3
	rsp Reg = 4
	rbp Reg = 5
	rsi Reg = 6
	rdi Reg = 7
	r8  Reg = 8
	r9  Reg = 9
	r12 Reg = 12
	r15 Reg = 15
)

// nops of 1 to 9 bytes.
var nops = [...][]byte{
	{0x90},
	{0x66, 0x90},
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0},
	{0x0f, 0x1f, 0x44, 0, 0},
	{0x66, 0x0f, 0x1f, 0x44, 0, 0},
	{0x0f, 0x1f, 0x80, 0, 0, 0, 0},
	{0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
	{0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
}

// asm collects ops.
type asm struct {
	ops  []Op
	off  uint32
	part Part
}

func (a *asm) emit(code []byte, effects ...Effect) {
	a.ops = append(a.ops, Op{Off: a.off, Code: code, Part: a.part, Effects: effects})
	a.off += uint32(len(code))
}

func (a *asm) nop(n int) { a.emit(nops[n-1]) }

// push stores first, below SP, so that a fault leaves SP where it was.
func (a *asm) push(r Reg) {
	a.emit(short(0x50, r), Effect{Kind: Store, Reg: r, Base: rsp, Imm: -8},
		Effect{Kind: Add, Reg: rsp, Base: rsp, Imm: -8})
}

func (a *asm) pop(r Reg) {
	a.emit(short(0x58, r), Effect{Kind: Load, Reg: r, Base: rsp},
		Effect{Kind: Add, Reg: rsp, Base: rsp, Imm: 8})
}

// short encodes an instruction that has its register in the opcode.
func short(op byte, r Reg) []byte {
	if r >= 8 {
		return []byte{0x41, op | byte(r&7)}
	}
	return []byte{op | byte(r)}
}

// sub and add move SP by a constant.
func (a *asm) sub(n int64) { a.immediate(0xec, n, -n) }
func (a *asm) add(n int64) { a.immediate(0xc4, n, n) }

func (a *asm) immediate(modrm byte, n, moved int64) {
	code := []byte{0x48, 0x83, modrm, byte(n)}
	if n != int64(int8(n)) {
		code = binary.LittleEndian.AppendUint32([]byte{0x48, 0x81, modrm}, uint32(n))
	}
	a.emit(code, Effect{Kind: Add, Reg: rsp, Base: rsp, Imm: moved})
}

// operand encodes an instruction with a register and [base+disp]. If w is true, it has REX.W.
func operand(w bool, op []byte, reg, base Reg, disp int64) []byte {
	rex := byte(reg>>3<<2 | base>>3)
	if w {
		rex |= 8
	}
	var code []byte
	if rex != 0 {
		code = append(code, 0x40|rex)
	}
	code = append(code, op...)
	short := disp == int64(int8(disp))
	mod := byte(2 << 6)
	if short {
		mod = 1 << 6
	}
	code = append(code, mod|byte(reg&7)<<3|byte(base&7))
	if base&7 == rsp {
		code = append(code, 0x24) // SIB: no index
	}
	if short {
		return append(code, byte(disp))
	}
	return binary.LittleEndian.AppendUint32(code, uint32(disp))
}

// lea is reg = base + disp.
func (a *asm) lea(reg, base Reg, disp int64) {
	a.emit(operand(true, []byte{0x8d}, reg, base, disp), Effect{Kind: Add, Reg: reg, Base: base, Imm: disp})
}

// movFromSP is reg = SP.
func (a *asm) movFromSP(reg Reg) {
	a.emit([]byte{0x48 | byte(reg>>3), 0x89, 0xe0 | byte(reg&7)}, Effect{Kind: Add, Reg: reg, Base: rsp})
}

// moves are the opcodes of mov and movaps.
var moves = map[EffectKind][]byte{Store: {0x89}, Load: {0x8b}, StoreV: {0x0f, 0x29}, LoadV: {0x0f, 0x28}}

// move stores or loads reg at base + disp.
func (a *asm) move(kind EffectKind, reg, base Reg, disp int64) {
	general := kind == Store || kind == Load
	a.emit(operand(general, moves[kind], reg, base, disp),
		Effect{Kind: kind, Reg: reg, Base: base, Imm: disp})
}

// leave is mov rsp, rbp; pop rbp.
func (a *asm) leave() {
	a.emit([]byte{0xc9}, Effect{Kind: Add, Reg: rsp, Base: rbp}, Effect{Kind: Load, Reg: rbp, Base: rsp},
		Effect{Kind: Add, Reg: rsp, Base: rsp, Imm: 8})
}

// alloca lowers SP by n through RAX, so that the instruction that lowers SP does not contain n.
func (a *asm) alloca(n int64) {
	a.emit(binary.LittleEndian.AppendUint32([]byte{0x48, 0xc7, 0xc0}, uint32(-n)),
		Effect{Kind: Set, Reg: rax, Imm: -n})
	a.emit([]byte{0x48, 0x01, 0xc4}, Effect{Kind: AddReg, Reg: rsp, Base: rax})
}

func (a *asm) call() { a.emit([]byte{0xe8, 0, 0, 0, 0}, Effect{Kind: Call}) }

// jump leaves the function.
func (a *asm) jump(form JumpForm) {
	code := []byte{0xe9, 0, 0, 0, 0}
	switch form {
	case JumpMem:
		code = []byte{0xff, 0x25, 0, 0, 0, 0}
	case JumpReg:
		code = []byte{0x48, 0xff, 0xe0}
	}
	a.emit(code, Effect{Kind: Jump})
}

package amd64

import (
	"slices"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// A value64 is what the emulator knows of a register or of a word of the stack.
type value64 struct {
	v    uint64
	kind valueKind
}

type valueKind uint8

const (
	unknownValue valueKind = iota
	knownValue             // it equals v
	entryValue             // it is the value of register v at the function's entry
)

// store is a word that the emulated code has written.
type store struct {
	at uint64
	v  value64
}

// maxStores bounds the stores that are remembered. Unknown values take at most half of them. A later store is
// dropped, and a load of its word reads memory.
const maxStores = 24

// An emulator executes code for its effect on the stack pointer, the frame pointer, and the preserved
// registers: it moves, adds, pushes, and pops known values, and forgets what other instructions change. It
// assumes that stores to unknown addresses, and stores by other instructions, do not hit saved registers.
type emulator struct {
	regs   [16]value64
	stores [maxStores]store
	n      int
	cmp    comparison
}

// flow is how control leaves an instruction.
type flow uint8

const (
	flowNext flow = iota
	flowJump
	flowBranch // to its target, or to the next instruction
	flowCall
	flowReturn
	flowIndirect // to an unknown address
	flowStop     // the emulator cannot continue: hlt, ud2, int, a far call or return
)

// volatileRegs are the registers that a System V call does not preserve.
const volatileRegs = 0xffff &^ nonvolatile

func (e *emulator) get(reg uint8) value64 { return e.regs[reg&15] }

func (e *emulator) set(reg uint8, v value64) { e.regs[reg&15] = v }

// address returns the address of a memory operand.
func (e *emulator) address(in *x86.Insn) (uint64, bool) {
	if in.Base == x86.NoReg || in.Index != x86.NoReg {
		return 0, false
	}
	b := e.get(in.Base)
	return b.v + uint64(in.Disp), b.kind == knownValue
}

func (e *emulator) save(at uint64, v value64) {
	for i := range e.stores[:e.n] {
		if e.stores[i].at == at {
			e.stores[i].v = v
			return
		}
	}
	if e.n < maxStores && (v.kind != unknownValue || e.n < maxStores/2) {
		e.stores[e.n] = store{at, v}
		e.n++
	}
}

// stored reports whether the code has written the word at an address.
func (e *emulator) stored(at uint64) bool {
	return slices.ContainsFunc(e.stores[:e.n], func(s store) bool { return s.at == at })
}

// load reads a word that the code has written or, with a window, a word of memory.
func (e *emulator) load(at uint64, mem *memory.Window) value64 {
	for i := range e.stores[:e.n] {
		if e.stores[i].at == at {
			return e.stores[i].v
		}
	}
	if mem == nil {
		return value64{}
	}
	if v, ok := mem.Word(at); ok {
		return value64{v, knownValue}
	}
	return value64{}
}

func (e *emulator) push(v value64) {
	sp := &e.regs[context.RSP]
	if sp.kind == knownValue {
		sp.v -= 8
		e.save(sp.v, v)
	}
}

func (e *emulator) pop(mem *memory.Window) value64 {
	sp := &e.regs[context.RSP]
	if sp.kind != knownValue {
		return value64{}
	}
	v := e.load(sp.v, mem)
	sp.v += 8
	return v
}

// forget makes registers unknown.
func (e *emulator) forget(set uint16) {
	for reg := range uint8(16) {
		if set>>reg&1 != 0 {
			e.regs[reg] = value64{}
		}
	}
}

// run executes one instruction.
func (e *emulator) run(in *x86.Insn, mem *memory.Window) flow {
	if in.Table == 1 && !in.VEX {
		return e.runTwo(in)
	}
	if in.Table != 0 || in.VEX {
		e.forget(in.Writes())
		return flowNext
	}
	switch op := in.Op; {
	case op&0xf8 == 0x50:
		e.push(e.get(op&7 | in.REX&1<<3))
	case op&0xf8 == 0x58:
		e.set(op&7|in.REX&1<<3, e.pop(mem))
	case op == 0x68, op == 0x6a:
		e.push(value64{uint64(in.Imm), knownValue})
	case op == 0x8f && in.Reg&7 == 0: // else XOP
		e.popTo(in, mem)
	case op == 0x9d: // popf
		e.pop(mem)
	case op == 0x9c:
		e.push(value64{})
	case op == 0xc9:
		e.set(context.RSP, e.get(context.RBP))
		e.set(context.RBP, e.pop(mem))
	case op&0xf0 == 0x70, op >= 0xe0 && op <= 0xe3:
		return flowBranch
	case op == 0xe9, op == 0xeb:
		return flowJump
	case op == 0xe8:
		e.forget(volatileRegs)
		return flowCall
	case op == 0xc3, op == 0xc2:
		return flowReturn
	case op == 0xcc, op == 0xf4, op == 0xc8, op == 0xcf, op == 0xcb, op == 0xca, op == 0xcd, op == 0x8f:
		return flowStop
	case op == 0xff:
		return e.group5(in)
	default:
		e.compute(in, mem)
	}
	return flowNext
}

// popTo executes a pop into a register or into memory, whose address is computed after RSP is raised.
func (e *emulator) popTo(in *x86.Insn, mem *memory.Window) {
	v := e.pop(mem)
	if at, ok := e.address(in); !in.Memory {
		e.set(in.RM, v)
	} else if ok {
		e.save(at, v)
	}
}

func (e *emulator) runTwo(in *x86.Insn) flow {
	switch {
	case in.Op&0xf0 == 0x80:
		return flowBranch
	case in.Op == 0x0b, in.Op == 0x07: // ud2, sysret
		return flowStop
	}
	e.forget(in.Writes())
	return flowNext
}

func (e *emulator) group5(in *x86.Insn) flow {
	switch in.Reg & 7 {
	case 2:
		e.forget(volatileRegs)
		return flowCall
	case 3, 5, 7:
		return flowStop
	case 4:
		return flowIndirect
	case 6:
		e.push(value64{})
		return flowNext
	}
	e.forget(in.Writes())
	return flowNext
}

// compute executes the 64-bit moves and sums that set up and leave frames. For other instructions it makes
// the registers that they change unknown. A 32-bit store makes its word unknown.
func (e *emulator) compute(in *x86.Insn, mem *memory.Window) {
	at, known := uint64(0), false
	if in.Memory {
		at, known = e.address(in)
	}
	wide := in.REX&8 != 0
	switch op := in.Op; {
	case (op == 0x39 || op == 0x3b) && wide && !in.Memory:
		e.compare(in)
	case (op == 0x89 || op == 0xc7) && known:
		v := value64{uint64(in.Imm), knownValue}
		if op == 0x89 {
			v = e.get(in.Reg)
		}
		if !wide {
			v = value64{}
		}
		e.save(at, v)
	case op == 0x89 && wide && !in.Memory:
		e.set(in.RM, e.get(in.Reg))
	case op == 0x8b && wide && !in.Memory:
		e.set(in.Reg, e.get(in.RM))
	case op == 0x8b && wide && known:
		e.set(in.Reg, e.load(at, mem))
	case op == 0x8d && wide:
		v := value64{}
		if known {
			v = value64{at, knownValue}
		}
		e.set(in.Reg, v)
	case (op == 0x83 || op == 0x81) && wide && !in.Memory:
		e.sum(in.RM, in.Reg&7, value64{uint64(in.Imm), knownValue})
	case (op == 0x01 || op == 0x29) && wide && !in.Memory:
		e.sum(in.RM, op>>3, e.get(in.Reg))
	case (op == 0x03 || op == 0x2b) && wide && !in.Memory:
		e.sum(in.Reg, op>>3, e.get(in.RM))
	case op&0xf8 == 0xb8 && wide:
		e.set(op&7|in.REX&1<<3, value64{uint64(in.Imm), knownValue})
	case op&0xf8 == 0xb8:
		e.set(op&7|in.REX&1<<3, value64{uint64(uint32(in.Imm)), knownValue})
	default:
		e.forget(in.Writes())
	}
}

// sum executes an operation of the arithmetic group on a register: add (0), and (4), sub (5), cmp (7).
func (e *emulator) sum(reg, operation uint8, v value64) {
	r := &e.regs[reg&15]
	ok := r.kind == knownValue && v.kind == knownValue
	switch {
	case operation == 7:
	case ok && operation == 0:
		r.v += v.v
	case ok && operation == 5:
		r.v -= v.v
	case ok && operation == 4:
		r.v &= v.v
	default:
		*r = value64{}
	}
}

// enterFrame starts with a frame's registers.
func (e *emulator) enterFrame(regs *Registers) {
	for i := range e.regs {
		if known(regs, i) {
			e.regs[i] = value64{regs.GPR[i], knownValue}
		}
	}
}

// leave returns the registers in kept after a return. XMM registers are the frame's: code without unwind data
// cannot save them. The stack pointer must not be below the frame's.
func (e *emulator) leave(regs *Registers, mem *memory.Window, kept uint32) (to Registers, ok bool) {
	at := e.regs[context.RSP]
	if at.kind != knownValue || at.v < regs.GPR[context.RSP] {
		return to, false
	}
	ra := e.load(at.v, mem)
	to.RIP, to.Known, to.GPR[context.RSP] = ra.v, 1<<context.RSP, at.v+8
	for reg, v := range e.regs {
		if v.kind == knownValue && reg != context.RSP && kept>>reg&1 != 0 {
			to.GPR[reg] = v.v
			to.Known |= 1 << reg
		}
	}
	to.XMM = regs.XMM
	to.Known |= regs.Known & kept &^ 0xffff
	return to, ra.kind == knownValue
}

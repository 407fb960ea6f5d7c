package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
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
	loadedValue            // it was loaded from address v, whose content is unknown
)

// store is a word that the emulated code has written.
type store struct {
	at uint64
	v  value64
}

const maxStores = 24

// An emulator executes code for its effect on SP, x30, and the preserved registers: it moves, adds, stores,
// and loads known values, and forgets everything that other instructions change. It assumes that stores to
// unknown addresses do not hit the words in which registers were saved.
type emulator struct {
	regs    [32]value64 // 31 is SP
	vectors [8]uint64   // addresses from which v8 to v15 were loaded last; 0: not loaded, or stored before
	stored  uint8       // which of them were stored: they are not restored where they are loaded later
	stores  [maxStores]store
	n       int
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
	flowStop     // ends: brk, udf
)

// source returns a register; 31 is the zero register.
func (e *emulator) source(reg uint32) value64 {
	if reg&31 == regSP {
		return value64{0, knownValue}
	}
	return e.regs[reg&31]
}

// write sets a register; 31 is the zero register, which does not change.
func (e *emulator) write(reg uint32, v value64) {
	if reg&31 != regSP {
		e.regs[reg&31] = v
	}
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

// load reads a word that the code has written, or memory. Without a window, other words are loadedValues.
func (e *emulator) load(at uint64, mem *memory.Window) value64 {
	for i := range e.stores[:e.n] {
		if e.stores[i].at == at {
			return e.stores[i].v
		}
	}
	if mem == nil {
		return value64{at, loadedValue}
	}
	if v, ok := mem.Word(at); ok {
		return value64{v, knownValue}
	}
	return value64{}
}

// called makes everything unknown that a call does not preserve.
func (e *emulator) called() {
	for reg := range uint32(18) {
		e.regs[reg] = value64{}
	}
	e.regs[regLR] = value64{}
}

// run executes one instruction. distance is that of a jump in bytes.
func (e *emulator) run(w uint32, mem *memory.Window) (how flow, distance int64) {
	switch {
	case nearcall.IsARM64(w):
		e.called()
		return flowCall, 0
	case w>>26 == 5: // b
		return flowJump, int64(int32(w<<6)>>6) * 4
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // b.cond, cbz, cbnz
		return flowBranch, int64(int32(w<<8)>>13) * 4
	case w>>25&0x3f == 0x1b: // tbz, tbnz
		return flowBranch, int64(int32(w<<13)>>18) * 4
	case w&0xfffff800 == 0xd65f0800: // retaa, retab
		return flowReturn, 0
	case w&0xfffffc1f == 0xd65f0000: // ret, by any register
		e.regs[regLR] = e.regs[w>>5&31]
		return flowReturn, 0
	case w>>25 == 0x6b: // br and its variants
		return flowIndirect, 0
	case w&0xffe0001f == 0xd4000001: // svc
		e.regs[0] = value64{}
		return flowNext, 0
	case w>>24 == 0xd4, w>>16 == 0:
		return flowStop, 0
	case w>>22 == 0x354: // hints, barriers, mrs
		if w>>20&1 != 0 && w>>21&1 != 0 {
			e.write(w, value64{})
		}
		return flowNext, 0
	}
	e.data(w, mem)
	return flowNext, 0
}

// data executes an instruction that is not a branch.
func (e *emulator) data(w uint32, mem *memory.Window) {
	switch w >> 25 & 15 {
	case 2: // SVE: addvl, addpl, rdvl, cntb, incb, and their variants, all by the size of its registers
		if w&0xff20f000 == 0x04205000 || w&0xff20e000 == 0x0420e000 {
			e.result(w, value64{}, w>>15&1 != 0 || w>>23&1 != 0) // only the first two can write SP
		}
	case 8, 9:
		e.immediate(w)
	case 5, 13:
		e.registers(w)
	case 4, 6, 12, 14:
		e.memory(w, mem)
	case 7, 15:
		e.vector(w)
	}
}

// immediate executes 64-bit add, sub, and moves, and makes the results of others unknown.
func (e *emulator) immediate(w uint32) {
	switch {
	case w&0x9f000000 == 0x10000000 || w&0x9f000000 == 0x90000000: // adr, adrp
		e.write(w, value64{})
	case w&0x1f800000 == 0x11000000: // add, sub
		n := uint64(w >> 10 & 0xfff)
		if w>>22&1 != 0 {
			n <<= 12
		}
		v := add(e.regs[w>>5&31], n, w>>30&1 != 0)
		e.result(w, v, w>>29&1 != 0)
	case w&0x1f800000 == 0x12000000: // and, orr, eor, ands
		e.result(w, value64{}, w>>29&3 == 3)
	case w&0xff800000 == 0xd2800000: // movz
		e.write(w, value64{uint64(w>>5&0xffff) << (w >> 21 & 3 * 16), knownValue})
	case w&0xff800000 == 0x92800000: // movn
		e.write(w, value64{^(uint64(w>>5&0xffff) << (w >> 21 & 3 * 16)), knownValue})
	case w&0xff800000 == 0xf2800000 && e.source(w).kind == knownValue: // movk
		shift := w >> 21 & 3 * 16
		e.write(w, value64{e.source(w).v&^(0xffff<<shift) | uint64(w>>5&0xffff)<<shift, knownValue})
	default:
		e.write(w, value64{})
	}
}

// result writes the result of an instruction to a register, with 31 as SP unless the instruction sets flags.
// 32-bit results become unknown.
func (e *emulator) result(w uint32, v value64, flags bool) {
	if w>>31 == 0 {
		v = value64{}
	}
	if w&31 != regSP || !flags {
		e.regs[w&31] = v
	}
}

// add returns a+n, or a-n if sub. The result is unknown if a is unknown.
func add(a value64, n uint64, sub bool) value64 {
	switch {
	case n == 0:
		return a
	case a.kind != knownValue:
		return value64{}
	case sub:
		n = -n
	}
	return value64{a.v + n, knownValue}
}

// registers executes mov, add, and sub of 64-bit registers, and makes the results of others unknown.
func (e *emulator) registers(w uint32) {
	switch {
	case w&0xffe0ffe0 == 0xaa0003e0: // mov
		e.write(w, e.source(w>>16))
	case w&0xbfe00000 == 0x8b200000: // add, sub with an extended register
		v := value64{}
		if m := e.source(w >> 16); m.kind == knownValue && w>>13&3 == 3 && w>>10&7 <= 4 {
			v = add(e.regs[w>>5&31], m.v<<(w>>10&7), w>>30&1 != 0)
		}
		e.result(w, v, false)
	case w&0xbfe00000 == 0x8b000000: // add, sub with a shifted one
		v := value64{}
		if m := e.source(w >> 16); m.kind == knownValue {
			v = add(e.source(w>>5), m.v<<(w>>10&63), w>>30&1 != 0)
		}
		e.write(w, v)
	default:
		e.write(w, value64{})
	}
}

// vector handles vector instructions with a result in a general register.
func (e *emulator) vector(w uint32) {
	switch {
	case w&0x5f20fc00 == 0x1e200000 && (w>>17&1 == 0 || w>>16&7 == 6), // fcvt*, fmov
		w&0xbfe0fc00 == 0x0e003c00, w&0xbfe0fc00 == 0x0e002c00: // umov, smov
		e.write(w, value64{})
	}
}

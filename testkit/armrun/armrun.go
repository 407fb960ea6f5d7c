// Package armrun runs straight-line code of ARM64 as the processor would: the prologs and epilogs that
// compilers write. It is a third implementation for tests of unwind data, and uses no unwind data itself.
// Source: Arm Architecture Reference Manual for A-profile (DDI 0487), C4 and C6.
// Glossary. A *prolog* is here the code that is run from a function's first instruction on; an *epilog* is
// the code from the first of the loads before a return up to the return.
// Strategy. Unknown instructions are refused, not guessed. Frames runs a function's prolog and each of its
// epilogs, and a test undoes the frame at each instruction: the result must be the registers with which the
// function was entered.
// Known gaps: no branches, no flags, no loads and stores except those of the stack; no signed return
// addresses.
package armrun

import "encoding/binary"

// Registers are those that functions preserve or return through, among others.
type Registers struct {
	X  [31]uint64
	SP uint64
	PC uint64
	D  [32]uint64 // lower halves
}

// Machine is a processor with a stack.
type Machine struct {
	Registers
	Stack []byte
	Base  uint64 // address of Stack[0]
}

// Next is how an instruction ends.
type Next uint8

const (
	Refused Next = iota // not run: unknown
	On
	Left // a jump through a register, to PC
)

const sp = 31

// get is a register; number 31 is SP.
func (m *Machine) get(r uint32) uint64 {
	if r&31 == sp {
		return m.SP
	}
	return m.X[r&31]
}

func (m *Machine) set(r uint32, v uint64) {
	if r&31 == sp {
		m.SP = v
		return
	}
	m.X[r&31] = v
}

// value is a register; number 31 is zero.
func (m *Machine) value(r uint32) uint64 {
	if r&31 == sp {
		return 0
	}
	return m.X[r&31]
}

// Do runs an instruction.
func (m *Machine) Do(w uint32) Next {
	next := m.run(w)
	if next == On {
		m.PC += 4
	}
	return next
}

func (m *Machine) run(w uint32) Next {
	rd, rn, rm := w&31, w>>5&31, w>>16&31
	switch {
	case w == 0xd503201f: // nop
	case w&0xfffffc1f == 0xd65f0000, w&0xfffffc1f == 0xd61f0000: // ret, br
		m.PC = m.X[rn]
		return Left
	case w&0xbf800000 == 0x91000000: // add, sub of an immediate
		m.set(rd, sum(w, m.get(rn), uint64(w>>10&0xfff)<<(w>>22&1*12)))
	case w&0xbfe0fc00 == 0x8b206000: // add, sub of a register, extended as it is
		m.set(rd, sum(w, m.get(rn), m.value(rm)))
	case w&0xbfe0fc00 == 0x8b000000 && rd != sp: // add, sub of a register
		m.set(rd, sum(w, m.value(rn), m.value(rm)))
	case w&0xffe0ffe0 == 0xaa0003e0 && rd != sp: // mov
		m.set(rd, m.value(rm))
	case w&0x1f800000 == 0x12800000 && rd != sp: // movn, movz, movk
		return m.wide(w, rd)
	case w == 0x6f00e400|rd || w == 0x4f000400|rd: // movi v.2d, v.4s, #0
		m.D[rd] = 0
	case w&0x3a000000 == 0x28000000:
		return m.pair(w)
	case w&0x3a000000 == 0x38000000:
		return m.single(w)
	default:
		return Refused
	}
	return On
}

func sum(w uint32, a, b uint64) uint64 {
	if w>>30&1 != 0 {
		return a - b
	}
	return a + b
}

// wide runs the moves of 16 bits.
func (m *Machine) wide(w, rd uint32) Next {
	shift, v := w>>21&3*16, uint64(w>>5&0xffff)
	if w>>31 == 0 && shift > 16 {
		return Refused
	}
	switch w >> 29 & 3 {
	case 0:
		v = ^(v << shift)
	case 2:
		v <<= shift
	case 3:
		v = m.X[rd]&^(0xffff<<shift) | v<<shift
	default:
		return Refused
	}
	if w>>31 == 0 {
		v &= 1<<32 - 1
	}
	m.set(rd, v)
	return On
}

// pair runs ldp and stp. Bits 23 and 24 tell when the base changes: 1 after, 2 not at all, 3 before.
func (m *Machine) pair(w uint32) Next {
	vector, scale := w>>26&1 != 0, 2+w>>31
	if vector {
		scale = 2 + w>>30
	}
	if scale > 4 || !vector && w>>30&1 != 0 {
		return Refused
	}
	off := uint64(int64(int32(w<<10)>>25) << scale)
	at, ok := m.address(w, off, w>>23&3)
	if !ok {
		return Refused
	}
	m.move(w, at, w&31, vector, scale)
	m.move(w, at+1<<scale, w>>10&31, vector, scale)
	return On
}

// single runs ldr and str, with an unsigned offset or with one of nine bits.
func (m *Machine) single(w uint32) Next {
	vector, scale := w>>26&1 != 0, w>>30
	if vector && w>>23&1 != 0 {
		if scale != 0 {
			return Refused
		}
		scale = 4
	} else if w>>23&1 != 0 {
		return Refused // it extends a sign
	}
	mode, off := uint32(2), uint64(w>>10&0xfff)<<scale
	if w>>24&1 == 0 {
		if w>>21&1 != 0 || w>>10&3 == 2 {
			return Refused
		}
		off = uint64(int64(int32(w<<11) >> 23))
		mode = [4]uint32{2, 1, 0, 3}[w>>10&3]
	}
	at, ok := m.address(w, off, mode)
	if !ok {
		return Refused
	}
	m.move(w, at, w&31, vector, scale)
	return On
}

// address is the address of a load or store; it also changes the base register.
func (m *Machine) address(w uint32, off uint64, mode uint32) (at uint64, ok bool) {
	rn := w >> 5 & 31
	at = m.get(rn)
	moved := at + off
	if mode != 1 {
		at = moved
	}
	if at-m.Base >= uint64(len(m.Stack)-32) || mode == 0 {
		return 0, false
	}
	if mode != 2 {
		m.set(rn, moved)
	}
	return at, true
}

// move loads or stores a register of 1<<scale bytes.
func (m *Machine) move(w uint32, at uint64, r uint32, vector bool, scale uint32) {
	word, load := m.Stack[at-m.Base:], w>>22&1 != 0
	var b [16]byte
	switch {
	case load:
		copy(b[:1<<scale], word)
		v := binary.LittleEndian.Uint64(b[:])
		if vector {
			m.D[r] = v
		} else if r != sp {
			m.X[r] = v
		}
		return
	case vector:
		binary.LittleEndian.PutUint64(b[:], m.D[r])
	default:
		binary.LittleEndian.PutUint64(b[:], m.value(r))
	}
	copy(word, b[:1<<scale])
}

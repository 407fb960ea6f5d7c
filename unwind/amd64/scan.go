package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// A scan runs code forward from a frame's instruction to the return that ends
// its function, following what it does to the stack pointer and to the
// registers it pops. Start-up code (_init, register_tm_clones,
// __do_global_dtors_aux and their like) is compiled without unwind data and
// simple enough for it. Every instruction outside the small set below ends the
// scan without an answer.
//
// On all paths to a return the stack pointer must agree, or the function could
// not return: so conditional jumps may be taken as not taken.
type scan struct {
	m      *module.Module
	addr   uint64 // of code[0]
	code   []byte
	pos    int
	at     int64 // RSP now, relative to the frame's
	regs   Registers
	mem    *memory.Window
	pushed [8]pushed // by the scan itself: not in memory
	depth  int
	call   bool // the last instruction was a call, which might not return
	short  bool // this instruction has an operand size prefix
}

type pushed struct {
	reg   uint8
	known bool
	value uint64
}

const maxScan = 64 // instructions

// outcome of one instruction
type outcome uint8

const (
	refused outcome = iota
	goOn
	returns // the return address is at RSP+at
)

// leave runs the scan and gives the caller's registers.
func leave(m *module.Module, from *unwind.State, mem *memory.Window) (caller Registers, ok bool) {
	s := scan{m: m, regs: from.Regs.AMD64, mem: mem, call: !from.Exact}
	s.goTo(s.regs.RIP)
	for range maxScan {
		switch s.instruction() {
		case refused:
			return caller, false
		case returns:
			return s.caller()
		}
	}
	return caller, false
}

func (s *scan) caller() (Registers, bool) {
	sp := s.regs.GPR[context.RSP] + uint64(s.at)
	ra, ok := s.mem.Word(sp)
	s.regs.RIP, s.regs.GPR[context.RSP] = ra, sp+8
	s.regs.Known &= nonvolatile
	return s.regs, ok && s.depth == 0 && s.at >= 0
}

func (s *scan) goTo(addr uint64) {
	s.addr, s.code, s.pos = addr, codeAt(s.m, addr, codeWindow), 0
}

// take returns the next n bytes, nil if there are not so many.
func (s *scan) take(n int) []byte {
	if n > len(s.code)-s.pos {
		return nil
	}
	b := s.code[s.pos : s.pos+n]
	s.pos += n
	return b
}

func (s *scan) byte() uint8 {
	if b := s.take(1); b != nil {
		return b[0]
	}
	s.pos = len(s.code) + 1 // every later take fails too
	s.code = nil
	return 0
}

// skip passes immediate bytes.
func (s *scan) skip(n int) outcome {
	if s.take(n) == nil {
		return refused
	}
	return goOn
}

// instruction decodes and runs one. After a call the code may be another
// function's, if the called one never returns: what looks like a function's
// beginning or padding is not trusted.
func (s *scan) instruction() outcome {
	call := s.call
	s.call = false
	rex, op := uint8(0), s.byte()
	s.short = false
	for op == 0x66 || op == 0xf2 || op == 0xf3 || op == 0x2e {
		s.short = s.short || op == 0x66
		op = s.byte()
	}
	if op&0xf0 == 0x40 {
		rex, op = op, s.byte()
	}
	if call && (op&0xf8 == 0x50 || op == 0x90 || op == 0x0f) {
		return refused
	}
	switch {
	case op&0xf8 == 0x50:
		return s.push(op&7 | rex&1<<3)
	case op&0xf8 == 0x58:
		return s.pop(op&7 | rex&1<<3)
	case op == 0xc3:
		return returns
	case op == 0xc9:
		return s.leaveFrame()
	case op == 0xe8:
		s.call = true
		return s.skip(4)
	case op == 0xeb, op == 0xe9:
		return s.jump(op)
	case op&0xf0 == 0x70:
		return s.skip(1)
	case op == 0x90:
		return goOn
	case op == 0x0f:
		return s.twoByte(rex)
	case op&0xf8 == 0xb8:
		return s.moveImmediate(op&7|rex&1<<3, rex)
	}
	return s.modRM(op, rex)
}

func (s *scan) push(reg uint8) outcome {
	if s.depth == len(s.pushed) || reg == context.RSP {
		return refused
	}
	s.pushed[s.depth] = pushed{reg, known(&s.regs, int(reg)), s.regs.GPR[reg]}
	s.depth++
	s.at -= 8
	return goOn
}

// pop takes a register from the stack: what the scan pushed last, or else from
// memory what the frame's earlier code pushed.
func (s *scan) pop(reg uint8) outcome {
	if reg == context.RSP {
		return refused
	}
	if s.at < 0 {
		if s.depth == 0 {
			return refused
		}
		s.depth--
		p := &s.pushed[s.depth]
		s.set(reg, p.value, p.known)
	} else {
		v, ok := s.mem.Word(s.regs.GPR[context.RSP] + uint64(s.at))
		s.set(reg, v, ok)
	}
	s.at += 8
	return goOn
}

func (s *scan) set(reg uint8, v uint64, ok bool) {
	s.regs.Known &^= 1 << reg
	if ok {
		s.regs.GPR[reg] = v
		s.regs.Known |= 1 << reg
	}
}

// leaveFrame is mov rsp, rbp; pop rbp.
func (s *scan) leaveFrame() outcome {
	fp, sp := s.regs.GPR[context.RBP], s.regs.GPR[context.RSP]
	if !known(&s.regs, context.RBP) || s.depth != 0 || fp < sp || fp-sp > 1<<20 {
		return refused
	}
	s.at = int64(fp - sp)
	return s.pop(context.RBP)
}

// jump follows a direct jump inside the module; a tail call is one too. What
// loops runs into maxScan.
func (s *scan) jump(op uint8) outcome {
	by := 0
	if op == 0xeb {
		by = int(int8(s.byte()))
	} else if b := s.take(4); b != nil {
		by = int(int32(binary.LittleEndian.Uint32(b)))
	} else {
		return refused
	}
	if s.code == nil {
		return refused
	}
	s.goTo(s.addr + uint64(s.pos+by))
	return boolOutcome(s.code != nil)
}

// moveImmediate is mov r, imm.
func (s *scan) moveImmediate(reg, rex uint8) outcome {
	if nonvolatile>>reg&1 != 0 || s.short {
		return refused
	}
	if rex&8 != 0 {
		return s.skip(8)
	}
	return s.skip(4)
}

// twoByte decodes 0F xx: endbr64 and long nops, conditional jumps, movzx.
func (s *scan) twoByte(rex uint8) outcome {
	switch op := s.byte(); {
	case op == 0x1e, op == 0x1f:
		_, _, ok := s.operand(rex)
		return boolOutcome(ok)
	case op&0xf0 == 0x80:
		return s.skip(4)
	case op == 0xb6, op == 0xb7:
		reg, _, ok := s.operand(rex)
		return boolOutcome(ok && nonvolatile>>reg&1 == 0)
	}
	return refused
}

func boolOutcome(ok bool) outcome {
	if ok {
		return goOn
	}
	return refused
}

// operand decodes ModRM, SIB and displacement: the register operand, and the
// register the other operand is, or 0xff if it is memory.
func (s *scan) operand(rex uint8) (reg, rm uint8, ok bool) {
	m := s.byte()
	reg, rm = m>>3&7|rex&4<<1, m&7
	mod := m >> 6
	if mod == 3 {
		return reg, rm | rex&1<<3, s.code != nil
	}
	n := [3]int{0, 1, 4}[mod]
	base := rm
	if rm == 4 {
		base = s.byte() & 7
	}
	if mod == 0 && base == 5 {
		n = 4 // RIP+disp32, or SIB without base
	}
	return reg, 0xff, s.code != nil && s.take(n) != nil
}

// modRM decodes the one-byte operations with a ModRM operand.
func (s *scan) modRM(op, rex uint8) outcome {
	start := s.pos
	reg, rm, ok := s.operand(rex)
	if !ok {
		return refused
	}
	switch op {
	case 0x84, 0x85, 0x38, 0x39, 0x3a, 0x3b: // test, cmp
		return goOn
	case 0x8b, 0x8d, 0x03, 0x2b, 0x33: // mov, lea, add, sub, xor to reg
		return boolOutcome(nonvolatile>>reg&1 == 0)
	case 0x89, 0x88, 0x01, 0x29, 0x31: // mov, add, sub, xor to r/m
		return s.store(op, reg, rm)
	case 0x80, 0x83, 0x81, 0xc0, 0xc1, 0xc6, 0xc7, 0xd1:
		return s.immediate(op, reg&7, rm)
	case 0xff:
		return s.group5(reg&7, s.code[start:s.pos])
	}
	return refused
}

// store: memory may be written (start-up code writes its flags, not its
// frame), volatile registers too, and RBP only as mov rbp, rsp.
func (s *scan) store(op, reg, rm uint8) outcome {
	if op == 0x89 && reg == context.RSP && rm == context.RBP {
		s.regs.GPR[context.RBP] = s.regs.GPR[context.RSP] + uint64(s.at)
		s.regs.Known |= 1 << context.RBP
		return goOn
	}
	return boolOutcome(rm == 0xff || nonvolatile>>rm&1 == 0)
}

// immediate decodes group 1, shifts and mov with an immediate.
func (s *scan) immediate(op, ext, rm uint8) outcome {
	n := 1
	switch op {
	case 0x81, 0xc7:
		n = 4
	case 0xd1:
		n = 0
	}
	b := s.take(n)
	if b == nil || n == 4 && s.short {
		return refused
	}
	if rm == context.RSP && (op == 0x83 || op == 0x81) {
		return s.adjust(ext, b)
	}
	compare := ext == 7 && op <= 0x83
	return boolOutcome(compare || rm == 0xff || nonvolatile>>rm&1 == 0)
}

// adjust is add rsp, imm (ext 0) or sub rsp, imm (ext 5).
func (s *scan) adjust(ext uint8, b []byte) outcome {
	by := int64(int8(b[0]))
	if len(b) == 4 {
		by = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	if s.depth != 0 || by < 0 {
		return refused
	}
	switch ext {
	case 0:
		s.at += by
	case 5:
		s.at -= by
	default:
		return refused
	}
	return goOn
}

// group5: an indirect call goes on behind it, an indirect jump leaves the
// function as a return does.
func (s *scan) group5(ext uint8, operand []byte) outcome {
	switch ext {
	case 2:
		s.call = true
		return goOn
	case 4:
		return returns
	}
	return refused
}

package arm64

import (
	"slices"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// A scan executes code forward from a frame's instruction to the return that ends its function, tracking SP
// and the callee-saved registers. Linkage table entries and start-up code (_init, call_weak_fn) have no
// unwind data and are simple enough for it. Any instruction outside the small set below ends the scan without
// a result.
//
// SP must be the same on all paths to a return, or the function could not return. So conditional branches may
// be treated as not taken.
type scan struct {
	m      *module.Module
	pc     uint64
	regs   Registers
	mem    *memory.Window
	stores [16]stored // written by the scan itself: not in memory
	n      int
	call   bool // the last instruction was a call, which might not return
	jumps  bool // a jump through any register leaves the function
}

type stored struct {
	addr, value uint64
	known       bool
}

const maxScan = 64 // instructions

// scanned is the effect of one instruction on the scan.
type scanned uint8

const (
	refused scanned = iota
	goOn
	returns
)

// leave runs the scan and returns the caller's registers. jumps means assembly code, in which a jump through
// a register is a tail call.
func leave(m *module.Module, from *unwind.State, mem *memory.Window, jumps bool) (caller Registers, ok bool) {
	s := scan{m: m, pc: from.Regs.ARM64.PC, regs: from.Regs.ARM64, mem: mem, call: !from.Exact, jumps: jumps}
	if !from.Exact {
		s.forget(regLR)
	}
	for range maxScan {
		w, _ := codeWord(m, s.pc, nil) // 0 if there is no code: refused
		s.pc += 4
		switch s.instruction(w) {
		case refused:
			return caller, false
		case returns:
			return s.caller(&from.Regs.ARM64)
		}
	}
	return caller, false
}

func (s *scan) caller(from *Registers) (Registers, bool) {
	ok := known(&s.regs, regLR) && s.regs.Sp >= from.Sp
	s.regs.PC = stripPAC(s.regs.X[regLR])
	s.regs.Known &= nonvolatile
	return s.regs, ok
}

func (s *scan) forget(reg uint32) { s.regs.Known &^= 1 << reg }

// instruction executes one instruction. After a call the code may belong to another function, if the called
// one never returns: code that looks like a function's start, or padding, is refused.
func (s *scan) instruction(w uint32) scanned {
	call := s.call
	s.call = false
	hint := w&0xfffff01f == insNop
	if call && (hint && w != 0xd50323bf && w != 0xd50323ff || w&0xffc003e0 == 0xa98003e0 ||
		w&0xff8003ff == 0xd10003ff) {
		return refused // a hint but autiasp/autibsp, stp [sp, #-n]!, sub sp
	}
	switch {
	case hint:
		return goOn
	case w&0xfffffc1f == 0xd65f0000: // ret
		if w>>5&31 == regLR {
			return returns
		}
		return refused
	case w == 0xd65f0bff || w == 0xd65f0fff: // retaa, retab
		return returns
	case w == insBRX17, s.jumps && w&0xfffffc1f == 0xd61f0000: // br
		return returns // a linkage table's jump to its function, or a tail call
	case nearcall.IsARM64(w):
		if outlined(s.m, s.pc-4, w) {
			return refused
		}
		s.call = true
		s.regs.Known &= nonvolatile &^ (1 << regLR)
		return goOn
	case w>>26 == 5: // b
		s.pc += uint64(int64(int32(w<<6)>>6)*4) - 4
		return goOn
	case w>>24 == 0x54, w>>25&0x3f == 0x1a, w>>25&0x3f == 0x1b: // b.cond, cbz, cbnz, tbz, tbnz
		return goOn
	}
	return s.data(w)
}

// outlined reports whether an instruction calls code that a compiler has moved out of several callers: it
// changes registers that functions preserve, and returns (clang at -Oz).
func outlined(m *module.Module, pc uint64, w uint32) bool {
	var e emulator
	for reg := range uint64(regSP) {
		e.regs[reg] = value64{reg, entryValue}
	}
	prev := e.regs
	return e.through(m, pc, w) && !slices.Equal(e.regs[firstX:regFP], prev[firstX:regFP])
}

// data executes an instruction that is not a branch.
func (s *scan) data(w uint32) scanned {
	switch w >> 25 & 15 {
	case 8, 9: // immediate
		if w&0x7f800000 == 0x11000000 || w&0x7f800000 == 0x51000000 {
			return s.addImmediate(w)
		}
		return s.writes(w & 31)
	case 5, 13: // register
		if w&0x3f200000 == 0x0b200000 && w&31 == regSP {
			return refused // add and sub of an extended register: 31 is SP
		}
		if w&31 == 31 {
			return goOn // the zero register
		}
		return s.writes(w & 31)
	case 4, 6, 12, 14:
		return s.loadStore(w)
	}
	return refused
}

// writes permits a result in a volatile register, which becomes unknown.
func (s *scan) writes(reg uint32) scanned {
	if reg >= 18 {
		return refused
	}
	s.forget(reg)
	return goOn
}

// addImmediate executes add and sub with an immediate.
func (s *scan) addImmediate(w uint32) scanned {
	rd, rn, n := w&31, w>>5&31, uint64(w>>10&0xfff)
	if rd < 18 {
		return s.writes(rd)
	}
	from, ok := base(&s.regs, uint8(rn))
	if !ok || w>>31 == 0 || rd != regSP && rd != regFP || rn != regSP && rn != regFP {
		return refused
	}
	if w>>22&1 != 0 {
		n <<= 12
	}
	if w>>30&1 != 0 {
		n = -n
	}
	if rd == regSP {
		s.regs.Sp = from + n
	} else {
		s.regs.X[regFP] = from + n
	}
	return goOn
}

// loadStore executes loads and stores of x registers at SP and x29. It permits others only if they change
// nothing relevant.
func (s *scan) loadStore(w uint32) scanned {
	rn, load := w>>5&31, w>>22&1 != 0
	onStack := rn == regSP || rn == regFP
	switch {
	case w&0xfe000000 == 0xa8000000 && onStack:
		off := uint64(int64(int32(w<<10)>>25) * 8)
		return s.transfer(w&31, w>>10&31, rn, off, w>>23&3, load)
	case w&0xff800000 == 0xf9000000 && onStack:
		return s.transfer(w&31, noReg, rn, uint64(w>>10&0xfff)*8, 2, load)
	case w&0xffa00000 == 0xf8000000 && onStack:
		mode := [4]uint32{2, 1, 0, 3}[w>>10&3]
		return s.transfer(w&31, noReg, rn, uint64(int64(int32(w<<11)>>23)), mode, load)
	case w>>26&1 != 0 && rn == regSP:
		return s.vectors(w, load)
	case w&0x3b000000 == 0x39000000 && w>>26&1 == 0 && !onStack: // unsigned offset
		if w>>22&3 == 0 {
			return goOn
		}
		return s.writes(w & 31)
	}
	return refused
}

// vectors permits, at SP, stores of pairs of vector registers, and loads of those that functions need not
// preserve.
func (s *scan) vectors(w uint32, load bool) scanned {
	const preserved = 8 // v8 to v15, whose lower halves are preserved
	switch {
	case w&0x3e000000 != 0x2c000000 || w>>30 == 3: // not a pair
		if w&0x3f400000 != 0x3d400000 || w&31>>3 == preserved>>3 { // ldr, unsigned offset
			return refused
		}
		return goOn
	case load && (w&31>>3 == preserved>>3 || w>>10&31>>3 == preserved>>3):
		return refused
	case w>>23&1 != 0: // it moves SP
		s.regs.Sp += uint64(int64(int32(w<<10)>>25) * (4 << (w >> 30)))
	}
	return goOn
}

const noReg = 32

// transfer executes a load or store of one or two x registers. mode: 1 post-indexed, 2 offset, 3 pre-indexed.
func (s *scan) transfer(r1, r2, rn uint32, off uint64, mode uint32, load bool) scanned {
	at, ok := base(&s.regs, uint8(rn))
	if !ok || mode == 0 || mode != 2 && rn != regSP {
		return refused
	}
	if mode != 1 {
		at += off
	}
	for i, r := range [2]uint32{r1, r2} {
		if r == noReg {
			continue
		}
		if load {
			s.load(r, at+8*uint64(i))
		} else if !s.store(r, at+8*uint64(i)) {
			return refused
		}
	}
	if mode != 2 {
		s.regs.Sp += off
	}
	return goOn
}

func (s *scan) store(reg uint32, addr uint64) bool {
	if s.n == len(s.stores) {
		return false
	}
	st := stored{addr: addr, known: true}
	if reg < regSP {
		st.value, st.known = s.regs.X[reg], known(&s.regs, int(reg))
	}
	s.stores[s.n] = st
	s.n++
	return true
}

func (s *scan) load(reg uint32, addr uint64) {
	if reg >= regSP {
		return
	}
	st := stored{addr: addr}
	st.value, st.known = s.mem.Word(addr)
	for i := s.n - 1; i >= 0; i-- {
		if s.stores[i].addr == addr {
			st = s.stores[i]
			break
		}
	}
	s.regs.X[reg] = st.value
	s.forget(reg)
	if st.known {
		s.regs.Known |= 1 << reg
	}
}

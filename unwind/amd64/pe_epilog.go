package amd64

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Epilogs of x64 PE functions. Information of version 1 does not list them: they are recognized by their
// instructions, which Microsoft's "x64 exception handling" prescribes. Version 2 lists them.

const maxPops = 64 // real epilogs have at most 16

// MaxEpilog is how many bytes of code callers pass to ReadEpilog.
const MaxEpilog = 8 + 2*maxPops + 3 + 8

// Epilog is the decoded rest of an epilog. It may set RSP first, then pops registers, and ends in a return or
// a jump.
type Epilog struct {
	Moves  bool   // RSP is set to Base + Disp first
	Base   uint8  // a register
	Disp   uint64 // bytes
	pops   []byte // instructions that pop registers
	popped bool   // the return address has been popped into Base
	Jumps  bool   // it ends in a jump, whose target must be outside the function
	Target uint64 // of the jump, as a distance from the first byte of the code
}

// ReadEpilog decodes the rest of an epilog of version 1: an adjustment of the stack pointer, pops,
// instructions that zero registers, and an end. Only RSP and the frame register (0 = none) may be the base of
// the adjustment. ok is false if code does not begin with that. A direct jump ends an epilog only if it
// leaves the function, which the caller must check. ReadEpilog allocates nothing.
func ReadEpilog(code []byte, frameReg uint8) (e Epilog, ok bool) {
	ok = e.read(code, frameReg)
	return e, ok
}

// read is ReadEpilog into e.
func (e *Epilog) read(code []byte, frameReg uint8) bool {
	n, base, disp := stackAdjust(code, frameReg)
	e.Moves, e.Base, e.Disp = n != 0, base, disp
	begin, last := n, n
	for range maxPops {
		k, _ := x86.Pop(code[n:])
		if k == 0 {
			break
		}
		last, n = n, n+k
	}
	if k, _ := x86.PopReturn(code[last:]); k != 0 { // the last pop is of the return address
		n = last
	}
	e.pops = code[begin:n]
	return e.end(code[n:], uint64(n))
}

// inEpilog reads code, the bytes from pc on, as the rest of an epilog of fn.
func (s *peStep) inEpilog(fn peamd64.RuntimeFunction, info *peamd64.Info, code []byte, e *Epilog) bool {
	if e.read(code, info.FrameReg) {
		return !e.Jumps || s.jumpsOut(fn, info, s.pc+uint32(e.Target))
	}
	if len(code) == 0 || code[0] != 0x0f && code[0] != 0xff && code[0] != 0x41 {
		return false
	}
	for _, into := range [...]uint32{1, 2, 1 + x86.Fence, 2 + x86.Fence} {
		if n, reg := x86.PopReturn(s.table.Tail(s.pc-into, 8)); n != 0 && into%x86.Fence == uint32(n) {
			*e = Epilog{Base: reg, popped: true}
			return true
		}
	}
	return false
}

// stackAdjust decodes add rsp, imm or lea rsp, [base+disp] and returns its length, 0 for other code. The new
// stack pointer is reg + disp. The base is the declared frame register, or RSP in gcc's return thunks.
func stackAdjust(code []byte, frameReg uint8) (n int, reg uint8, disp uint64) {
	switch {
	case len(code) < 4 || code[0]&0xfe != 0x48:
		return 0, 0, 0
	case string(code[:3]) == "\x48\x83\xc4": // most
		return 4, context.RSP, uint64(int8(code[3]))
	case code[1] != 0x81 && code[1] != 0x83 && code[1] != 0x8d:
		return 0, 0, 0
	}
	in := x86.Decode(code)
	switch {
	case in.Op&^2 == 0x81 && !in.Memory && in.Reg == 0 && in.RM == context.RSP:
		return int(in.Size), context.RSP, uint64(in.Imm)
	case in.Op == 0x8d && in.Reg == context.RSP && in.Index == x86.NoReg &&
		(in.Base == context.RSP || frameReg != 0 && in.Base == frameReg):
		return int(in.Size), in.Base, uint64(in.Disp)
	}
	return 0, 0, 0
}

func signed32(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

// end reports whether code is the end of an epilog: a return, or a jump, whose target it stores if the jump
// is direct. Instructions that zero registers may come before it. A return may be a thunk of gcc's. at is the
// offset of code from the epilog's first decoded byte.
func (e *Epilog) end(code []byte, at uint64) bool {
	for n := 1; n != 0 && len(code) > 0; at += uint64(n) {
		if code[0] == 0xc3 {
			return true
		}
		n = x86.Zeroes(code)
		code = code[n:]
	}
	if !mayEnd(code) {
		return false
	}
	if to, ok := x86.DirectJump(code); ok {
		e.Jumps, e.Target = true, at+to
		return true
	}
	in := x86.Decode(code)
	if in.Table != 0 || in.VEX {
		return false
	}
	bare := code[0] == in.Op || len(code) > 1 && code[0] == 0xf2 && code[1] == in.Op // f2: bnd
	switch {
	case bare && (in.Op == 0xeb || in.Op == 0xe9):
		e.Jumps, e.Target = true, at+uint64(in.Size)+uint64(in.Disp)
		return true
	case bare && in.Op == 0xe8:
		return in.Disp == 7 && bytes.HasPrefix(code[in.Size:], x86.ReturnThunk)
	case in.Op == 0xff && in.Reg&7 == 4: // a switch has neither
		return in.PCRel || in.REX&8 != 0
	}
	last, _ := x86.PopReturn(code)
	return in.Op == 0xc3 && (bare || len(code) > 1 && code[0] == 0xf3 && code[1] == 0xc3) || last != 0 ||
		len(code) > 2 && code[0] == 0xc2
}

// mayEnd is a cheap first test for end: it rules out the bytes with which most other instructions begin.
func mayEnd(code []byte) bool {
	switch {
	case len(code) == 0 || code[0] < 0x26 || code[0] >= 0x68 && code[0] < 0xc2:
		return false
	case code[0]&0xf0 == 0x40: // REX before a jump or a pop
		return len(code) > 1 && (code[1] == 0xff || code[1]&0xf8 == 0x58)
	}
	return true
}

// jumpsOut reports whether a jump to target leaves the function. It does if target is the first byte of a
// function, this one included, or has no entry. A jump into the middle of another function does not: gcc
// writes it from the cold part of a function, whose entry is not chained, into the other part.
func (s *peStep) jumpsOut(fn peamd64.RuntimeFunction, info *peamd64.Info, target uint32) bool {
	if fn.Contains(target) {
		return target == fn.Begin && !info.Chained()
	}
	other, why := s.table.Find(target)
	if why != peamd64.OK {
		return true
	}
	theirs, why := s.table.Primary(other)
	return why != peamd64.OK || target == theirs.Begin
}

// runEpilog executes the rest of an epilog. It treats ret imm16 as ret: the bytes above the return address
// belong to the caller.
func (s *peStep) runEpilog(e *Epilog) unwind.Stop {
	switch {
	case (e.popped || e.Moves) && !s.need(e.Base):
		return unwind.Unreadable
	case e.popped:
		s.regs.RIP = s.regs.GPR[e.Base]
		s.keep()
		return unwind.StopNone
	case e.Moves:
		s.regs.GPR[context.RSP] = s.regs.GPR[e.Base] + e.Disp
	}
	for pops := e.pops; len(pops) != 0; {
		n, reg := x86.Pop(pops)
		if stop := s.pop(reg); stop != unwind.StopNone {
			return stop
		}
		pops = pops[n:]
	}
	return s.ret()
}

// epilog2 looks up pc in the epilogs that version 2 lists, and returns how many bytes of one have run.
func epilog2(fn peamd64.RuntimeFunction, info *peamd64.Info, pc uint32) (into uint32, ok bool) {
	list, _ := info.Epilogs()
	if len(list) == 0 {
		return 0, false
	}
	size := uint32(list[0])
	if list[1]&0x10 != 0 && pc-(fn.End-size) < size {
		return pc - (fn.End - size), true
	}
	for list = list[2:]; len(list) > 0; list = list[2:] {
		c, _ := info.Code(list)
		if c.Operand == 0 { // pads the list to an even number
			break
		}
		if begin := fn.End - c.Operand; pc-begin < size {
			return pc - begin, true
		}
	}
	return 0, false
}

// undoEpilog undoes the pushes that the executed bytes of an epilog have not undone yet. It pops in the order
// of the codes: one byte per register, two for R8-R15, and one for flags (pushfq, removed by a pop). The
// codes may be a parent's. It refuses other operations, whose bytes in an epilog are not known.
func (s *peStep) undoEpilog(info peamd64.Info, into uint32) unwind.Stop {
	codes, stop := s.pushes(&info)
	if stop != unwind.StopNone {
		return stop
	}
	done := uint32(0)
	for len(codes) >= 2 && codes[1]&15 == byte(peamd64.UWOP_PUSH_NONVOL) {
		reg := codes[1] >> 4
		if done >= into {
			if stop := s.pop(reg); stop != unwind.StopNone {
				return stop
			}
		}
		done += 1 + uint32(reg>>3)
		codes = codes[2:]
	}
	if len(codes) >= 2 && codes[1] == byte(peamd64.UWOP_ALLOC_SMALL) { // of 8 bytes
		if done >= into {
			s.regs.GPR[context.RSP] += 8
		}
		codes = codes[2:]
	}
	machine := len(codes) >= 2 && codes[1]&^0x10 == byte(peamd64.UWOP_PUSH_MACHFRAME)
	if machine {
		codes = codes[2:]
	}
	_, why := info.Code(codes)
	switch {
	case len(codes) > 0:
		return s.refuse(cmp.Or(why, peamd64.EpilogCodes))
	case machine:
		stop := s.machineFrame(0) // iretq takes no error code
		s.keep()
		return stop
	}
	return s.ret()
}

// pushes returns the codes from the first push on, none if there is no push. They are info's or a parent's;
// info is then that parent's.
func (s *peStep) pushes(info *peamd64.Info) ([]byte, unwind.Stop) {
	for range maxChain + 1 {
		_, codes := info.Epilogs()
		for len(codes) > 0 {
			c, why := info.Code(codes)
			if why != peamd64.OK {
				return nil, s.refuse(why)
			}
			if c.Op == peamd64.UWOP_PUSH_NONVOL || c.Op == peamd64.UWOP_PUSH_MACHFRAME {
				return codes, unwind.StopNone
			}
			codes = codes[c.Size():]
		}
		if !info.Chained() {
			return nil, unwind.StopNone
		}
		if _, stop := s.parent(info); stop != unwind.StopNone {
			return nil, stop
		}
	}
	return nil, s.refuse(peamd64.ChainDepth)
}

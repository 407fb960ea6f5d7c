package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// windowsKept are the registers that a Windows x64 function preserves: those in nonvolatile, RSI, RDI, and
// XMM6-XMM15.
const windowsKept = nonvolatile | 1<<context.RSI | 1<<context.RDI | 0x3ff<<16

// PEPart is the part of a function in which a PE step found the frame.
type PEPart uint8

const (
	PECode   PEPart = iota // prolog or body: unwind codes were applied
	PEEpilog               // the rest of an epilog was run
	PELeaf                 // no entry covers the address
)

// PEResult is the result of a PE step in addition to the caller's registers.
type PEResult struct {
	Part    PEPart
	Machine bool           // the caller was interrupted: its RIP is exact
	Frame   uint64         // EstablisherFrame
	Handler uint32         // RVA of the exception handler in charge, 0 = none
	Reason  peamd64.Reason // why unwind data was refused, or NoEntry
	At      uint32         // RVA of the UNWIND_INFO that was refused
}

// StepPE replaces regs by the caller's, as Windows' RtlVirtualUnwind does. at is the RVA in t of the frame's
// instruction or return address. If stop is not StopNone, regs are undefined: step a copy. StepPE checks
// neither progress nor bounds, and allocates nothing.
//
// A nonvolatile register whose saved value cannot be read becomes unknown; volatile ones always do.
func StepPE(t *peamd64.Table, at unwind.Address, regs *Registers,
	mem *memory.Window) (res PEResult, stop unwind.Stop) {
	s := peStep{table: t, pc: uint32(at.IP), regs: regs, mem: mem}
	stop = s.run(at)
	return s.res, stop
}

// StepFunction is StepPE for a frame with a known function: fn, which needs no entry in t. inside means that
// pc may be in one of its epilogs.
func StepFunction(t *peamd64.Table, fn peamd64.RuntimeFunction, pc uint32, inside bool, regs *Registers,
	mem *memory.Window) (res PEResult, stop unwind.Stop) {
	s := peStep{table: t, pc: pc, regs: regs, mem: mem}
	stop = s.leave(fn, inside)
	return s.res, stop
}

// Preserved returns the registers that a function preserves, as bits of Known: by the System V convention, or
// by Windows'.
func Preserved(unix bool) uint32 {
	if unix {
		return nonvolatile
	}
	return windowsKept
}

// peStep is one step in progress.
type peStep struct {
	table *peamd64.Table
	pc    uint32
	regs  *Registers
	mem   *memory.Window
	res   PEResult

	pushed   uint64 // see setsFrame
	symbolic bool   // no memory is read: see pe_rule.go
	deep     bool   // symbolic: an address was itself read from the stack
	needs    uint32 // the registers that the step requires to be known, as bits of Known
}

// run makes the step from at, which equals pc.
func (s *peStep) run(at unwind.Address) unwind.Stop {
	entry, ok := s.table.Lookup(uint32(at.Lookup()))
	if !ok {
		s.res.Part, s.res.Reason, s.res.Frame = PELeaf, peamd64.NoEntry, s.regs.GPR[context.RSP]
		return s.ret()
	}
	return s.covered(entry, at.Exact)
}

// covered makes the step from code with an entry. exact means that a thread was interrupted at pc. A return
// address is never in an epilog: code after a call that looks like one follows a call that does not return.
func (s *peStep) covered(entry peamd64.RuntimeFunction, exact bool) unwind.Stop {
	fn, why := s.table.Resolve(entry)
	if why != peamd64.OK {
		s.res.At = entry.Unwind
		return s.refuse(why)
	}
	return s.leave(fn, exact)
}

// word reads a word of the stack; symbolically it returns the word's address with a mark. A mark on the
// address itself means that the address was read from the stack, which a rule with one base register cannot
// express.
func (s *peStep) word(at uint64) (uint64, bool) {
	if !s.symbolic {
		return s.mem.Word(at)
	}
	s.deep = s.deep || at&isLoaded != 0
	return at | isLoaded, true
}

// need reports whether a register the step depends on is known.
func (s *peStep) need(reg uint8) bool {
	s.needs |= 1 << reg
	return known(s.regs, int(reg))
}

func (s *peStep) refuse(why peamd64.Reason) unwind.Stop {
	s.res.Reason = why
	if why.Unsupported() {
		return unwind.Unsupported
	}
	return unwind.BadInfo
}

// leave leaves the function fn from pc; inside means that pc may be in one of its epilogs.
func (s *peStep) leave(fn peamd64.RuntimeFunction, inside bool) unwind.Stop {
	var info peamd64.Info
	if stop := s.info(fn, &info); stop != unwind.StopNone {
		return stop
	}
	// EstablisherFrame is needed in an epilog too: handlers are called with it.
	base, why := s.frame(&info, s.pc-fn.Begin)
	if why != peamd64.OK {
		return s.refuse(why)
	}
	if inside {
		// Version 1 does not list epilogs: they are recognized by their instructions, which the calling
		// convention restricts for this purpose. Version 2 lists them.
		if info.Version == 1 {
			var e Epilog
			code := s.table.Tail(s.pc, MaxEpilog)
			if s.inEpilog(fn, &info, code, &e) {
				s.res.Part = PEEpilog
				return s.runEpilog(&e)
			}
			if base == context.RSP && s.pushedNumber(fn, code) {
				s.regs.GPR[context.RSP] += 8
				s.res.Frame += 8
			}
		} else if into, ok := epilog2(fn, &info, s.pc); ok {
			s.res.Part = PEEpilog
			return s.undoEpilog(info, into)
		}
	}
	// An epilog uses RSP only; the body needs the frame register, which may be unknown in this frame.
	if base != context.RSP && !s.need(base) {
		return unwind.Unreadable
	}
	// gcc sets the frame register before it pushes others if a function asks for its frame's address. The
	// body may then have moved RSP away from what was pushed.
	if s.pushed != 0 {
		s.regs.GPR[context.RSP] = s.res.Frame - s.pushed
	}
	return s.undoProlog(fn, &info)
}

// pushedNumber reports whether a number that gcc pushes for a moment is on top of the stack. code is the code
// from pc on. No rule can express this, since it depends on the word.
func (s *peStep) pushedNumber(fn peamd64.RuntimeFunction, code []byte) bool {
	begin := max(fn.Begin, s.pc-min(s.pc, maxPushed))
	number, ok := pushedNumber(s.table.Tail(begin, int(s.pc-begin)), code[:min(len(code), maxPushed)])
	if s.deep = s.deep || ok && s.symbolic; !ok {
		return false
	}
	v, there := s.word(s.regs.GPR[context.RSP])
	return there && v == number
}

// frame sets EstablisherFrame, the base of saves, and returns the register that it comes from. In an epilog,
// that register need not be known. The frame register is valid once the prolog has set it. That is at or
// after the code that sets it, and after the prolog. A part of a function that is chained to the part with
// the prolog runs with a complete frame, so the frame register is valid in all of it.
func (s *peStep) frame(info *peamd64.Info, into uint32) (base uint8, why peamd64.Reason) {
	s.res.Frame = s.regs.GPR[context.RSP]
	if info.FrameReg == 0 {
		return context.RSP, peamd64.OK
	}
	at, distance, pushed, why := setsFrame(info, into)
	if why != peamd64.OK || !info.Chained() && into < uint32(info.Prolog) && into < at {
		return context.RSP, why
	}
	s.res.Frame = s.regs.GPR[info.FrameReg] - uint64(distance)
	s.pushed = pushed
	return info.FrameReg, peamd64.OK
}

// setsFrame returns the offset in the prolog after which the frame register is set, and its distance above
// the frame's base. Without such a code the offset is one that no prolog reaches. pushed is how many bytes
// the prolog has pushed and allocated after that and before into.
func setsFrame(info *peamd64.Info, into uint32) (at, distance uint32, pushed uint64, why peamd64.Reason) {
	_, codes := info.Epilogs()
	for len(codes) > 0 {
		c, why := info.Code(codes)
		at, ran := uint32(c.Offset), into >= uint32(c.Offset)
		switch {
		case why != peamd64.OK:
			return 0, 0, 0, why
		case c.Op == peamd64.UWOP_SET_FPREG || c.Op == peamd64.UWOP_SET_FPREG_LARGE:
			return at, c.Operand, pushed, peamd64.OK
		case ran:
			pushed += c.StackDecrease()
		}
		codes = codes[c.Size():]
	}
	return 256, uint32(info.FrameOffset), 0, peamd64.OK // a prolog has at most 255 bytes
}

// maxChain is how many parents are followed, the limit of Windows.
const maxChain = 32

// undoProlog undoes the executed part of the prolog, and of every parent's.
func (s *peStep) undoProlog(fn peamd64.RuntimeFunction, info *peamd64.Info) unwind.Stop {
	for link := 0; ; link++ {
		if stop := s.undo(info, s.pc-fn.Begin); stop != unwind.StopNone {
			return stop
		}
		if !info.Chained() {
			break
		}
		// The parent's codes are undone with the same pc: it is outside the parent, so the difference is past
		// the parent's prolog, which has run.
		if link == maxChain {
			return s.refuse(peamd64.ChainDepth)
		}
		var stop unwind.Stop
		if fn, stop = s.parent(info); stop != unwind.StopNone {
			return stop
		}
	}
	if s.pc-fn.Begin >= uint32(info.Prolog) { // a handler is not in charge of the prolog
		s.res.Handler = info.Handler
	}
	if s.res.Machine { // RIP was read from it: this function has no caller
		s.keep()
		return unwind.StopNone
	}
	return s.ret()
}

// info decodes a function's UNWIND_INFO.
func (s *peStep) info(fn peamd64.RuntimeFunction, info *peamd64.Info) unwind.Stop {
	s.res.At = fn.Unwind
	if fault := s.table.ReadInfo(fn.Unwind, info); !fault.OK() {
		return s.refuse(fault.Reason)
	}
	return unwind.StopNone
}

// parent replaces info by that of its parent.
func (s *peStep) parent(info *peamd64.Info) (fn peamd64.RuntimeFunction, stop unwind.Stop) {
	fn, why := s.table.Resolve(info.Parent)
	if why != peamd64.OK {
		return fn, s.refuse(why)
	}
	return fn, s.info(fn, info)
}

// undo applies the codes of one UNWIND_INFO whose instructions precede the instruction at offset into. A
// difference that wraps counts as past the prolog. Pushes, two thirds of all codes, are undone without
// decoding, which halves the time of a step.
func (s *peStep) undo(info *peamd64.Info, into uint32) unwind.Stop {
	_, codes := info.Epilogs()
	for len(codes) > 0 {
		if len(codes) >= 2 && codes[1]&15 == byte(peamd64.UWOP_PUSH_NONVOL) {
			if into >= uint32(codes[0]) {
				if stop := s.pop(codes[1] >> 4); stop != unwind.StopNone {
					return stop
				}
			}
			codes = codes[2:]
			continue
		}
		c, why := info.Code(codes)
		if why != peamd64.OK {
			return s.refuse(why)
		}
		if into >= uint32(c.Offset) {
			if stop := s.apply(info, &c); stop != unwind.StopNone {
				return stop
			}
		}
		codes = codes[c.Size():]
	}
	return unwind.StopNone
}

// apply undoes one code other than a push.
func (s *peStep) apply(info *peamd64.Info, c *peamd64.Code) unwind.Stop {
	rsp := &s.regs.GPR[context.RSP]
	switch c.Op {
	case peamd64.UWOP_ALLOC_SMALL, peamd64.UWOP_ALLOC_LARGE:
		*rsp += uint64(c.Operand)
	case peamd64.UWOP_SET_FPREG, peamd64.UWOP_SET_FPREG_LARGE:
		if !s.need(info.FrameReg) {
			return unwind.Unreadable
		}
		*rsp = s.regs.GPR[info.FrameReg] - uint64(c.Operand) // this undoes all later allocations, too
	case peamd64.UWOP_SAVE_NONVOL, peamd64.UWOP_SAVE_NONVOL_FAR:
		return s.load(c.Info, s.res.Frame+uint64(c.Operand))
	case peamd64.UWOP_SAVE_XMM128, peamd64.UWOP_SAVE_XMM128_FAR:
		s.loadXMM(c.Info, s.res.Frame+uint64(c.Operand))
	case peamd64.UWOP_PUSH_MACHFRAME:
		return s.machineFrame(8 * uint64(c.Info))
	default:
		return s.refuse(peamd64.BadOpcode) // EPILOG after other codes
	}
	return unwind.StopNone
}

// load restores a general register. If the stack pointer cannot be read, the walk ends; any other register
// becomes unknown.
func (s *peStep) load(reg uint8, at uint64) unwind.Stop {
	v, ok := s.word(at)
	switch {
	case ok:
		// A rule cannot express a word that must be readable although a later stack pointer makes it
		// irrelevant.
		s.deep = s.deep || s.symbolic && reg == context.RSP
		s.regs.GPR[reg] = v
		s.regs.Known |= 1 << reg
	case reg == context.RSP:
		return unwind.Unreadable
	default:
		s.regs.Known &^= 1 << reg
	}
	return unwind.StopNone
}

// pop restores a general register from the top of the stack.
func (s *peStep) pop(reg uint8) unwind.Stop {
	at := s.regs.GPR[context.RSP]
	s.regs.GPR[context.RSP] = at + 8
	return s.load(reg, at)
}

// loadXMM restores one of XMM6-XMM15; the others are volatile. An unreadable one becomes unknown and does not
// end the walk, because no frame is found by it.
func (s *peStep) loadXMM(reg uint8, at uint64) {
	if reg < 6 {
		return
	}
	lo, ok := s.word(at)
	hi, ok2 := s.word(at + 8)
	bit := uint32(1) << (16 + reg - 6)
	if !ok || !ok2 {
		s.regs.Known &^= bit
		return
	}
	s.regs.XMM[reg-6] = context.XMM{lo, hi}
	s.regs.Known |= bit
}

// machineFrame reads RIP and RSP from the words that the processor pushed (Intel SDM volume 3A, section
// 6.14.2: RIP, CS, RFLAGS, RSP, SS); skip is the size of the error code.
func (s *peStep) machineFrame(skip uint64) unwind.Stop {
	at := s.regs.GPR[context.RSP] + skip
	rip, ok := s.word(at)
	rsp, ok2 := s.word(at + 24)
	if !ok || !ok2 {
		return unwind.Unreadable
	}
	s.regs.RIP, s.regs.GPR[context.RSP] = rip, rsp
	s.res.Machine = true
	return unwind.StopNone
}

// ret returns to the caller.
func (s *peStep) ret() unwind.Stop {
	rsp := &s.regs.GPR[context.RSP]
	ra, ok := s.word(*rsp)
	if !ok {
		return unwind.Unreadable
	}
	s.regs.RIP = ra
	*rsp += 8
	s.keep()
	return unwind.StopNone
}

// keep makes all registers unknown that a function does not preserve.
func (s *peStep) keep() { s.regs.Known = s.regs.Known&s.kept() | 1<<context.RSP }

// kept returns the registers that a function of the image preserves.
func (s *peStep) kept() uint32 {
	return Preserved(s.table.Unix())
}

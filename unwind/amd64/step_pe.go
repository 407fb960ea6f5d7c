package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// windowsKept are the registers a Windows x64 function preserves: all that
// nonvolatile names, RSI, RDI and XMM6-XMM15.
const windowsKept = nonvolatile | 1<<context.RSI | 1<<context.RDI | 0x3ff<<16

// PEPart says where in a function a PE step found the frame.
type PEPart uint8

const (
	PECode   PEPart = iota // prolog or body: unwind codes were applied
	PEEpilog               // the rest of an epilog was run
	PELeaf                 // no entry covers the address
)

// PEResult is what a PE step found besides the caller's registers.
type PEResult struct {
	Part    PEPart
	Machine bool           // the caller was interrupted: its RIP is exact
	Frame   uint64         // EstablisherFrame
	Handler uint32         // RVA of the exception handler in charge, 0 = none
	Reason  peamd64.Reason // why unwind data was refused, or NoEntry
	At      uint32         // RVA of the UNWIND_INFO that was refused
}

// StepPE replaces regs, whose RIP lies at the RVA at in t, by the caller's, as
// Windows' RtlVirtualUnwind does. If stop is not StopNone regs is in no defined
// state: step a copy. It checks neither progress nor bounds, and allocates
// nothing.
//
// A nonvolatile register whose saved value cannot be read becomes unknown;
// volatile ones are unknown after it.
func StepPE(t *peamd64.Table, at unwind.Address, regs *Registers, mem *memory.Window) (res PEResult, stop unwind.Stop) {
	s := peStep{table: t, pc: uint32(at.IP), regs: regs, mem: mem}
	stop = s.run(at)
	return s.res, stop
}

// StepFunction is StepPE for a frame whose function is known: fn, which needs no
// entry in t. inside tells whether pc may stand in one of its epilogs.
func StepFunction(t *peamd64.Table, fn peamd64.RuntimeFunction, pc uint32, inside bool, regs *Registers, mem *memory.Window) (res PEResult, stop unwind.Stop) {
	s := peStep{table: t, pc: pc, regs: regs, mem: mem}
	stop = s.leave(fn, inside)
	return s.res, stop
}

// Preserved are the registers that a function preserves, as bits of Known: by
// System V's convention, or by Windows'.
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

	symbolic bool   // no memory is read: see pe_rule.go
	deep     bool   // symbolic: an address was itself read from the stack
	needs    uint32 // the registers that had to be known, as bits of Known
}

// run makes the step from at, which is pc.
func (s *peStep) run(at unwind.Address) unwind.Stop {
	entry, ok := s.table.Lookup(uint32(at.Lookup()))
	if !ok {
		s.res.Part, s.res.Reason, s.res.Frame = PELeaf, peamd64.NoEntry, s.regs.GPR[context.RSP]
		return s.ret()
	}
	return s.covered(entry)
}

// covered makes the step from code that an entry covers.
func (s *peStep) covered(entry peamd64.RuntimeFunction) unwind.Stop {
	fn, why := s.table.Resolve(entry)
	if why != peamd64.OK {
		s.res.At = entry.Unwind
		return s.refuse(why)
	}
	// A call may be a function's last instruction: pc then lies behind the function
	// that was looked up, and what follows is not its epilog.
	return s.leave(fn, entry.Contains(s.pc))
}

// word reads a word of the stack; symbolically it is its own address, marked. A
// mark on the address itself says that the word's place was read from the stack: a
// rule of words below one register cannot tell that.
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

// leave leaves the function fn from pc; inside tells whether pc may stand in
// one of its epilogs.
func (s *peStep) leave(fn peamd64.RuntimeFunction, inside bool) unwind.Stop {
	s.res.At = fn.Unwind
	info, fault := s.table.Info(fn.Unwind)
	if !fault.OK() {
		return s.refuse(fault.Reason)
	}
	// EstablisherFrame is wanted in an epilog too: handlers are called with it.
	base, why := s.frame(&info, s.pc-fn.Begin)
	if why != peamd64.OK {
		return s.refuse(why)
	}
	if inside {
		// Version 1 says nothing of epilogs: they are recognised by their instructions,
		// which are few by the calling convention so that they can be. Version 2 lists
		// where they are.
		if info.Version == 1 {
			var e Epilog
			if s.inEpilog(fn, &info, s.table.Tail(s.pc, MaxEpilog), &e) {
				s.res.Part = PEEpilog
				return s.runEpilog(&e)
			}
		} else if into, ok := epilog2(fn, &info, s.pc); ok {
			s.res.Part = PEEpilog
			return s.undoEpilog(info, into)
		}
	}
	// An epilog counts from RSP; only the body needs the frame register, which a frame
	// above may have lost.
	if base != context.RSP && !s.need(base) {
		return unwind.Unreadable
	}
	return s.undoProlog(fn, &info)
}

// frame finds EstablisherFrame, from which saves count, and the register that
// gives it. An epilog can do without it. The frame register counts once the prolog
// has set it: behind the prolog, at or behind the code that sets it, and in every
// part of a function that is chained to the one with the prolog, since such a part
// runs with the frame made.
func (s *peStep) frame(info *peamd64.Info, into uint32) (base uint8, why peamd64.Reason) {
	s.res.Frame = s.regs.GPR[context.RSP]
	if info.FrameReg == 0 {
		return context.RSP, peamd64.OK
	}
	at, distance, why := setsFrame(info)
	if why != peamd64.OK || !info.Chained() && into < uint32(info.Prolog) && into < at {
		return context.RSP, why
	}
	s.res.Frame = s.regs.GPR[info.FrameReg] - uint64(distance)
	return info.FrameReg, peamd64.OK
}

// setsFrame tells behind how many bytes of the prolog the frame register is
// set, and how far above the frame's base it then is. Information without such
// a code gives a place no prolog reaches.
func setsFrame(info *peamd64.Info) (at, distance uint32, why peamd64.Reason) {
	_, codes := info.Epilogs()
	for len(codes) > 0 {
		c, why := info.Code(codes)
		switch {
		case why != peamd64.OK:
			return 0, 0, why
		case c.Op == peamd64.UWOP_SET_FPREG:
			return uint32(c.Offset), uint32(info.FrameOffset), peamd64.OK
		case c.Op == peamd64.UWOP_SET_FPREG_LARGE:
			return uint32(c.Offset), c.Operand, peamd64.OK
		}
		codes = codes[c.Size():]
	}
	return 256, uint32(info.FrameOffset), peamd64.OK // a prolog has at most 255 bytes
}

// maxChain is how many parents are followed: as many as Windows does.
const maxChain = 32

// undoProlog undoes what of the prolog had run, and that of every parent.
func (s *peStep) undoProlog(fn peamd64.RuntimeFunction, info *peamd64.Info) unwind.Stop {
	for link := 0; ; link++ {
		if stop := s.undo(info, s.pc-fn.Begin); stop != unwind.StopNone {
			return stop
		}
		if !info.Chained() {
			break
		}
		// The parent's codes are undone by the same pc: it lies outside the parent, so
		// that the difference is past the parent's prolog, which has run.
		if link == maxChain {
			return s.refuse(peamd64.ChainDepth)
		}
		var why peamd64.Reason
		if fn, why = s.table.Resolve(info.Parent); why != peamd64.OK {
			return s.refuse(why)
		}
		s.res.At = fn.Unwind
		var fault peamd64.Fault
		if *info, fault = s.table.Info(fn.Unwind); !fault.OK() {
			return s.refuse(fault.Reason)
		}
	}
	if s.pc-fn.Begin >= uint32(info.Prolog) { // a handler is not in charge of the prolog
		s.res.Handler = info.Handler
	}
	if s.res.Machine { // RIP was taken from it: nobody has called this function
		s.keep()
		return unwind.StopNone
	}
	return s.ret()
}

// undo applies the codes of one UNWIND_INFO whose instructions had run before
// the instruction into bytes past its function's begin. A difference that
// wraps counts as past the prolog. Pushes, two codes of three, are undone
// without decoding them: that halves the time of a step.
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
	case peamd64.UWOP_SET_FPREG:
		return s.fromFrame(info.FrameReg, uint64(info.FrameOffset))
	case peamd64.UWOP_SET_FPREG_LARGE:
		return s.fromFrame(info.FrameReg, uint64(c.Operand))
	case peamd64.UWOP_SAVE_NONVOL, peamd64.UWOP_SAVE_NONVOL_FAR:
		return s.load(c.Info, s.res.Frame+uint64(c.Operand))
	case peamd64.UWOP_SAVE_XMM128, peamd64.UWOP_SAVE_XMM128_FAR:
		s.loadXMM(c.Info, s.res.Frame+uint64(c.Operand))
	case peamd64.UWOP_PUSH_MACHFRAME:
		return s.machineFrame(8 * uint64(c.Info))
	default:
		return s.refuse(peamd64.BadOpcode) // EPILOG behind others
	}
	return unwind.StopNone
}

// fromFrame undoes the setting of the frame register, and with it all that was
// allocated since.
func (s *peStep) fromFrame(reg uint8, distance uint64) unwind.Stop {
	if !s.need(reg) {
		return unwind.Unreadable
	}
	s.regs.GPR[context.RSP] = s.regs.GPR[reg] - distance
	return unwind.StopNone
}

// load restores a general register. A stack pointer that cannot be read ends
// the walk, another register becomes unknown.
func (s *peStep) load(reg uint8, at uint64) unwind.Stop {
	v, ok := s.word(at)
	switch {
	case ok:
		// A rule keeps no word that a stack pointer set later makes needless, but
		// that must be there all the same.
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

// pop restores a general register from the stack's top.
func (s *peStep) pop(reg uint8) unwind.Stop {
	at := s.regs.GPR[context.RSP]
	s.regs.GPR[context.RSP] = at + 8
	return s.load(reg, at)
}

// loadXMM restores one of XMM6-XMM15; the others are volatile. One that cannot be
// read becomes unknown and does not end the walk: no frame is found by it.
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

// machineFrame takes RIP and RSP from what the processor pushed (Intel SDM volume 3A,
// section 6.14.2: RIP, CS, RFLAGS, RSP, SS); skip is the size of the error code.
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

// keep forgets the volatile registers.
func (s *peStep) keep() { s.regs.Known = s.regs.Known&s.kept() | 1<<context.RSP }

// kept are the registers that a function of the image preserves.
func (s *peStep) kept() uint32 {
	return Preserved(s.table.Unix())
}

package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// UNWIND_INFO (Microsoft, "x64 exception handling") as the CLR writes it on
// Unix: version 1, System V callee-saved registers, and one more code.
const (
	opPushNonvol    = 0
	opAllocLarge    = 1
	opAllocSmall    = 2
	opSetFPReg      = 3
	opSaveNonvol    = 4
	opSaveNonvolFar = 5
	opSaveXMM       = 8
	opSaveXMMFar    = 9
	opSetFPRegLarge = 11 // three slots: 32-bit offset/16

	flagChain = 4
	maxChain  = 32
	maxInfo   = 4 + 2*256 + functionSize
)

// nonvolatile are the registers a System V function preserves.
const nonvolatile = 1<<context.RBX | 1<<context.RBP | 1<<context.RSP | 0xf<<context.R12

// infoSize is the size of an UNWIND_INFO with header h, a chained
// RUNTIME_FUNCTION included.
func infoSize(h []byte) int {
	n := 4 + 2*((int(h[2])+1)&^1)
	if chained(h) {
		n += functionSize
	}
	return n
}

// StepManaged replaces regs, the state of a frame of managed code or of a stub
// of the runtime, by its caller's, and describes the frame it left in f. exact
// tells whether regs.RIP is an interrupted instruction. trust says how the
// caller's frame was found. If stop is not StopNone, regs is unchanged; NoInfo
// means that the runtime's tables do not cover the ip.
func (t *Tables) StepManaged(regs *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (trust unwind.Trust, stop unwind.Stop) {
	*f = unwind.Frame{IP: regs.RIP, SP: regs.SP(), FP: regs.FP(), Module: -1, Kind: unwind.KindManaged, Exact: exact}
	x := execution{t: t, mem: mem, to: *regs, sp: regs.SP()}
	e, reason := t.locate(regs.RIP)
	switch {
	case reason == Found && e.Kind != Stub:
		trust, stop = x.method(e, exact)
	case exact && (reason == Found || reason == NotCode || reason == NoMethod):
		f.Kind = unwind.KindStub
		trust, stop = x.stub(e)
	default:
		return unwind.TrustNone, stopOf(reason)
	}
	if stop == unwind.StopNone {
		stop = x.leave(regs)
	}
	if stop != unwind.StopNone {
		return unwind.TrustNone, stop
	}
	f.CFA = regs.SP()
	return trust, stop
}

func stopOf(r Reason) unwind.Stop {
	switch r {
	case Malformed:
		return unwind.BadInfo
	case Unsupported:
		return unwind.Unsupported
	}
	return unwind.NoInfo
}

// execution is the undoing of one frame.
type execution struct {
	t   *Tables
	mem *memory.Window
	to  context.AMD64
	sp  uint64
}

// method undoes a method's frame, in an epilogue by its code.
func (x *execution) method(e *located, exact bool) (unwind.Trust, unwind.Stop) {
	if exact && x.epilog(e) {
		return unwind.TrustEpilog, unwind.StopNone
	}
	stop := x.chain(e)
	return unwind.TrustUnwindInfo, stop
}

// leave pops the return address and commits.
func (x *execution) leave(regs *context.AMD64) unwind.Stop {
	ra, ok := x.mem.Word(x.sp)
	switch {
	case !ok:
		return unwind.Unreadable
	case x.sp < regs.SP() || x.sp+8 < x.sp:
		return unwind.NoProgress
	case ra == 0:
		return unwind.EndOfStack
	}
	x.to.RIP, x.to.GPR[context.RSP] = ra, x.sp+8
	x.to.Known = x.to.Known&nonvolatile | 1<<context.RSP
	*regs = x.to
	return unwind.StopNone
}

// chain applies an entry's codes and those of the entries it is chained to.
func (x *execution) chain(e *located) unwind.Stop {
	offset := x.to.RIP - e.Begin
	info := e.info
	fb, ok := x.frameBase(info, offset)
	if !ok {
		return unwind.Unreadable
	}
	for range maxChain {
		if stop := x.codes(info, offset, fb); stop != unwind.StopNone {
			return stop
		}
		if !chained(info) {
			return unwind.StopNone
		}
		parent := binary.LittleEndian.Uint32(info[len(info)-4:])
		var r Reason
		if info, r = x.t.info(e.Base + uint64(parent&^1)); r != Found {
			return unwind.BadInfo
		}
		offset = ^uint64(0) // all codes of a parent apply
	}
	return unwind.BadInfo
}

// frameBase is what SAVE offsets count from: the stack pointer, or what the
// frame register says once it is set.
func (x *execution) frameBase(info []byte, offset uint64) (uint64, bool) {
	reg := info[3] & 15
	if reg == 0 {
		return x.sp, true
	}
	set := offset >= uint64(info[1]) || chained(info)
	distance := 16 * uint64(info[3]>>4)
	codes := info[4 : 4+2*int(info[2])]
	for i := 0; i+1 < len(codes); i += 2 * slots(codes[i+1]) {
		switch codes[i+1] & 15 {
		case opSetFPRegLarge:
			if i+6 > len(codes) {
				return 0, false
			}
			distance = 16 * uint64(binary.LittleEndian.Uint32(codes[i+2:]))
			fallthrough
		case opSetFPReg:
			set = set || uint64(codes[i]) <= offset
		}
	}
	if !set {
		return x.sp, true
	}
	return x.to.GPR[reg] - distance, x.to.Known>>reg&1 != 0
}

// slots is the number of 16-bit slots of an unwind code.
func slots(op byte) int {
	switch op & 15 {
	case opAllocLarge:
		return 2 + int(op>>4&1)
	case opSaveNonvol, opSaveXMM:
		return 2
	case opSaveNonvolFar, opSaveXMMFar, opSetFPRegLarge:
		return 3
	}
	return 1
}

// codes undoes the unwind codes of one UNWIND_INFO whose instructions ran.
func (x *execution) codes(info []byte, offset, fb uint64) unwind.Stop {
	codes := info[4 : 4+2*int(info[2])]
	for i := 0; i < len(codes); {
		n := 2 * slots(codes[i+1])
		if n > len(codes)-i {
			return unwind.BadInfo
		}
		if offset >= uint64(info[1]) || uint64(codes[i]) <= offset {
			if stop := x.code(codes[i+1], operand(codes[i+2:i+n]), info, fb); stop != unwind.StopNone {
				return stop
			}
		}
		i += n
	}
	return unwind.StopNone
}

func operand(b []byte) uint64 {
	switch len(b) {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// code undoes one unwind code.
func (x *execution) code(op byte, operand uint64, info []byte, fb uint64) unwind.Stop {
	arg := op >> 4
	switch op & 15 {
	case opPushNonvol:
		x.restore(arg, x.sp)
		x.sp += 8
	case opAllocLarge:
		if arg == 0 {
			operand *= 8
		}
		x.sp += operand
	case opAllocSmall:
		x.sp += 8*uint64(arg) + 8
	case opSetFPReg, opSetFPRegLarge:
		if info[3]&15 == 0 {
			return unwind.BadInfo
		}
		x.sp = fb
	case opSaveNonvol:
		x.restore(arg, fb+8*operand)
	case opSaveNonvolFar:
		x.restore(arg, fb+operand)
	case opSaveXMM, opSaveXMMFar: // System V preserves none
	default:
		return unwind.Unsupported
	}
	return unwind.StopNone
}

// restore reads a saved register; without its word it is unknown.
func (x *execution) restore(reg byte, at uint64) {
	v, ok := x.mem.Word(at)
	if reg == context.RSP {
		return
	}
	x.to.GPR[reg] = v
	x.to.Known &^= 1 << reg
	if ok {
		x.to.Known |= 1 << reg
	}
}

package arm64

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context/memory"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
)

// place is an address: a register's value at the start of the step, plus off.
type place struct {
	reg uint8 // 29 or 31 = SP
	off int64
}

// undo executes unwind codes. It keeps SP and the saved registers as places and reads nothing, so that the
// result can be packed into a rule. If the effect of a code needs a value from memory, the collected places
// are read (commit) and execution continues; while compiling, it gives up instead.
type undo struct {
	sp    place
	at    [numSlots]place
	have  uint32
	strip bool // lr is signed

	next  int  // save_next codes not yet used
	pcSet bool // a machine frame or context gave the pc
	exact bool // the caller's pc is exact
	lr    bool // lr was read from the stack

	run  bool // false while compiling: registers and memory have no values
	regs Registers
	mem  *memory.Window
}

// outcome is how the execution of codes ended: undone is success.
type outcome uint8

const (
	undone   outcome = iota
	needsRun         // only while compiling: an effect depends on memory
	badCodes
	unsupportedCodes
	unreadable
)

func (o outcome) stop() unwind.Stop {
	return [...]unwind.Stop{unwind.StopNone, unwind.BadInfo, unwind.BadInfo,
		unwind.Unsupported, unwind.Unreadable}[o]
}

// compile prepares for codes whose result will be packed.
func (u *undo) compile() {
	u.begin()
	u.run, u.mem = false, nil
}

// execute prepares for codes that run on regs.
func (u *undo) execute(regs *Registers, mem *memory.Window) {
	u.begin()
	u.run, u.regs, u.mem = true, *regs, mem
}

func (u *undo) begin() {
	u.restart()
	u.next, u.pcSet, u.exact, u.lr = 0, false, false, false
}

func (u *undo) restart() { u.sp, u.have, u.strip = place{reg: regSP}, 0, false }

// codes executes codes up to their end, which may be missing after the last epilog (see pearm64.Info.Count).
// They are at most 1020 bytes.
func (u *undo) codes(b []byte) outcome {
	for c := (pearm64.Code{}); ; {
		if len(b) == 0 && u.next == 0 {
			return undone
		}
		switch reason := c.Decode(b); {
		case reason != pearm64.OK && reason.Unsupported():
			return unsupportedCodes
		case reason != pearm64.OK:
			return badCodes
		case c.Op == pearm64.End && u.next == 0:
			return undone
		case c.Op == pearm64.End:
			return badCodes
		}
		if o := u.code(&c); o != undone {
			return o
		}
		b = b[c.Size:]
	}
}

// code undoes one instruction.
func (u *undo) code(c *pearm64.Code) outcome {
	if c.Op == pearm64.SaveNext {
		u.next++
		return undone
	}
	if c.Saves {
		return u.save(c)
	}
	if u.next != 0 {
		return badCodes
	}
	switch c.Op {
	case pearm64.AllocS, pearm64.AllocM, pearm64.AllocL:
		u.sp.off += int64(c.Off)
	case pearm64.SetFP, pearm64.AddFP:
		return u.fromFP(int64(c.Off))
	case pearm64.PACSignLR:
		u.strip = true
	case pearm64.ClearUnwoundToCall:
		u.exact = true
	case pearm64.MachineFrame, pearm64.Context, pearm64.ECContext:
		return u.whole(c.Op)
	case pearm64.Nop, pearm64.EndC:
	default:
		return badCodes
	}
	return undone
}

// save undoes the save of one register or of a run of pairs.
func (u *undo) save(c *pearm64.Code) outcome {
	n := u.next
	u.next = 0
	if n > 0 && !c.CanSaveNext(n) {
		return badCodes
	}
	at, size := u.sp, int64(8)
	if !c.Pre {
		at.off += int64(c.Off)
	}
	if c.Quad {
		size = 16
	}
	u.load(c, int(c.Reg), at)
	if c.Reg2 != pearm64.NoRegister {
		last := int(c.Reg2) + 2*n
		at.off += size
		u.load(c, int(c.Reg2), at)
		for reg := int(c.Reg2) + 1; reg <= last; reg++ {
			at.off += size
			u.load(c, reg, at)
		}
	}
	if c.Pre {
		u.sp.off += int64(c.Off)
	}
	return undone
}

// load records where a register was saved. Volatile registers are ignored.
func (u *undo) load(c *pearm64.Code, reg int, at place) {
	slot := reg - firstX
	if c.Vector {
		slot = reg - 8 + numX
		if slot < numX {
			return
		}
	} else if reg == regLR {
		u.strip, u.lr = false, true
	}
	if slot >= 0 && slot < numSlots {
		u.at[slot] = at
		u.have |= 1 << slot
	}
}

// fromFP sets SP to x29 minus off bytes.
func (u *undo) fromFP(off int64) outcome {
	if u.have>>(regFP-firstX)&1 != 0 {
		if o := u.commit(); o != undone {
			return o
		}
	}
	if u.run && !known(&u.regs, regFP) {
		return unreadable
	}
	u.sp = place{regFP, -off}
	return undone
}

// commit reads the collected places into the registers and starts over. One unreadable word fails the step.
func (u *undo) commit() outcome {
	if !u.run {
		return needsRun
	}
	var v [numSlots]uint64
	for s := u.have; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		w, ok := u.mem.Word(u.address(u.at[i]))
		if !ok {
			return unreadable
		}
		v[i] = w
	}
	u.regs.Sp = u.address(u.sp)
	for s := u.have; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		setSlot(&u.regs, i, v[i])
		u.regs.Known |= slotBit(i)
	}
	if u.strip {
		u.regs.X[regLR] = stripUser(u.regs.X[regLR])
	}
	u.restart()
	return undone
}

func (u *undo) address(p place) uint64 {
	if p.reg == regFP {
		return u.regs.X[regFP] + uint64(p.off)
	}
	return u.regs.Sp + uint64(p.off)
}

// whole undoes codes that saved SP and PC themselves.
func (u *undo) whole(op pearm64.Op) outcome {
	if o := u.commit(); o != undone {
		return o
	}
	u.pcSet, u.exact = true, true
	switch op {
	case pearm64.Context:
		return u.winContext()
	case pearm64.ECContext:
		return u.ecContext()
	}
	sp, ok := u.mem.Word(u.regs.Sp)
	pc, ok2 := u.mem.Word(u.regs.Sp + 8)
	if !ok || !ok2 {
		return unreadable
	}
	u.regs.Sp, u.regs.PC = sp, pc
	return undone
}

// Offsets in the Windows ARM64 CONTEXT (winnt.h).
const (
	ctxX0 = 0x008 // x0-x28, fp, lr, sp, pc
	ctxSP = 0x100
	ctxPC = 0x108
	ctxV0 = 0x110
)

func (u *undo) winContext() outcome {
	at, r := u.regs.Sp, &u.regs
	ok := true
	for i := range r.X {
		ok = u.word(at+ctxX0+8*uint64(i), &r.X[i]) && ok
	}
	for i := range r.D {
		ok = u.word(at+ctxV0+16*uint64(8+i), &r.D[i]) && ok
	}
	return u.finishContext(at, ctxSP, ctxPC, ok)
}

// ecX are the offsets in the ARM64EC CONTEXT, which has the shape of the x64
// one (winnt.h, ARM64EC_NT_CONTEXT); 0 = the register is not in it.
var ecX = [31]uint16{
	0x80, 0x88, 0xb8, 0xc0, 0xc8, 0xd0, 0x130, 0x140, 0x78, 0x150, 0x160, 0x170, 0x180, 0, 0, 0x190,
	0, 0, 0, 0xd8, 0xe0, 0xe8, 0xf0, 0, 0, 0xa8, 0xb0, 0x90, 0, 0xa0, 0x120,
}

const (
	ecSP = 0x98
	ecPC = 0xf8
	ecV0 = 0x1a0
)

func (u *undo) ecContext() outcome {
	at, r := u.regs.Sp, &u.regs
	ok := true
	missing := uint64(0)
	for i, off := range ecX {
		if off == 0 {
			missing |= 1 << i
			continue
		}
		ok = u.word(at+uint64(off), &r.X[i]) && ok
	}
	for i := range r.D {
		ok = u.word(at+ecV0+16*uint64(8+i), &r.D[i]) && ok
	}
	o := u.finishContext(at, ecSP, ecPC, ok)
	r.Known &^= missing
	return o
}

func (u *undo) word(at uint64, to *uint64) bool {
	v, ok := u.mem.Word(at)
	if ok {
		*to = v
	}
	return ok
}

func (u *undo) finishContext(at, sp, pc uint64, ok bool) outcome {
	r := &u.regs
	if !u.word(at+pc, &r.PC) || !u.word(at+sp, &r.Sp) || !ok {
		return unreadable
	}
	r.Known = 1<<31 - 1 | 0xff<<32
	return undone
}

// pack turns the result into a rule, or returns false if it does not fit.
func (u *undo) pack(module int) (Rule, bool) {
	r := makeRule(RuleSlotsPE, module)
	if u.pcSet || u.sp.off != int64(int32(u.sp.off)) {
		return r, false
	}
	r.base, r.cfa = u.sp.reg, int32(u.sp.off)
	for s := u.have; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		p := &u.at[i]
		if p.reg != u.sp.reg || !r.setSlot(i, p.off) {
			return r, false
		}
	}
	r.measure()
	if u.strip {
		r.saved |= flagStrip
	}
	if u.exact {
		r.saved |= flagExact
	}
	return r, true
}

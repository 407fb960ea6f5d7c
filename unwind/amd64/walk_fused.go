package amd64

import (
	"encoding/binary"
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// The steps most frames of a walk are: by a kept rule of slots, its words in the
// hot run, nothing in the way. They need the instruction pointer, RSP and RBP
// alone; where the other registers were saved is noted, and only what the last
// frame's are is read, when something else has to be done.

// logSize is how many frames' rules are noted before their registers are read.
const logSize = 128

// section is what a row of fused steps needs to know, and where it begins.
type section struct {
	hot  memory.Run
	out  []unwind.Frame // of the frames to come, as many as may be
	log  [logSize]uint64
	seen uint64 // the slots any of the rules noted have
	next Rule   // of the frame reached, of no kind if it is not kept
}

// limit makes the section's memory what a stack pointer in bounds may reach: a step
// out of them, which checkSP may refuse, is none of this section. Above the bounds
// it refuses none, and a stack pointer only rises.
func (t *section) limit(hot memory.Run, sp uint64, b *unwind.Bounds) {
	t.hot = hot
	switch {
	case b.High == 0 || sp > b.High || hot.End() <= b.High:
	case hot.Addr >= b.High:
		t.hot.Data = nil
	default:
		t.hot.Data = hot.Data[:b.High-hot.Addr]
	}
}

// fused makes all the steps from regs, whose rule is r, that are of this kind, and
// describes the frames left. It returns how many; regs is as Step would have it.
//
// Nothing here is new: each line is a check of leaveFrame, checkSP or checkRA, and
// what fails one is left to them. It calls nothing: a call would put all it has in
// registers on its own stack at each frame.
func (u *Unwinder) fused(r Rule, regs *Registers, trust unwind.Trust, t *section) (n int) {
	pc, sp, bp := regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP]
	data, low, seen := t.hot.Data[:len(t.hot.Data):len(t.hot.Data)], t.hot.Addr, uint64(0)
	for out := t.out; n < len(out); {
		cfa := sp
		if k := r.bits & (managedBit | 15); k == uint64(RuleBP) {
			cfa = bp
		} else if k != uint64(RuleSP) {
			break
		}
		cfa += r.offset()
		at := int(cfa - 8 - low)
		if cfa <= sp || at < 0 || len(data)-at < 8 {
			break
		}
		ra := binary.LittleEndian.Uint64(data[at:])
		if ra == 0 {
			break
		}
		caller := bp
		if k := r.bits >> (slotShift + 4) & 15; k != 0 {
			at -= int(8*k - 8)
			if at < 0 || len(data)-at < 8 {
				break
			}
			caller = binary.LittleEndian.Uint64(data[at:])
		}
		f := &out[n]
		f.IP, f.SP, f.FP, f.CFA = pc, sp, bp, cfa
		f.Module, f.Kind, f.Trust, f.Exact = int32(r.bits>>moduleShift&0xffff), unwind.KindNative, trust, false
		t.log[n&(logSize-1)] = r.bits
		seen |= r.bits
		n++
		pc, sp, bp = ra, cfa, caller
		if r = u.kept(ra - 1); r.bits == 0 {
			break
		}
	}
	t.seen, t.next = seen, r
	regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP] = pc, sp, bp
	return n
}

// kept is lookup without a miss: of no kind if the rule is not there.
func (u *Unwinder) kept(addr uint64) Rule {
	slot := slotFor(addr)
	if e := &u.cache[slot]; e.addr == addr {
		return e.rule
	}
	return u.keptBeside(addr, slot)
}

func (u *Unwinder) keptBeside(addr, slot uint64) Rule {
	for way := uint64(1); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr {
			return e.rule
		}
	}
	return Rule{}
}

// everySlot has the lowest bit of each slot but RBP's, whose value is at hand.
const everySlot = 0x111101

// fusible reports whether the rule is of fused steps.
func (r Rule) fusible(regs *Registers) bool {
	k := r.bits & (managedBit | 15)
	return (k == uint64(RuleSP) || k == uint64(RuleBP)) && known(regs, context.RBP)
}

// walkFused is a section: the steps, then what they leave to do.
func (u *Unwinder) walkFused(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (n int) {
	t, regs := &u.section, &s.Regs.AMD64
	t.limit(mem.Hot(), regs.GPR[context.RSP], b)
	t.out = out[:min(len(out), logSize)]
	if n = u.fused(r, regs, s.Trust.Then(unwind.TrustCFI), t); n == 0 {
		return 0
	}
	out[0].Exact, out[0].Trust = s.Exact, s.Trust
	u.by = unwind.TrustCFI
	s.Reached(false, unwind.TrustCFI)
	regs.Known &= nonvolatile
	t.restore(n, regs, mem)
	return n
}

// restore reads what the n frames left saved of the other registers. The frame
// nearest to the caller that saved one has its value; if its word is missing, the
// register is unknown.
func (t *section) restore(n int, regs *Registers, mem *memory.Window) {
	for want := saved(t.seen); want != 0 && n > 0; {
		n--
		r := Rule{t.log[n]}
		for s := saved(r.bits) & want; s != 0; s &= s - 1 {
			at := bits.TrailingZeros64(s)
			reg := slotRegs[at/4%len(slotRegs)]
			v, ok := mem.Word(t.out[n].CFA - 8*(r.slots()>>at&15))
			regs.Known &^= 1 << reg
			if ok {
				regs.GPR[reg] = v
				regs.Known |= 1 << reg
			}
		}
		want &^= saved(r.bits)
	}
}

// saved has the lowest bit of each slot that is in use, RBP's aside.
func saved(rule uint64) uint64 {
	s := rule >> slotShift & slotMask
	return (s | s>>1 | s>>2 | s>>3) & everySlot
}

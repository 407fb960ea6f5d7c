package arm64

import (
	"encoding/binary"
	"math/bits"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Most steps of a walk use a cached rule of slots whose words are in the hot run, without special cases. They
// need only pc, SP, and x29. The rules of the frames are logged, and the other registers are read for the
// last frame only, when the run of fused steps ends.

// fewSteps is the longest run for which single steps are faster than the fused loop. A rule that started no
// longer run is marked, and from then on its frame is left by a single step: if stacks with one native frame
// are walked repeatedly, they begin with the same functions.
const fewSteps = 1

// logSize is how many frames' rules are logged before their registers are read.
const logSize = 128

// section holds the limits of a run of fused steps, and its start.
type section struct {
	hot  memory.Run
	top  uint64          // upper limit of the stack pointer
	out  []unwind.Frame  // room for the next frames
	log  [logSize]uint16 // places of the rules in the cache
	seen uint32          // the slots of all logged rules
	next uint64          // cache place of the rule of the frame reached, if kept
	kept bool            // that rule is cached
}

// Drop implements unwind.Walker.
func (u *Unwinder) Drop() { u.section.hot, u.section.out = memory.Run{}, nil }

// limit sets what a stack pointer within bounds may reach: a step out of the bounds, which checkSP may
// refuse, is not part of the section. Above the bounds checkSP refuses none, and a stack pointer only rises.
func (t *section) limit(hot memory.Run, sp uint64, b *unwind.Bounds) {
	t.hot, t.top = hot, ^uint64(0)
	if b.High != 0 && sp <= b.High {
		t.top = b.High
	}
}

// fusible reports whether fused steps can use the rule.
func (r *Rule) fusible(regs *Registers) bool {
	return (r.kind == RuleSlots || r.kind == RuleSlotsPE) && r.saved&flagFew == 0 && known(regs, regFP)
}

// walkFused makes fused steps from s, whose rule is cached at place at, and then completes the frames and the
// registers. It returns the number of steps; with 0, s has not changed.
func (u *Unwinder) walkFused(at uint64, s *unwind.State, mem *memory.Window,
	b *unwind.Bounds, out []unwind.Frame) (n int) {
	t, regs := &u.section, &s.Regs.ARM64
	t.limit(mem.Hot(), regs.Sp, b)
	t.out = out[:min(len(out), logSize)]
	r, trust := &u.cache[at&(cacheSize-1)].rule, unwind.TrustCFI
	if r.kind == RuleSlotsPE {
		trust = unwind.TrustUnwindInfo
	}
	n = u.fused(at, r.kind, regs, s.Trust.Then(trust), t)
	if n <= fewSteps && n < len(t.out) && t.kept {
		r.saved |= flagFew
	}
	if n == 0 {
		return 0
	}
	out[0].Exact, out[0].Trust = s.Exact, s.Trust
	u.trust = trust
	s.Reached(false, trust)
	regs.Known = regs.Known&nonvolatile | 1<<regLR
	u.restore(n, regs, mem)
	return n
}

// fused makes all fused steps of one kind from regs, whose rule is at this place in the cache, and describes
// the frames left. It returns their number; except for the logged registers, regs are as Step would leave
// them.
//
// Each line is a check of stepSlots, checkSP, or checkRA, and a failed check is left to these functions. The
// loop makes a call only after a wrong guess of the next rule, so that everything stays in registers.
// Distances wrap: one from below the memory is larger than any inside it.
func (u *Unwinder) fused(place uint64, kind Kind, regs *Registers, trust unwind.Trust, t *section) (n int) {
	t.seen, t.next, t.kept = 0, place, true
	if len(t.hot.Data) < 8 {
		return 0
	}
	pc, sp, fp := regs.PC, regs.Sp, regs.X[regFP]
	data, low := t.hot.Data[:len(t.hot.Data):len(t.hot.Data)], t.hot.Addr
	last, e := uint64(len(data)-8), &u.cache[place&(cacheSize-1)]
	user := ^uint64(0)
	if kind == RuleSlots {
		user >>= 16 // the result of stripPAC for an address whose bit 55 is clear
	}
	for out := t.out; n < len(out); {
		r := &e.rule
		if r.kind != kind || r.saved&(flagManaged|rareFlags|1<<slotLR) != 1<<slotLR {
			break
		}
		from := sp
		if r.base == regFP {
			from = fp
		} else if r.base != regSP {
			break
		}
		cfa := from + uint64(int64(r.cfa))
		at := from - low + uint64(8*int64(r.slots[slotLR]))
		if cfa <= sp || cfa > t.top || at > last {
			break
		}
		saved := binary.LittleEndian.Uint64(data[at : at+8 : at+8])
		to := saved & user
		if to <= 1 || saved>>55&1 != 0 { // a look-up of 1 would find an empty entry's 0
			break
		}
		caller := fp
		if r.saved&(1<<slotFP) != 0 {
			at = from - low + uint64(8*int64(r.slots[slotFP]))
			if at > last {
				break
			}
			caller = binary.LittleEndian.Uint64(data[at : at+8 : at+8])
		}
		f := &out[n]
		f.IP, f.SP, f.FP, f.CFA = pc, sp, fp, cfa
		f.Module = int32(r.Module())
		f.Kind = unwind.KindNative
		f.Trust = trust
		f.Exact = false
		t.log[n&(logSize-1)] = uint16(place)
		t.seen |= r.saved
		n++
		pc, sp, fp = to, cfa, caller
		// The guessed entry is compared, not computed: a right guess is a predicted branch.
		next := uint64(u.after[place&(cacheSize-1)])
		if e = &u.cache[next&(cacheSize-1)]; e.addr != to-1 {
			if next, t.kept = u.kept(to - 1); !t.kept {
				break
			}
			u.after[place&(cacheSize-1)] = uint16(next)
			e = &u.cache[next&(cacheSize-1)]
		}
		place = next
	}
	t.next = place
	if n > 0 {
		regs.PC, regs.Sp, regs.X[regFP], regs.X[regLR] = pc, sp, fp, u.lastReturn(n, data, low)
	}
	return n
}

// lastReturn returns the return address that the last of n frames has saved, unstripped.
func (u *Unwinder) lastReturn(n int, data []byte, low uint64) uint64 {
	f, r := &u.section.out[n-1], &u.cache[u.section.log[(n-1)&(logSize-1)]&(cacheSize-1)].rule
	from := f.SP
	if r.base == regFP {
		from = f.FP
	}
	return binary.LittleEndian.Uint64(data[from-low+uint64(8*int64(r.slots[slotLR])):])
}

const slotFP = regFP - firstX

// kept finds an address's rule in the cache.
func (u *Unwinder) kept(addr uint64) (place uint64, ok bool) {
	slot := slotFor(addr)
	for way := uint64(0); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr && e.rule.kind != RuleNone {
			return slot ^ way, true
		}
	}
	return 0, false
}

// restore reads the registers that the n left frames saved, except x29 and x30. The value comes from the
// frame nearest to the caller that saved the register; if its word is missing, the register becomes unknown.
func (u *Unwinder) restore(n int, regs *Registers, mem *memory.Window) {
	t, have := &u.section, regs.Known
	for want := t.seen & (slotsMask &^ (1<<slotLR | 1<<slotFP)); want != 0 && n > 0; {
		n--
		r, f := &u.cache[t.log[n&(logSize-1)]&(cacheSize-1)].rule, &t.out[n]
		s := r.saved & want
		if s == 0 {
			continue
		}
		want &^= s
		from := f.SP
		if r.base == regFP {
			from = f.FP
		}
		have = r.restoreLast(s, from, have, regs, t.hot, mem)
	}
	regs.Known = have
}

// restoreLast reads the slots s of a frame, and returns which registers are known then.
func (r *Rule) restoreLast(s uint32, from, have uint64, regs *Registers,
	hot memory.Run, mem *memory.Window) uint64 {
	at, size := from+uint64(int64(r.low)*8)-hot.Addr, uint64(len(hot.Data))
	if at <= size && size-at >= uint64(r.size)*8 {
		return have | r.restoreBlock(s, hot.Data[at:at+uint64(r.size)*8], regs)
	}
	for ; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		v, ok := mem.Word(r.slotAt(i, from))
		if have &^= slotBit(i); ok {
			setSlot(regs, i, v)
			have |= slotBit(i)
		}
	}
	return have
}

package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Most steps of a walk use a cached rule of slots whose words are in the hot run, without special cases. They
// need only the instruction pointer, RSP, and RBP. The rules of the frames are logged, and the other
// registers are read for the last frame only, when the run of fused steps ends.

// fewSteps is the longest run for which single steps are faster than the fused loop. A rule that started no
// longer run is marked, and from then on its frame is left by a single step: if stacks with one or two native
// frames are walked repeatedly, they begin with the same functions.
const fewSteps = 2

// logSize is how many frames' rules are logged before their registers are read.
const logSize = 128

// section holds the limits of a run of fused steps, and its start.
type section struct {
	form  form // of all rules of the run
	hot   memory.Run
	out   []unwind.Frame // room for the next frames
	log   [logSize]uint64
	next  Rule   // of the frame reached, RuleNone if it is not cached
	first uint16 // first place in the cache for the first frame's rule
}

// Drop implements unwind.Walker.
func (u *Unwinder) Drop() { u.section.hot, u.section.out = memory.Run{}, nil }

// limit restricts the section's memory to what a stack pointer within bounds may reach: a step out of the
// bounds, which checkSP may refuse, is not part of the section. Above the bounds checkSP refuses none, and a
// stack pointer only rises.
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

// fused makes all fused steps from regs, whose rule is r, and describes the frames left. It returns their
// number; regs are as Step would leave them. All rules but r are of return addresses.
//
// Each line is a check of leaveFrame, checkSP, or checkRA, and a failed check is left to these functions. The
// loop makes a call only after a wrong guess and has few variables, so that everything stays in registers.
func (u *rules) fused(r Rule, regs *Registers) (n int) {
	t := &u.section
	pc, sp, bp := regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP]
	data, low, cur := t.hot.Data[:len(t.hot.Data):len(t.hot.Data)], t.hot.Addr, uint64(t.first)
	r.bits &^= exactBit
	for out := t.out; n < len(out); {
		cfa := sp
		if k := r.bits & (exactBit | managedBit | 15); k != t.form.sp {
			if k != t.form.bp || bp < sp {
				break
			}
			cfa = bp
		}
		cfa += r.bits >> offsetShift & t.form.offsets << 3
		at := int(cfa - low)
		if cfa <= sp || at < 8 || at > len(data) {
			break
		}
		ra := binary.LittleEndian.Uint64(data[at-8 : at])
		if ra == 0 {
			break
		}
		caller := bp
		if k := r.bits >> (slotShift + 4) & 15; k != 0 {
			at += int(t.form.above - 8*k)
			if at < 0 || at > len(data)-8 {
				break
			}
			caller = binary.LittleEndian.Uint64(data[at:])
		}
		f := &out[n]
		f.IP, f.SP, f.FP, f.CFA = pc, sp, bp, cfa
		f.Module = int32(r.bits >> moduleShift & 0xffff)
		f.Kind = unwind.KindNative
		f.Trust = unwind.TrustCFI
		f.Exact = false
		t.log[n&(logSize-1)] = r.bits
		n++
		pc, sp, bp = ra, cfa, caller
		// The guessed entry is compared, not computed: a right guess is a predicted branch.
		next := uint64(u.after[cur&(cacheSize-1)])
		if e := &u.cache[next&(cacheSize-1)]; e.addr == ra-1 {
			r, cur = e.rule, next
			continue
		}
		if r, cur = u.follows(cur, ra-1); r.bits == 0 {
			break
		}
	}
	t.next = r
	regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP] = pc, sp, bp
	return n
}

// follows finds an address's rule in the cache, and records its place as the successor of the entry at cur.
// Stacks repeat: most entries are followed by the same one each time.
func (u *rules) follows(cur, addr uint64) (Rule, uint64) {
	slot := slotFor(addr)
	for way := uint64(0); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr {
			slot ^= way
			u.after[cur&(cacheSize-1)] = uint16(slot)
			return e.rule, slot
		}
	}
	return Rule{}, cur
}

// kept is lookup without a miss: RuleNone if the rule is not in the cache.
func (u *rules) kept(addr uint64) Rule {
	slot := slotFor(addr)
	if e := &u.cache[slot]; e.addr == addr {
		return e.rule
	}
	return u.keptBeside(addr, slot)
}

func (u *rules) keptBeside(addr, slot uint64) Rule {
	for way := uint64(1); way < ways; way++ {
		if e := &u.cache[slot^way]; e.addr == addr {
			return e.rule
		}
	}
	return Rule{}
}

// fusible reports whether fused steps can start with the rule: it is a rule of slots, and that of a PE
// function was made for an equally exact ip.
func (r Rule) fusible(regs *Registers, exact bool) bool {
	const kinds = 1<<RuleSP | 1<<RuleBP | 1<<RuleNear | 1<<RuleNearBP
	k := r.bits & (managedBit | 15)
	return kinds>>k&1 != 0 && known(regs, context.RBP) && (k < uint64(RuleNear) || r.exactPE() == exact)
}

// walkFused makes fused steps from s, whose rule r is of form fm, and then completes the frames and the
// registers. It returns the number of steps; with 0, nothing has changed.
func (u *rules) walkFused(r Rule, fm *form, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) (n int) {
	t, regs, at := &u.section, &s.Regs.AMD64, s.Address()
	if t.form.sp != fm.sp {
		t.form = *fm
	}
	t.limit(mem.Hot(), regs.GPR[context.RSP], b)
	t.out = out[:min(len(out), logSize)]
	t.first = uint16(slotFor(at.Lookup()))
	if n = u.fused(r, regs); n == 0 {
		return 0
	}
	// Near the low end of the hot run, stepHot cannot make the step.
	if n <= fewSteps && n < len(t.out) && t.next.bits != 0 && t.out[0].CFA-t.hot.Addr >= slotBlock {
		u.amend(at, r, fewBit)
	}
	if trust := s.Trust.Then(fm.trust); trust != unwind.TrustCFI {
		for i := range out[:n] {
			out[i].Trust = trust
		}
	}
	out[0].Exact, out[0].Trust = s.Exact, s.Trust
	s.Reached(false, fm.trust)
	t.restore(n, fm, regs, mem)
	return n
}

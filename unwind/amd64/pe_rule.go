package amd64

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
)

// The rules of PE functions. A rule is made by stepping once with symbols for
// registers and addresses for the words of the stack: what then stands in a
// register says where it comes from. So a rule does what StepPE does, since
// StepPE made it.

// peRule is how to step from one address of a PE function: the CFA is a
// register plus a distance, the return address the word below it, and each
// saved register a word beside it. It fills a cache line.
type peRule struct {
	cfa   int32  // the CFA's distance from the base register, bytes
	saved uint32 // the saved registers, as bits of Registers.Known
	low   int16  // the lowest word read, words from the CFA
	size  uint16 // words from there to the end of the highest
	base  uint8
	part  PEPart
	unix  bool
	slots [peSlots]uint16 // of the register of Known's bit i+firstPE, words from low
}

const (
	firstPE = context.RBX         // the first register a function may save
	peSlots = 16 + 10 - firstPE   // up to XMM15
	xmmBits = uint32(0x3ff << 16) // XMM6-XMM15 in Registers.Known
)

// kept are the registers that a function preserves.
func (p *peRule) kept() uint32 {
	if p.unix {
		return nonvolatile
	}
	return windowsKept
}

// A symbol stands for what was in a register when the step began; one plus a
// distance for an address. A word of the stack is its own address with the mark
// isLoaded. Distances stay below 1<<46: 33 links of 127 allocations of 4 GiB.
const isLoaded = 1 << 63

func symbol(reg int) uint64 { return uint64(reg)<<58 | 1<<57 }

// ofSymbol is the register whose symbol v is near.
func ofSymbol(v uint64) int { return int(v >> 58 & 15) }

var symbols = func() (r Registers) {
	for i := range r.GPR {
		r.GPR[i] = symbol(i)
	}
	r.Known = context.AMD64All
	return r
}()

// compilePE makes the rule of pc in f, or says that it is none of a few words:
// bad unwind data, a machine frame, two frame registers, one that is itself
// read from the stack.
func compilePE(f *pe.File, pc uint32, exact bool) (p peRule, ok bool) {
	regs := symbols
	s := peStep{file: f, pc: pc, regs: &regs, symbolic: true}
	if stop := s.run(exact); stop != unwind.StopNone || s.res.Machine || s.deep {
		return p, false
	}
	_, unix := f.Arch()
	p = peRule{part: s.res.Part, unix: unix, low: -1}
	return p, p.frame(&regs, s.needs) && p.saves(&regs)
}

// frame takes the CFA from the symbolic stack pointer. needs are the registers
// that the step has to know.
func (p *peRule) frame(regs *Registers, needs uint32) bool {
	cfa := regs.GPR[context.RSP]
	base := ofSymbol(cfa)
	off := int64(cfa - symbol(base))
	p.base, p.cfa = uint8(base), int32(off)
	return cfa&isLoaded == 0 && int64(p.cfa) == off && needs&^(1<<base) == 0 && regs.RIP == cfa-8|isLoaded
}

// saves takes the places of the saved registers.
func (p *peRule) saves(regs *Registers) bool {
	var at [peSlots]int16
	high := 0
	note := func(bit int, v, cfa uint64, words int) bool {
		off := int64(v&^isLoaded - cfa)
		if p.kept()>>bit&1 == 0 || bit < firstPE || off&7 != 0 || off < math.MinInt16*8 || off > (math.MaxInt16-2)*8 {
			return false
		}
		at[bit-firstPE] = int16(off / 8)
		p.saved |= 1 << bit
		p.low, high = min(p.low, int16(off/8)), max(high, int(off/8)+words)
		return true
	}
	cfa := regs.GPR[context.RSP]
	for i, v := range regs.GPR {
		if i != context.RSP && v != symbol(i) && !note(i, v, cfa, 1) {
			return false
		}
	}
	for i, v := range regs.XMM {
		if v[0] != 0 && !note(16+i, v[0], cfa, 2) {
			return false
		}
	}
	size := high - int(p.low)
	p.size = uint16(size)
	for s := p.saved; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s) - firstPE
		p.slots[i] = uint16(int(at[i]) - int(p.low))
	}
	return size <= math.MaxUint16
}

// maxPERules is how many rules an unwinder keeps. Functions share them: a big
// module has hundreds. When they are used up the cache is emptied.
const maxPERules = 2048

// peRules are the rules in use, each once. index is a hash table of their
// numbers plus one.
type peRules struct {
	n     int
	index [2 * maxPERules]uint16
	rules [maxPERules]peRule
}

func (t *peRules) clear() {
	if t.n != 0 {
		t.n, t.index = 0, [2 * maxPERules]uint16{}
	}
}

// add gives the number of a rule, -1 if there is no room for it.
func (t *peRules) add(p *peRule) int {
	h := p.hash()
	for ; ; h++ {
		slot := &t.index[h%uint32(len(t.index))]
		switch {
		case *slot == 0 && t.n == maxPERules:
			return -1
		case *slot == 0:
			t.rules[t.n] = *p
			t.n++
			*slot = uint16(t.n)
			return t.n - 1
		case t.rules[*slot-1] == *p:
			return int(*slot - 1)
		}
	}
}

func (p *peRule) hash() uint32 {
	const prime = 0x9e3779b1
	h := uint32(p.cfa)*prime ^ p.saved
	h = h*prime ^ uint32(p.base)<<8 ^ uint32(p.part)
	for _, s := range p.slots {
		h = h*prime ^ uint32(s)
	}
	return h ^ h>>16
}

// resolvePE finds a PE module's rule at a look-up address. Where nothing covers
// the address what to do depends on more than that.
func (u *Unwinder) resolvePE(m *module.Module, i int, addr uint64, exact bool) Rule {
	if i >= noModule {
		return makeRule(RuleNoInfo, i) // its number has no room in a rule
	}
	step := makeRule(RulePE, i)
	pc := addr - m.Bias
	if !exact {
		pc++
	}
	if u.noCache || pc != uint64(uint32(pc)) || pc == 0 {
		return step
	}
	p, ok := compilePE(m.PE, uint32(pc), exact)
	if !ok || p.part == PELeaf && (!exact || m.CFI != nil || m.PE.CountAMD64() == 0) {
		return step
	}
	n := u.pe.add(&p)
	if n < 0 {
		u.flush()
		n = u.pe.add(&p)
	}
	r := makeRule(RuleSlotsPE, i).withIndex(n)
	if exact {
		r.bits |= exactBit
	}
	return r
}

// stepSlotsPE runs a rule of words, all in one block of memory, which is
// checked once.
func (u *Unwinder) stepSlotsPE(p *peRule, regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	if p.base != context.RSP && !known(regs, int(p.base)) {
		return unwind.Unreadable
	}
	cfa := regs.GPR[p.base&15] + uint64(int64(p.cfa))
	hot := mem.Hot()
	at, size := cfa+uint64(int64(p.low)*8)-hot.Addr, uint64(len(hot.Data))
	if at > size || size-at < uint64(p.size)*8 {
		return u.stepWordsPE(p, cfa, regs, mem, b, f)
	}
	block := hot.Data[at : at+uint64(p.size)*8]
	ra := binary.LittleEndian.Uint64(block[8*(-1-int(p.low)):])
	if stop := u.checkPE(p, cfa, ra, regs, b); stop != unwind.StopNone {
		return stop
	}
	for s := p.saved &^ xmmBits; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		regs.GPR[i&15] = binary.LittleEndian.Uint64(block[8*int(p.slots[i-firstPE]):])
	}
	if s := p.saved & xmmBits; s != 0 {
		p.restoreXMM(block, regs)
	}
	regs.Known = regs.Known&p.kept() | p.saved | 1<<context.RSP
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	f.CFA = cfa
	return unwind.StopNone
}

// checkPE checks progress and bounds and notes how the caller was found.
func (u *Unwinder) checkPE(p *peRule, cfa, ra uint64, regs *Registers, b *unwind.Bounds) unwind.Stop {
	if stop := checkSP(regs.GPR[context.RSP], cfa, b); stop != unwind.StopNone {
		return stop
	}
	if stop := checkRA(regs, cfa, ra); stop != unwind.StopNone {
		return stop
	}
	u.trust = peTrust[p.part]
	return unwind.StopNone
}

func (p *peRule) restoreXMM(block []byte, regs *Registers) {
	for s := p.saved & xmmBits; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		at := block[8*int(p.slots[i-firstPE]):]
		regs.XMM[i-16] = context.XMM{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])}
	}
}

// stepWordsPE is stepSlotsPE near the edge of the window or outside its hot
// run: a register whose word is missing becomes unknown.
func (u *Unwinder) stepWordsPE(p *peRule, cfa uint64, regs *Registers, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	ra, ok := mem.Word(cfa - 8)
	if !ok {
		return unwind.Unreadable
	}
	if stop := u.checkPE(p, cfa, ra, regs, b); stop != unwind.StopNone {
		return stop
	}
	s := peStep{regs: regs, mem: mem}
	for saved := p.saved; saved != 0; saved &= saved - 1 {
		i := bits.TrailingZeros32(saved)
		at := cfa + uint64((int64(p.low)+int64(p.slots[i-firstPE]))*8)
		if i < 16 {
			s.load(uint8(i), at)
		} else {
			s.loadXMM(uint8(i-16+6), at)
		}
	}
	regs.Known = regs.Known&p.kept() | 1<<context.RSP
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	f.CFA = cfa
	return unwind.StopNone
}

package amd64

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// The rules of PE functions. A rule is made by one step with symbols as registers and addresses as words of
// the stack: the resulting registers show where each value comes from. So a rule has the same effect as
// StepPE, which made it.

// peRule is a step from one address of a PE function: the CFA is a register plus a distance, the return
// address is the word below it, and each saved register is a word near it. It fits a cache line.
type peRule struct {
	cfa   int32  // the CFA's distance from the base register, bytes
	saved uint32 // the saved registers, as bits of Registers.Known
	kept  uint32 // the registers the function preserves
	low   int16  // the lowest word read, words from the CFA
	size  uint16 // words from there to the end of the highest
	base  uint8
	trust unwind.Trust
	slots [peSlots]uint16 // words from low, by peSlot: nearRegs, then XMM6 to XMM15
}

// peSlots is the number of registers that a Windows function preserves, except RSP.
const peSlots = 8 + 10

// nearRegs are the general registers with slots, in the order of the slots.
var nearRegs = [8]uint8{context.RSI, context.RDI, context.RBX, context.RBP, context.R12,
	context.R13, context.R14, context.R15}

// peSlot maps a register's bit in Registers.Known to its index in slots, -1 for registers that no function
// preserves.
var peSlot = func() (at [26]int8) {
	for i := range at {
		at[i] = int8(max(i-8, -1)) // XMM registers
		if i < 16 {
			at[i] = int8(slices.Index(nearRegs[:], uint8(i)))
		}
	}
	return at
}()

// nearAbove is the size in bytes of the home area above the CFA, where a function may also save registers.
// Slots of a RuleNear are words of a slotBlock that ends there.
const nearAbove = 32

// A symbol represents a register's value at the start of the step; a symbol plus a distance is an address. A
// word of the stack is represented by its own address with the mark isLoaded. Distances stay below 1<<46: 33
// links of 127 allocations of 4 GiB.
const isLoaded = 1 << 63

func symbol(reg int) uint64 { return uint64(reg)<<58 | 1<<57 }

// ofSymbol returns the register whose symbol is close to v.
func ofSymbol(v uint64) int { return int(v >> 58 & 15) }

var symbols = func() (r Registers) {
	for i := range r.GPR {
		r.GPR[i] = symbol(i)
	}
	r.Known = context.AMD64All
	return r
}()

// compilePE makes the rule for an RVA in t. It returns false if the step cannot be expressed in a few words:
// bad unwind data, a machine frame, two frame registers, or one that is itself read from the stack.
func compilePE(t *peamd64.Table, at unwind.Address) (p peRule, ok bool) {
	regs := symbols
	s := peStep{table: t, pc: uint32(at.IP), regs: &regs, symbolic: true}
	return s.rule(s.run(at))
}

// rule returns the rule of a symbolic step that has ended with stop.
func (s *peStep) rule(stop unwind.Stop) (p peRule, ok bool) {
	if stop != unwind.StopNone || s.res.Machine || s.deep {
		return p, false
	}
	p = peRule{trust: peTrust[s.res.Part], kept: s.kept()}
	return p, p.frame(s.regs, s.needs) && p.saves(s.regs)
}

// frame sets the CFA from the symbolic stack pointer. needs are the registers that the step has to know.
func (p *peRule) frame(regs *Registers, needs uint32) bool {
	cfa := regs.GPR[context.RSP]
	base := ofSymbol(cfa)
	off := int64(cfa - symbol(base))
	p.base, p.cfa = uint8(base), int32(off)
	return cfa&isLoaded == 0 && int64(p.cfa) == off && needs&^(1<<base) == 0 && regs.RIP == cfa-8|isLoaded
}

// saves sets the places of the saved registers.
func (p *peRule) saves(regs *Registers) bool {
	cfa, off := regs.GPR[context.RSP], [26]int{} // words from the CFA
	low, high := -1, 0
	note := func(i int, v uint64) bool {
		bytes := int64(v&^isLoaded - cfa)
		if p.kept>>i&1 == 0 || bytes&7 != 0 || bytes < math.MinInt16*8 || bytes > math.MaxInt16*8 {
			return false
		}
		off[i] = int(bytes / 8)
		low, high = min(low, off[i]), max(high, off[i]+1+i/16)
		p.saved |= 1 << i
		return true
	}
	for i, v := range regs.GPR {
		if v&isLoaded != 0 && !note(i, v) {
			return false
		}
	}
	for i := range regs.XMM {
		if v := regs.XMM[i][0]; v != 0 && !note(16+i, v) {
			return false
		}
	}
	p.low, p.size = int16(low), uint16(high-low)
	for s := p.saved; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		p.slots[peSlot[i]] = uint16(off[i] - low)
	}
	return high-low <= math.MaxUint16
}

// pack turns a rule into one of the kinds that need no place in the table, or returns false if it does not
// fit. The rules of 99 of 100 functions of coreclr.dll fit.
func (p *peRule) pack(module int, a unwind.Address) (Rule, bool) {
	words := p.cfa >> 3
	k := RuleNear
	switch {
	case p.base == context.RSP && p.trust == unwind.TrustEpilog:
		k = RuleNearEpilog
	case p.trust == unwind.TrustLeaf:
		k = RuleNearLeaf
	case p.trust != unwind.TrustUnwindInfo:
		return Rule{}, false
	case p.base == context.RBP:
		k = RuleNearBP
	case p.base != context.RSP:
		return Rule{}, false
	}
	if p.kept != windowsKept ||
		p.saved>>16 != 0 || p.cfa&7 != 0 || words < 0 || words > maxNear {
		return Rule{}, false
	}
	r := makeRule(k, module)
	r.bits |= uint64(words) << offsetShift
	if a.Exact {
		r.bits |= exactBit
	}
	for s := p.saved; s != 0; s &= s - 1 {
		at := peSlot[bits.TrailingZeros32(s)]
		slot := nearAbove/8 - (int(p.low) + int(p.slots[at]))
		if slot < 1 || slot > maxSlot {
			return Rule{}, false
		}
		r.bits |= uint64(slot) << (nearShift + 4*at)
	}
	return r, true
}

// maxPERules is how many rules that cannot be packed an unwinder stores. Functions share them. When the table
// is full, the cache is emptied.
const maxPERules = 512

// peRules are the rules in use, without duplicates. index is a hash table of their numbers plus one.
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

// add returns the number of a rule, -1 if there is no room for it.
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
	for _, s := range p.slots {
		h = h*prime ^ uint32(s)
	}
	h = h*prime ^ uint32(p.base)<<8 ^ uint32(p.trust)
	return h ^ h>>16
}

// resolvePE makes the rule for an address of a PE module. The rule is RulePE if the step depends on more than
// the address, for example if no unwind data covers it. Then each step decides.
func (u *Unwinder) resolvePE(m *module.Module, i int, a unwind.Address) Rule {
	if i >= noModule {
		return makeRule(RuleNoInfo, i) // the module's index does not fit in a rule
	}
	step, t := makeRule(RulePE, i), m.PE.AMD64()
	pc, addr := a.IP-m.Bias, a.Lookup()
	if pc != uint64(uint32(pc)) || pc == 0 {
		return step
	}
	if a.Exact {
		if r, ok := inPEThunk(t, i, uint32(pc)); ok {
			return r
		}
	}
	if u.noCache || u.hookPE(t, uint32(addr-m.Bias)) != nil {
		return step
	}
	p, ok := compilePE(t, unwind.Address{IP: pc, Exact: a.Exact})
	if !ok || p.trust == unwind.TrustLeaf && !u.provenLeaf(m, a) {
		return step
	}
	if r, ok := p.pack(i, a); ok {
		return r
	}
	n := u.pe.add(&p)
	if n < 0 {
		u.flush()
		n = u.pe.add(&p)
	}
	r := makeRule(RuleSlotsPE, i).withIndex(n)
	if a.Exact {
		r.bits |= exactBit
	}
	return r
}

// provenLeaf reports whether the code proves the leaf rule at an interrupted ip.
func (u *Unwinder) provenLeaf(m *module.Module, a unwind.Address) bool {
	return a.Exact && m.PE.AMD64().Len() != 0 && u.silentCFI(m, a.IP) &&
		(straightLeaf(m.Bytes(a.IP, maxStraight)) || u.proves(m, a.IP, &symbols, nil) == leafProven)
}

// silentCFI reports whether a PE module's call frame information, if any, does not cover an address.
func (u *Unwinder) silentCFI(m *module.Module, addr uint64) bool {
	return m.CFI == nil || u.machine.Row(m.CFI, addr-m.CFIBias(), &u.row) == cfi.NoInfo
}

// stepTable is stepHot for a stored rule, whose number r holds.
func (u *Unwinder) stepTable(r Rule, regs *Registers, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) bool {
	p := &u.pe.rules[r.index()&(maxPERules-1)]
	hot, n := mem.Hot(), uint64(p.size)*8
	cfa := regs.GPR[p.base&15] + uint64(int64(p.cfa))
	at, size := cfa+uint64(int64(p.low)*8)-hot.Addr, uint64(len(hot.Data))
	if !known(regs, int(p.base)) || at > size || size-at < n ||
		checkSP(regs.GPR[context.RSP], cfa, b) != unwind.StopNone {
		return false
	}
	block := hot.Data[at : at+n]
	ra := binary.LittleEndian.Uint64(block[8*(-1-int(p.low)):])
	if checkRA(regs, cfa, ra) != unwind.StopNone {
		return false
	}
	f.CFA, u.trust = cfa, p.trust
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	p.restore(block, regs)
	return true
}

// restore reads the saved registers. They are all in block.
func (p *peRule) restore(block []byte, regs *Registers) {
	for s := p.saved & 0xffff; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s) & 15
		at := 8 * int(p.slots[peSlot[i]])
		regs.GPR[i] = binary.LittleEndian.Uint64(block[at : at+8])
	}
	for s := p.saved >> 16; s != 0; s &= s - 1 {
		i := bits.TrailingZeros32(s)
		at := 8 * int(p.slots[8+i])
		x := block[at : at+16]
		regs.XMM[i] = context.XMM{binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(x[8:])}
	}
	regs.Known = regs.Known&p.kept | p.saved | 1<<context.RSP
}

package arm64

import (
	"encoding/binary"
	"math/bits"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// stepHot executes the most common rules, if everything they read is in one block of the hot run and no
// special case applies. Otherwise it does nothing and returns false. It avoids the calls and checks of
// stepRare.
func (u *Unwinder) stepHot(r *Rule, regs *Registers, exact bool, mem *memory.Window,
	b *unwind.Bounds, f *unwind.Frame) bool {
	if r.kind != RuleSlots && r.kind != RuleSlotsPE || r.saved&rareFlags != 0 {
		return false
	}
	hot := mem.Hot()
	from, ok := base(regs, r.base)
	cfa := from + uint64(int64(r.cfa))
	at, size := from+uint64(int64(r.low)*8)-hot.Addr, uint64(len(hot.Data))
	if !ok || at > size || size-at < uint64(r.size)*8 || checkSP(regs.Sp, cfa, b) != unwind.StopNone {
		return false
	}
	block := hot.Data[at : at+uint64(r.size)*8]
	lr := regs.X[regLR]
	if r.saved&(1<<slotLR) != 0 {
		i := 8 * (int(r.slots[slotLR]) - int(r.low))
		lr = binary.LittleEndian.Uint64(block[i : i+8])
	} else if !exact || !known(regs, regLR) {
		return false
	}
	pc, trust := lr, unwind.TrustUnwindInfo
	if r.kind == RuleSlots {
		pc, trust = stripPAC(lr), unwind.TrustCFI
	}
	if checkRA(regs, cfa, pc) != unwind.StopNone {
		return false
	}
	describe(r, regs, exact, f)
	f.CFA, u.trust = cfa, trust
	regs.X[regLR], regs.PC, regs.Sp = lr, pc, cfa
	// Last, so that few values must survive the call.
	regs.Known = regs.Known&nonvolatile | 1<<regLR |
		r.restoreBlock(r.saved&(slotsMask&^(1<<slotLR)), block, regs)
	return true
}

// restoreBlock reads the slots s, all in block, and returns their registers as bits of Known.
func (r *Rule) restoreBlock(s uint32, block []byte, regs *Registers) uint64 {
	low := int(r.low)
	for x := s & (1<<numX - 1); x != 0; x &= x - 1 {
		i := bits.TrailingZeros32(x) & 15
		at := 8 * (int(r.slots[i]) - low)
		regs.X[firstX+i] = binary.LittleEndian.Uint64(block[at : at+8])
	}
	have := uint64(s&(1<<numX-1)) << firstX
	if vectors := s >> numX; vectors != 0 {
		have |= uint64(vectors) << 32
		for ; vectors != 0; vectors &= vectors - 1 {
			i := bits.TrailingZeros32(vectors) & 7
			at := 8 * (int(r.slots[numX+i]) - low)
			regs.D[i] = binary.LittleEndian.Uint64(block[at : at+8])
		}
	}
	return have
}

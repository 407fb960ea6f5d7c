package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// stepHot executes the most common rules, if everything they read is in one block of the hot run and no
// special case applies. Otherwise it does nothing and returns false. It avoids the calls and checks of
// stepRare, a fifth of a walk's time.
func (u *Unwinder) stepHot(r Rule, regs *Registers, exact bool, mem *memory.Window,
	b *unwind.Bounds, f *unwind.Frame) bool {
	reg := context.RSP
	switch r.Kind() {
	case RuleSP:
	case RuleBP:
		if reg = context.RBP; !known(regs, reg) {
			return false
		}
	case RuleNear:
		u.by = unwind.TrustUnwindInfo
		return r.exactPE() == exact && stepNear(r, windowsKept, regs, exact, mem, b, f)
	case RuleSlotsPE:
		return r.exactPE() == exact && u.stepTable(&u.pe.rules[r.index()&(maxPERules-1)], r, regs, mem, b, f)
	default:
		return false
	}
	hot, cfa := mem.Hot(), regs.GPR[reg]+r.offset()
	at, size := cfa-slotBlock-hot.Addr, uint64(len(hot.Data))
	if size < slotBlock || at > size-slotBlock || checkSP(regs.GPR[context.RSP], cfa, b) != unwind.StopNone {
		return false
	}
	block := (*[slotBlock]byte)(hot.Data[at : at+slotBlock])
	ra := binary.LittleEndian.Uint64(block[slotBlock-8:])
	if checkRA(regs, cfa, ra) != unwind.StopNone {
		return false
	}
	describe(r, regs, exact, f)
	f.CFA, u.by = cfa, unwind.TrustCFI
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	// Last, so that no value must survive the call.
	regs.Known = regs.Known&nonvolatile | restoreSlots(slotBits(r.slots()), block, regs)
	return true
}

// slotBlock is the size in bytes, below the CFA, of the memory that a rule's slots can refer to.
const slotBlock = 8 * (maxSlot + 1)

// slotBits are a rule's slots in the order of nearRegs.
func slotBits(s uint64) uint64 { return s&0xff | s>>8<<16 }

// slot reads the word k words below the block's end, 1 <= k <= maxSlot.
func slot(block *[slotBlock]byte, k uint64) uint64 {
	i := (slotBlock - 8*k) & (slotBlock - 8)
	return binary.LittleEndian.Uint64(block[i : i+8])
}

// stepNear is stepHot for a RuleNear of a function that preserves the registers in kept.
func stepNear(r Rule, kept uint32, regs *Registers, exact bool, mem *memory.Window,
	b *unwind.Bounds, f *unwind.Frame) bool {
	off, slots := r.near()
	hot, cfa := mem.Hot(), regs.GPR[context.RSP]+off
	at, size := cfa+nearAbove-slotBlock-hot.Addr, uint64(len(hot.Data))
	if size < slotBlock || at > size-slotBlock || checkSP(regs.GPR[context.RSP], cfa, b) != unwind.StopNone {
		return false
	}
	block := (*[slotBlock]byte)(hot.Data[at : at+slotBlock])
	ra := binary.LittleEndian.Uint64(block[slotBlock-nearAbove-8:])
	if checkRA(regs, cfa, ra) != unwind.StopNone {
		return false
	}
	describe(r, regs, exact, f)
	f.CFA = cfa
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	regs.Known = regs.Known&kept | 1<<context.RSP | restoreSlots(slots, block, regs)
	return true
}

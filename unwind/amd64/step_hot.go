package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// stepHot executes a rule of slots, of form fm, if everything it reads is in one block of the hot run and no
// special case applies. Otherwise it does nothing and returns false. It avoids the calls and checks of
// stepRare, a fifth of a walk's time.
func stepHot(r Rule, fm *form, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) bool {
	if fm.slots == 0 || r.Kind() >= RuleNear && r.exactPE() != exact {
		return false
	}
	hot, cfa := mem.Hot(), regs.GPR[context.RSP]
	if r.bits&15 == fm.bp {
		if cfa = regs.GPR[context.RBP]; !known(regs, context.RBP) || cfa < regs.GPR[context.RSP] {
			return false
		}
	}
	cfa += r.bits >> offsetShift & fm.offsets << 3
	at, size := cfa+fm.above-slotBlock-hot.Addr, uint64(len(hot.Data))
	if size < slotBlock || at > size-slotBlock || checkSP(regs.GPR[context.RSP], cfa, b) != unwind.StopNone {
		return false
	}
	block := (*[slotBlock]byte)(hot.Data[at : at+slotBlock])
	ra := slot(block, 1+fm.above/8)
	if checkRA(regs, cfa, ra) != unwind.StopNone {
		return false
	}
	describe(r, regs, exact, f)
	f.CFA = cfa
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	// Last, so that no value must survive the call.
	regs.Known = regs.Known&fm.kept | 1<<context.RSP | restoreSlots(r.bits&fm.slots>>nearShift, block, regs)
	return true
}

// slotBlock is the size in bytes of the memory that a rule's slots can refer to.
const slotBlock = 8 * (maxSlot + 1)

// slot reads the word k words below the block's end, 1 <= k <= maxSlot.
func slot(block *[slotBlock]byte, k uint64) uint64 {
	i := (slotBlock - 8*k) & (slotBlock - 8)
	return binary.LittleEndian.Uint64(block[i : i+8])
}

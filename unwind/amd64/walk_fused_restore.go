package amd64

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
)

// restoreSlots reads the registers of nearRegs that have slots, and returns which those are. It is unrolled,
// because a loop over the slots takes twice the time.
func restoreSlots(s uint64, block *[slotBlock]byte, regs *Registers) (have uint32) {
	if k := s & 15; k != 0 {
		regs.GPR[context.RSI] = slot(block, k)
		have |= 1 << context.RSI
	}
	if k := s >> 4 & 15; k != 0 {
		regs.GPR[context.RDI] = slot(block, k)
		have |= 1 << context.RDI
	}
	if k := s >> 8 & 15; k != 0 {
		regs.GPR[context.RBX] = slot(block, k)
		have |= 1 << context.RBX
	}
	if k := s >> 12 & 15; k != 0 {
		regs.GPR[context.RBP] = slot(block, k)
		have |= 1 << context.RBP
	}
	if s >>= 16; s != 0 {
		if k := s & 15; k != 0 {
			regs.GPR[context.R12] = slot(block, k)
			have |= 1 << context.R12
		}
		if k := s >> 4 & 15; k != 0 {
			regs.GPR[context.R13] = slot(block, k)
			have |= 1 << context.R13
		}
		if k := s >> 8 & 15; k != 0 {
			regs.GPR[context.R14] = slot(block, k)
			have |= 1 << context.R14
		}
		if k := s >> 12 & 15; k != 0 {
			regs.GPR[context.R15] = slot(block, k)
			have |= 1 << context.R15
		}
	}
	return have
}

// restore reads the saved registers except RBP, whose value fused steps track. Each value comes from the
// frame nearest to the caller that saved the register.
func (t *section) restore(n int, fm *form, regs *Registers, mem *memory.Window) {
	const rbp = 15 << (slotShift + 4)
	want, have := fm.slots&^rbp, regs.Known&fm.kept|1<<context.RSP
	data, low := t.hot.Data, t.hot.Addr
	for want != 0 && n > 0 {
		n--
		s := t.log[n&(logSize-1)] & want
		if s == 0 {
			continue
		}
		want &^= nibbles(s)
		s >>= nearShift
		end := t.out[n].CFA + fm.above
		if at, size := end-slotBlock-low, uint64(len(data)); size >= slotBlock && at <= size-slotBlock {
			have |= restoreSlots(s, (*[slotBlock]byte)(data[at:]), regs)
		} else {
			have = restoreFar(have, s, end, regs, mem)
		}
	}
	regs.Known = have
}

// nibbles returns 15 for each slot of s that is not 0, and 0 for all others.
func nibbles(s uint64) uint64 {
	s |= s >> 1
	s |= s >> 2
	return s & (0x11111111 << nearShift) * 15
}

// restoreFar is restoreSlots if not all slots are in the hot run, as at its edges. A register whose word is
// missing becomes unknown. It returns have, the known registers, updated.
func restoreFar(have uint32, s, end uint64, regs *Registers, mem *memory.Window) uint32 {
	for s != 0 {
		shift := uint64(bits.TrailingZeros64(s)) &^ 3
		reg := nearRegs[shift>>2&7] & 15
		v, ok := mem.Word(end - 8*(s>>shift&15))
		s &^= 15 << shift
		have &^= 1 << reg
		if ok {
			regs.GPR[reg] = v
			have |= 1 << reg
		}
	}
	return have
}

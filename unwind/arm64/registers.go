package arm64

import "github.com/seedwalk/seedwalk/context"

// Registers is the state of a frame.
type Registers = context.ARM64

// Register numbers that this package uses.
const (
	regFP = 29
	regLR = 30
	regSP = 31
)

// nonvolatile are the registers that a function preserves, and x30, which contains the caller's return
// address; x18 belongs to the platform and never changes.
const nonvolatile = 0xff<<32 | 0xfff<<19 | 1<<18

func known(regs *Registers, reg int) bool { return regs.Known>>reg&1 != 0 }

// base returns the value of register reg, 31 being SP.
func base(regs *Registers, reg uint8) (uint64, bool) {
	if reg == regSP {
		return regs.Sp, true
	}
	return regs.X[reg%regSP], known(regs, int(reg%regSP))
}

// setSlot sets the register of slot i: x19-x30, then d8-d15.
func setSlot(regs *Registers, i int, v uint64) {
	if i < numX {
		regs.X[firstX+i] = v
	} else {
		regs.D[(i-numX)&7] = v
	}
}

// slotBit returns slot i's bit in Registers.Known.
func slotBit(i int) uint64 {
	if i < numX {
		return 1 << (firstX + i)
	}
	return 1 << (32 + i - numX)
}

// stripPAC removes the pointer authentication code from a signed address: bit 55 selects the half of the
// address space.
func stripPAC(v uint64) uint64 {
	if v>>55&1 != 0 {
		return v | 0xffff<<48
	}
	return v &^ (0xffff << 48)
}

// stripUser removes the code from an address that Windows unwind data mark as signed. User addresses have 48
// bits; unlike stripPAC it never returns a kernel address, which a user stack cannot contain.
func stripUser(v uint64) uint64 { return v &^ (0xffff << 48) }

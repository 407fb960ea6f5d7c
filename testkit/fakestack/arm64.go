package fakestack

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
)

// arm64Frame writes a frame and returns the address of its return address. The function
// stores x29 and x30 as a frame record, below 16 bytes of its own. If it keeps a frame pointer,
// that points to the record. The function also allocates 16 bytes below the record. So the
// caller's SP is not at the end of the record.
func (b *builder) arm64Frame(k Kind) (slot uint64) {
	if k == Frameless {
		return 0 // x30 holds it
	}
	b.sp -= 32
	b.put(b.sp, b.fp)
	b.put(b.sp+8, b.lr)
	if b.lr != 0 {
		slot = b.sp + 8
	}
	if hasPointer(k) {
		b.fp = b.sp
		b.sp -= 16
	}
	return slot
}

// arm64Registers: x30 holds the leaf's return address, as it does until the
// leaf calls.
func arm64Registers(c *clr.Capture, leaf *Frame, lr uint64) {
	c.Regs.Arch = context.ArchARM64
	r := &c.Regs.ARM64
	r.PC, r.Sp, r.X[29], r.X[30], r.Known = leaf.IP, leaf.SP, leaf.FP, lr, 1<<31-1
}

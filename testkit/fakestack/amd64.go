package fakestack

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
)

// amd64Frame lays a frame and returns where its return address is: the call
// pushes it, the function pushes rbp, makes it the frame pointer if it keeps
// one, and takes 16 bytes.
func (b *builder) amd64Frame(k Kind) (slot uint64) {
	if b.lr != 0 {
		b.sp -= 8
		b.put(b.sp, b.lr)
		slot = b.sp
	}
	if k == Frameless {
		return slot
	}
	b.sp -= 8
	b.put(b.sp, b.fp)
	if hasPointer(k) {
		b.fp = b.sp
		b.sp -= 16
	}
	return slot
}

func amd64Registers(c *clr.Capture, leaf *Frame) {
	c.Regs.Arch = context.ArchAMD64
	r := &c.Regs.AMD64
	r.RIP, r.GPR[context.RSP], r.GPR[context.RBP], r.Known = leaf.IP, leaf.SP, leaf.FP, 1<<16-1
}

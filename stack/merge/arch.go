package merge

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// arch describes calls and frames of an architecture, as far as a merge depends on them.
type arch struct {
	// callPushes is the number of bytes a call pushes: the return address, or 0 if it goes to a register.
	// With 0, a frame may have the same SP as its caller.
	callPushes uint64
	// frameRecord: every managed method links a frame record (the caller's frame pointer and the return
	// address), which may lie anywhere in its frame. A guessed step then finds only a lower limit of its
	// caller's SP.
	frameRecord bool
}

var arches = [...]arch{
	context.NoArch:    {},
	context.ArchAMD64: {callPushes: 8},
	context.ArchARM64: {frameRecord: true},
}

// hooks is a walker that recognizes return hooks, such as the CLR's hijack stub, by their code.
type hooks interface {
	InReturnHook(a unwind.Address) bool
}

// climbs reports whether a step from one frame to another goes up the stack. If calls push nothing, a frame
// interrupted before it stored anything has the same SP as its caller.
func (a *arch) climbs(from, to *unwind.State) bool {
	sp, above := from.Regs.SP(), to.Regs.SP()
	return above > sp || a.callPushes == 0 && from.Exact && above == sp && to.Regs.IP() != from.Regs.IP()
}

// returnSlot is the address where a frame keeps its return address; the step from that frame arrived at to.
func (a *arch) returnSlot(from, to *context.Registers) uint64 {
	if a.frameRecord {
		return from.FP() + 8
	}
	return to.SP() - a.callPushes
}

// place points to those registers of the merge's current frame that an architecture names differently.
type place struct{ ip, sp, fp *uint64 }

func placeOf(r *context.Registers) place {
	if r.Arch == context.ArchARM64 {
		return place{&r.ARM64.PC, &r.ARM64.Sp, &r.ARM64.X[29]}
	}
	return place{&r.AMD64.RIP, &r.AMD64.GPR[context.RSP], &r.AMD64.GPR[context.RBP]}
}

// ip, sp and fp are registers of the merge's current frame.
func (m *Merger) ip() uint64 { return *m.here.ip }
func (m *Merger) sp() uint64 { return *m.here.sp }
func (m *Merger) fp() uint64 { return *m.here.fp }

package merge

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// arch is what a merge must know of an architecture's calls and frames.
type arch struct {
	// callPushes is how many bytes a call pushes: the return address, or nothing
	// where it goes to a register, so that a frame may have its caller's SP.
	callPushes uint64
	// frameRecord says that every managed method links a frame record, the
	// caller's frame pointer and the return address, which may lie anywhere in
	// its frame. A guessed step then finds only the lowest its caller's SP can
	// be.
	frameRecord bool
}

var arches = [...]arch{
	context.NoArch:    {},
	context.ArchAMD64: {callPushes: 8},
	context.ArchARM64: {frameRecord: true},
}

// return hooks is a walker that knows return hooks, the CLR's hijack stub among them, by
// their code.
type hooks interface {
	InReturnHook(a unwind.Address) bool
}

// climbs reports whether a step from one frame to another goes up the stack.
// Where calls push nothing a frame that was interrupted before it stored
// anything has its caller's SP.
func (a *arch) climbs(from, to *unwind.State) bool {
	sp, above := from.Regs.SP(), to.Regs.SP()
	return above > sp || a.callPushes == 0 && from.Exact && above == sp && to.Regs.IP() != from.Regs.IP()
}

// returnSlot is where the frame from, left to to, kept its return address.
func (a *arch) returnSlot(from, to *context.Registers) uint64 {
	if a.frameRecord {
		return from.FP() + 8
	}
	return to.SP() - a.callPushes
}

// place is where the merge stands: parts of its registers, found once for its
// architecture.
type place struct{ ip, sp, fp *uint64 }

func placeOf(r *context.Registers) place {
	if r.Arch == context.ArchARM64 {
		return place{&r.ARM64.PC, &r.ARM64.Sp, &r.ARM64.X[29]}
	}
	return place{&r.AMD64.RIP, &r.AMD64.GPR[context.RSP], &r.AMD64.GPR[context.RBP]}
}

// ip, sp and fp are those of the frame the merge stands at.
func (m *Merger) ip() uint64 { return *m.here.ip }
func (m *Merger) sp() uint64 { return *m.here.sp }
func (m *Merger) fp() uint64 { return *m.here.fp }

package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// tables replaces package clr/contract in a world: the runtime's own unwind data of managed
// code on x86-64, and the original return address that a thread keeps for a hijacked
// one. That address may be stale.
type tables struct{ w *World }

var _ merge.Managed = tables{}

// Managed returns the runtime's tables of the world.
func (w *World) Managed() merge.Managed { return tables{w} }

// preservedAMD64 is the part of Known that stays known across a call.
func (t tables) preservedAMD64() (known uint32) {
	for _, r := range t.w.Host.preserved() {
		known |= 1 << r
	}
	if t.w.Format() == image.PE {
		known |= 0x3ff << 16
	}
	return known
}

// Step implements merge.Managed.
func (t tables) Step(s *unwind.State, mem *memory.Window, _ *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	regs := &s.Regs.AMD64
	*f = unwind.Frame{IP: regs.RIP, SP: regs.SP(), FP: regs.FP(), Module: -1, Kind: unwind.KindManaged,
		Exact: s.Exact, Trust: s.Trust}
	im, fn := t.w.CLR.Codes.Find(s.Address().Lookup())
	if fn == nil {
		return unwind.NoInfo
	}
	st := machine.FromAMD64(regs)
	if _, ok := machine.StepRow(image.AMD64, im, fn, &st, mem.Word); !ok {
		return unwind.Unreadable
	}
	known := regs.Known & t.preservedAMD64()
	*regs = st.AMD64()
	regs.Known = known | 1<<context.RSP
	f.CFA = regs.SP()
	s.Reached(false, unwind.TrustUnwindInfo)
	return unwind.StopNone
}

// Hijacked implements merge.Managed.
func (t tables) Hijacked(thread, slot uint64) (ra uint64, ok bool) {
	if th := t.w.CLR.Thread(clr.ThreadID(thread)); th != nil {
		return th.Hijacked(slot)
	}
	return 0, false
}

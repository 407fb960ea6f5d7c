package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// arm64Machine is the machine of ARM64.
type arm64Machine struct {
	u        *arm64.Unwinder
	modules  *module.Table // u's
	at       *place
	contract ManagedARM64 // nil: there are no tables
	regs     context.ARM64
	to       context.ARM64 // regs after a step under way
}

func (a *arm64Machine) setTable(t *module.Table) {
	if t != nil {
		a.u.SetTable(t)
		a.modules = t
	}
}

func (a *arm64Machine) table() *module.Table           { return a.modules }
func (a *arm64Machine) stepTrust() unwind.Trust        { return a.u.StepTrust() }
func (a *arm64Machine) inHijackStub(uint64, bool) bool { return false }

// tell says where the registers are.
func (a *arm64Machine) tell() { *a.at = place{a.regs.PC, a.regs.SP(), a.regs.FP()} }

func (a *arm64Machine) marker(f *clr.SnapshotFrame) {
	a.regs = f.ARM64()
	a.tell()
}

func (a *arm64Machine) leaf(c *clr.Capture, s *seed.Specials, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame, o *seed.Outcome) {
	a.regs = c.ARM64
	s.SeekARM64(a.u, &a.regs, mem, b, out, o)
	a.tell()
}

func (a *arm64Machine) walk(exact bool, trust unwind.Trust, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (int, bool, unwind.Stop) {
	n, exact, stop := a.u.Walk(&a.regs, exact, trust, mem, b, out)
	a.tell()
	return n, exact, stop
}

func (a *arm64Machine) step(exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Trust, unwind.Stop) {
	exact, stop := a.u.Step(&a.regs, exact, mem, b, f)
	a.tell()
	return exact, a.u.StepTrust(), stop
}

func (a *arm64Machine) sure(thread uint64, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (unwind.Trust, bool) {
	a.to = a.regs
	trust, stop := a.contract.StepManaged(&a.to, exact, mem, f)
	if stop != unwind.StopNone || !a.climbs(exact) || b.High != 0 && a.to.SP() > b.High {
		return unwind.TrustNone, false
	}
	if entered(a.modules, a.to.PC) {
		a.unhijack(thread, mem)
	}
	a.regs = a.to
	a.tell()
	return trust, true
}

// climbs reports whether the step under way goes up the stack. Only a frame
// that was interrupted before it stored anything has its caller's SP.
func (a *arm64Machine) climbs(exact bool) bool {
	return a.to.SP() > a.regs.SP() || exact && a.to.SP() == a.regs.SP() && a.to.PC != a.regs.PC
}

// unhijack puts the true return address in the place of the hijack stub's. The
// slot the runtime replaced is the second word of the frame record.
func (a *arm64Machine) unhijack(thread uint64, mem *memory.Window) {
	slot := a.regs.FP() + 8
	if v, ok := mem.Word(slot); !ok || v != a.to.PC {
		return
	}
	if ra, ok := a.contract.Hijacked(thread, slot); ok {
		a.to.PC, a.to.X[30] = ra, ra
	}
}

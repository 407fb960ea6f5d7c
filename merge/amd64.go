package merge

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// amd64Machine is the machine of x86-64.
type amd64Machine struct {
	u        *amd64.Unwinder
	at       *place
	contract Managed // nil: there are no tables
	regs     context.AMD64
	to       context.AMD64 // regs after a step under way
}

func (a *amd64Machine) setTable(t *module.Table)                { a.u.SetTable(t) }
func (a *amd64Machine) table() *module.Table                    { return a.u.Table() }
func (a *amd64Machine) stepTrust() unwind.Trust                 { return a.u.StepTrust() }
func (a *amd64Machine) inHijackStub(ip uint64, exact bool) bool { return a.u.InLanding(ip, exact) }

// tell says where the registers are.
func (a *amd64Machine) tell() { *a.at = place{a.regs.RIP, a.regs.SP(), a.regs.FP()} }

func (a *amd64Machine) marker(f *clr.SnapshotFrame) {
	a.regs = f.AMD64()
	a.tell()
}

func (a *amd64Machine) leaf(c *clr.Capture, s *seed.Specials, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame, o *seed.Outcome) {
	a.regs = c.Regs
	s.SeekAMD64(a.u, &a.regs, mem, b, out, o)
	a.tell()
}

func (a *amd64Machine) walk(exact bool, trust unwind.Trust, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (int, bool, unwind.Stop) {
	n, exact, stop := a.u.Walk(&a.regs, exact, trust, mem, b, out)
	a.tell()
	return n, exact, stop
}

func (a *amd64Machine) step(exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (bool, unwind.Trust, unwind.Stop) {
	exact, stop := a.u.Step(&a.regs, exact, mem, b, f)
	a.tell()
	return exact, a.u.StepTrust(), stop
}

func (a *amd64Machine) sure(thread uint64, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (unwind.Trust, bool) {
	a.to = a.regs
	trust, stop := a.contract.StepManaged(&a.to, exact, mem, f)
	if stop != unwind.StopNone || a.to.SP() <= a.regs.SP() || b.High != 0 && a.to.SP() > b.High {
		return unwind.TrustNone, false
	}
	if entered(a.table(), a.to.RIP) {
		if ra, ok := a.contract.Hijacked(thread, a.to.SP()-8); ok {
			a.to.RIP = ra
		}
	}
	a.regs = a.to
	a.tell()
	return trust, true
}

// callerSP asks the tables for the caller's stack pointer and steps nowhere.
func (a *amd64Machine) callerSP(exact bool, mem *memory.Window, f *unwind.Frame) (sp uint64, ok bool) {
	if a.contract == nil {
		return 0, false
	}
	a.to = a.regs
	_, stop := a.contract.StepManaged(&a.to, exact, mem, f)
	return a.to.SP(), stop == unwind.StopNone
}

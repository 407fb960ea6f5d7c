package managed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// StepManaged is Step for callers that hold registers of x86-64.
func (t *Tables) StepManaged(regs *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (trust unwind.Trust, stop unwind.Stop) {
	t.regs = context.Registers{Arch: context.ArchAMD64, AMD64: *regs}
	t.state = unwind.State{Regs: &t.regs, Exact: exact, Trust: unwind.TrustCLR}
	if stop = t.Step(&t.state, mem, f); stop == unwind.StopNone {
		*regs, trust = t.regs.AMD64, t.state.Trust
	}
	return trust, stop
}

package amd64

import (
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// stepPE stands in until the PE stepper is here (step_pe.go).
func (u *Unwinder) stepPE(m *module.Module, regs *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (callerExact bool, stop unwind.Stop) {
	return false, unwind.Unsupported
}

package sampler

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// CaptureOf returns the stack of an event or of a copy that a thread made, on a system that Go calls system.
// Only registers that a call preserves are known, with their values when the probe was called.
func CaptureOf(a context.Arch, system string, r *probe.Record) walk.Capture {
	c := walk.Capture{TID: r.TID, Called: true, Regs: target.Called(a, r.Regs, system),
		Stack: memory.Run{Addr: r.StackAddr, Data: r.Stack}, Cut: r.Flags&probe.Cut != 0, Extra: r.Extra,
		Low: r.StackAddr, High: r.StackAddr + uint64(len(r.Stack))}
	if r.Flags&(probe.Foreign|probe.Cut) != 0 {
		c.Low, c.High = 0, 0
	}
	return c
}

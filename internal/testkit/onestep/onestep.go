// Package onestep makes single steps on the registers of one architecture, for
// tests above both walkers.
package onestep

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// AMD64 makes a step of u from r, which becomes the caller: whether it was
// interrupted, and how surely it was found.
func AMD64(u *amd64.Unwinder, r *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (bool, unwind.Trust, unwind.Stop) {
	regs := context.FromAMD64(*r)
	s := unwind.State{Regs: &regs, Exact: exact, Trust: unwind.TrustContext}
	stop := u.Step(&s, mem, nil, f)
	*r = regs.AMD64
	return s.Exact, s.Trust, stop
}

// ARM64 makes a step of u from r, which becomes the caller: whether it was
// interrupted, and how surely it was found.
func ARM64(u *arm64.Unwinder, r *context.ARM64, exact bool, mem *memory.Window, f *unwind.Frame) (bool, unwind.Trust, unwind.Stop) {
	regs := context.FromARM64(*r)
	s := unwind.State{Regs: &regs, Exact: exact, Trust: unwind.TrustContext}
	stop := u.Step(&s, mem, nil, f)
	*r = regs.ARM64
	return s.Exact, s.Trust, stop
}

package fuzz

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// walkAMD64 walks with u from r, an interrupted frame, and leaves in r where the
// walk stopped.
func walkAMD64(u *amd64.Unwinder, r *context.AMD64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (int, bool, unwind.Stop) {
	regs := context.FromAMD64(*r)
	s := unwind.Interrupted(&regs)
	res := u.Walk(&s, mem, b, out)
	*r = regs.AMD64
	return res.N, s.Exact, res.Stop
}

// walkARM64 walks with u from r, an interrupted frame, and leaves in r where the
// walk stopped.
func walkARM64(u *arm64.Unwinder, r *context.ARM64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (int, bool, unwind.Stop) {
	regs := context.FromARM64(*r)
	s := unwind.Interrupted(&regs)
	res := u.Walk(&s, mem, b, out)
	*r = regs.ARM64
	return res.N, s.Exact, res.Stop
}

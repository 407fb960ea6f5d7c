package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
)

// stateOf is a frame in registers of this architecture.
func stateOf(r *Registers, exact bool) (s unwind.State) {
	regs := context.FromAMD64(*r)
	return unwind.State{Regs: &regs, Exact: exact, Trust: unwind.TrustContext}
}

// stepOf makes a step from r and leaves the caller in r. u.by is how the caller was
// found.
func stepOf(u *Unwinder, r *Registers, exact bool, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	s := stateOf(r, exact)
	stop := u.Step(&s, mem, b, f)
	*r = s.Regs.AMD64
	return s.Exact, stop
}

// walkOf walks from r, found by trust, and leaves the frame where the walk
// stopped in r.
func walkOf(u *Unwinder, r *Registers, exact bool, trust unwind.Trust, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) (int, bool, unwind.Stop) {
	s := stateOf(r, exact)
	s.Trust = trust
	res := u.Walk(&s, mem, b, out)
	*r = s.Regs.AMD64
	return res.N, s.Exact, res.Stop
}

// begin makes s an interrupted frame in registers r, for benchmarks: it copies
// no more than they must.
func begin(s *unwind.State, r *Registers, exact bool) {
	s.Regs.AMD64 = *r // apart from the others: together they would be copied twice
	s.Regs.Arch, s.Exact, s.Trust = context.ArchAMD64, exact, unwind.TrustContext
}

func newCached() walktest.Walker { return New() }

package arm64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
)

// stateOf is a frame in registers of this architecture.
func stateOf(r *Registers, exact bool) (s unwind.State) {
	regs := context.FromARM64(*r)
	return unwind.State{Regs: &regs, Exact: exact, Trust: unwind.TrustContext}
}

// stepOf makes a step from r and leaves the caller in r. u.by is how the caller was
// found.
func stepOf(u *Unwinder, r *Registers, exact bool, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	s := stateOf(r, exact)
	stop := u.Step(&s, mem, b, f)
	*r = s.Regs.ARM64
	return s.Exact, stop
}

// walkOf walks from r, found by trust, and leaves the frame where the walk
// stopped in r.
func walkOf(u *Unwinder, r *Registers, exact bool, trust unwind.Trust, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) (int, bool, unwind.Stop) {
	s := stateOf(r, exact)
	s.Trust = trust
	res := u.Walk(&s, mem, b, out)
	*r = s.Regs.ARM64
	return res.N, s.Exact, res.Stop
}

// begin makes s an interrupted frame in registers r, for benchmarks: it copies
// no more than they must.
func begin(s *unwind.State, r *Registers, exact bool) {
	s.Regs.ARM64 = *r // apart from the others: together they would be copied twice
	s.Regs.Arch, s.Exact, s.Trust = context.ArchARM64, exact, unwind.TrustContext
}

// leaveOf runs one way of leaving a frame on r.
func leaveOf(r *Registers, exact bool, leave func(s *unwind.State) (bool, unwind.Stop)) (bool, unwind.Stop) {
	s := stateOf(r, exact)
	exact, stop := leave(&s)
	*r = s.Regs.ARM64
	return exact, stop
}

func newCached() walktest.Walker { return New() }

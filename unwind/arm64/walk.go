package arm64

import (
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Walk steps from regs until something ends it and describes the frames in
// out, leaf first; out[0] is the frame regs stands at, found by trust. On
// return regs is the frame at which the walk stopped and nowExact is whether
// its pc is an interrupted instruction:
//
//   - Managed: the frame is managed code and not in out: a seed.
//   - BufferFull, Limit: the next frame, not in out.
//   - otherwise: the last frame of out, which could not be left.
//
// A frame reached from a doubtful one is as doubtful. It allocates nothing.
func (u *Unwinder) Walk(regs *Registers, exact bool, trust unwind.Trust, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (n int, nowExact bool, stop unwind.Stop) {
	if b == nil {
		b = &unbounded
	}
	limit := b.MaxSteps
	if limit <= 0 {
		limit = unwind.DefaultMaxSteps
	}
	hot := mem.Hot()
	for {
		r := u.lookup(unwind.LookupIP(regs.PC, exact))
		switch {
		case r.Managed():
			return n, exact, unwind.Managed
		case n == len(out):
			return n, exact, unwind.BufferFull
		case n == limit:
			return n, exact, unwind.Limit
		}
		f := &out[n]
		n++
		f.Trust = trust
		if u.stepHot(r, regs, exact, hot, b, f) {
			trust = trust.Then(u.trust)
			exact = false
			continue
		}
		callerExact, stop := u.step(r, regs, exact, mem, b, f)
		if stop != unwind.StopNone {
			return n, exact, ended(stop, regs, mem, b)
		}
		exact = callerExact
		trust = trust.Then(u.trust)
	}
}

package arm64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var _ unwind.Walker = (*Unwinder)(nil)

// Walk implements unwind.Walker.
func (u *Unwinder) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) unwind.Result {
	if s.Regs.Arch != context.ArchARM64 {
		return unwind.Result{Stop: unwind.Unsupported}
	}
	if b == nil {
		b = &unbounded
	}
	limit := b.MaxSteps
	if limit <= 0 {
		limit = unwind.DefaultMaxSteps
	}
	hot, regs, n, stop := mem.Hot(), &s.Regs.ARM64, 0, unwind.StopNone
	exact, trust := s.Exact, s.Trust // of s, while the loop runs: in registers
	for {
		r := u.lookup(unwind.Address{IP: regs.PC, Exact: exact})
		if stop = end(r.Managed(), n, len(out), limit); stop != unwind.StopNone {
			break
		}
		f := &out[n]
		n++
		f.Trust = trust
		if u.stepHot(r, regs, exact, hot, b, f) {
			exact, trust = false, trust.Then(u.by)
			continue
		}
		s.Exact, s.Trust = exact, trust
		if stop = u.stepRare(r, s, mem, b, f); stop != unwind.StopNone {
			stop = ended(stop, regs, mem, b)
			break
		}
		exact, trust = s.Exact, s.Trust
	}
	s.Exact, s.Trust = exact, trust
	return unwind.Result{N: n, Stop: stop}
}

// end reports why a walk that has described n frames goes no further, before it
// steps on.
func end(managed bool, n, room, limit int) unwind.Stop {
	switch {
	case managed:
		return unwind.Managed
	case n == room:
		return unwind.BufferFull
	case n == limit:
		return unwind.Limit
	}
	return unwind.StopNone
}

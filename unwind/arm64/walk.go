package arm64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var _ unwind.Walker = (*Unwinder)(nil)

// Walk implements unwind.Walker.
func (u *Unwinder) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) unwind.Result {
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
	regs, n, last := &s.Regs.ARM64, 0, min(len(out), limit)
	place, kept := u.kept(s.Address().Lookup())
	for {
		r := &u.cache[place&(cacheSize-1)].rule
		switch {
		case !kept:
			r = u.miss(s.Address().Lookup())
		case n < last && r.fusible(regs):
			if k := u.walkFused(place, s, mem, b, out[n:last]); k > 0 {
				n, place, kept = n+k, u.section.next, u.section.kept
				continue
			}
		}
		if n > 0 && r.outside() {
			doubtOutside(s)
		}
		if stop := unwind.WalkEnd(r.Managed(), n, len(out), limit); stop != unwind.StopNone {
			return unwind.Result{N: n, Stop: stop}
		}
		f := &out[n]
		n++
		f.Trust = s.Trust
		if u.stepHot(r, regs, s.Exact, mem, b, f) {
			s.Exact, s.Trust = false, s.Trust.Then(u.trust)
			place, kept = u.kept(regs.PC - 1)
			continue
		}
		if stop := u.stepRare(r, s, mem, b, f); stop != unwind.StopNone {
			return unwind.Result{N: n, Stop: ended(r, stop, s, mem, b)}
		}
		place, kept = u.kept(s.Address().Lookup())
	}
}

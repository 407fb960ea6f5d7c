package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

var _ unwind.Walker = (*Unwinder)(nil)

// Walk implements unwind.Walker.
func (u *Unwinder) Walk(s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	out []unwind.Frame) unwind.Result {
	if s.Regs.Arch != context.ArchAMD64 {
		return unwind.Result{Stop: unwind.Unsupported}
	}
	if b == nil {
		b = &unbounded
	}
	limit := b.MaxSteps
	if limit <= 0 {
		limit = unwind.DefaultMaxSteps
	}
	regs, n, last := &s.Regs.AMD64, 0, min(len(out), limit)
	r := u.kept(s.Address().Lookup())
	if r.bits == 0 {
		r = u.miss(s.Address())
	}
	for warm := true; ; {
		if r.bits&fewBit == 0 && n < last && warm && r.fusible(regs, s.Exact) {
			fm := &forms[r.bits&15]
			if k := u.walkFused(r, fm, s, mem, b, out[n:last]); k > 0 {
				n, u.trust = n+k, fm.trust
				r = u.reached(u.section.next, s, mem, &out[n-1])
			}
		}
		if stop := unwind.WalkEnd(r.Managed(), n, len(out), limit); stop != unwind.StopNone {
			return unwind.Result{N: n, Stop: stop}
		}
		f := &out[n]
		n++
		f.Trust = s.Trust
		if fm := &forms[r.bits&15]; stepHot(r, fm, regs, s.Exact, mem, b, f) {
			u.trust = fm.trust
			s.Exact, s.Trust = false, s.Trust.Then(fm.trust)
			r = u.kept(regs.RIP - 1)
			// While rules are still being made, sections would have one frame each.
			if warm = r.bits != 0; !warm || r.outside() {
				r = u.reached(r, s, mem, f)
			}
			continue
		}
		if stop := u.stepRare(r, s, mem, b, f); stop != unwind.StopNone {
			return unwind.Result{N: n, Stop: ended(r, stop, s, mem, b)}
		}
		r, warm = u.reached(u.kept(s.Address().Lookup()), s, mem, f), true
	}
}

package seed

import (
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Find walks from s, where a thread was interrupted, to managed code. On return, s is the
// frame where the walk stopped. If the thread was interrupted in a special, s is unchanged
// and out contains this one frame. On a foreign stack, nothing changes. A nil b means no
// bounds, a nil p no specials, and a nil x no witness. Find does not allocate.
func Find(p *managed.Specials, w unwind.Walker, s *unwind.State, mem *memory.Window,
	b *unwind.Bounds, out []unwind.Frame, x *Witness) Outcome {
	if v := refuse(p, s.Regs, b); v != walkable {
		o := refused(v)
		if v == StubOnTop {
			top, trust := *s.Regs, s.Trust
			o.Frames = w.Walk(s, mem, b, out[:min(1, len(out))]).N
			*s.Regs, s.Exact, s.Trust = top, true, trust
		}
		return o
	}
	top := stateOf(s.Regs)
	r := w.Walk(s, mem, b, out)
	o := Outcome{Stop: r.Stop, Frames: r.N}
	o.Verdict = judge(p, &o, top, s, b, out[:r.N])
	if x != nil && (o.Verdict == Found || o.Verdict == NotNeeded && x.Top) &&
		!x.confirms(w, p, s, mem, b, out[:r.N]) {
		o.Verdict = Unsafe
	}
	o.Loading = p.Loading(top.ip, out[:r.N])
	return o
}

// stateOf returns the part of the registers that decides the verdict.
func stateOf(r *context.Registers) state {
	return state{r.IP(), r.SP(), r.Lost()}
}

// rulesOf holds the requirements of each architecture on a frame.
var rulesOf = [...]rules{
	context.NoArch:    {spAlign: 1, ipAlign: 1}, // no ip fits into 0 bits
	context.ArchAMD64: {spAlign: 8, ipAlign: 1, ipBits: 47},
	context.ArchARM64: {spAlign: 16, ipAlign: 4, ipBits: 48},
}

// walkable is the result of refuse if a walk may begin.
const walkable = Verdict(VerdictCount)

// refuse decides before the first step whether the thread cannot be walked.
func refuse(p *managed.Specials, r *context.Registers, b *unwind.Bounds) Verdict {
	switch {
	case foreign(r.SP(), b):
		return ForeignStack
	case p.Entered(r.IP()):
		return StubOnTop
	}
	return walkable
}

// refused returns the outcome for a thread that is not walked.
func refused(v Verdict) Outcome {
	o := Outcome{Verdict: v, Stop: unwind.NoInfo}
	if v == ForeignStack {
		o.Stop = unwind.OutOfStack
	}
	return o
}

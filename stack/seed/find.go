package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// Find walks from s, where a thread was interrupted, to managed code. On return, s is the
// frame where the walk stopped. If the thread was interrupted in a special, s is unchanged
// and out holds this one frame. A nil b means no bounds, and nil Specials mean no specials.
// Find does not allocate.
func (p *Specials) Find(w unwind.Walker, s *unwind.State, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) Outcome {
	if v := p.refuse(s.Regs, b); v != walkable {
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
	o.Verdict = p.judge(&o, top, s, b, out[:r.N])
	o.Loading = p.loading(top.ip, out[:r.N])
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

package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

// Result is the result for an x86-64 thread.
type Result = ResultOf[context.AMD64]

var amd64Rules = rules{spAlign: 8, ipAlign: 1, ipBits: 47}

// amd64Preserved are the registers that functions preserve on every system.
const amd64Preserved = 1<<context.RBX | 1<<context.RBP | 0xf<<context.R12

func amd64State(r *context.AMD64) state {
	return state{r.RIP, r.SP(), amd64Preserved &^ uint64(r.Known)}
}

// Find walks from regs, the registers of a thread stopped at an arbitrary
// point. It allocates nothing. A nil b bounds nothing.
func Find(u *amd64.Unwinder, regs *context.AMD64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (r Result) {
	r.Regs = *regs
	(*Specials)(nil).SeekAMD64(u, &r.Regs, mem, b, out, &r.Outcome)
	return r
}

// SeekAMD64 is Find in place, with an eye to specials: regs becomes the
// registers of the frame where the walk stopped, and o says the rest. A thread
// interrupted in a special keeps its registers, and its frame is the only one
// in out.
func (s *Specials) SeekAMD64(u *amd64.Unwinder, regs *context.AMD64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame, o *Outcome) {
	const trust = unwind.TrustContext
	if v := s.refuse(regs.RIP, regs.SP(), b); v != walkable {
		*o = refused(v)
		if v == StubOnTop {
			top := *regs
			o.Frames, _, _ = u.Walk(&top, true, trust, mem, b, out[:min(1, len(out))])
		}
		return
	}
	top := amd64State(regs)
	o.Frames, o.Exact, o.Stop = u.Walk(regs, true, trust, mem, b, out)
	if o.Trust = trust; o.Frames > 0 {
		o.Trust = out[o.Frames-1].Trust.Then(u.StepTrust())
	}
	o.Verdict = s.judge(o, &amd64Rules, top, amd64State(regs), b, out[:o.Frames])
}

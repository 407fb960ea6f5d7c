package seed

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// ResultARM64 is the result for an ARM64 thread.
type ResultARM64 = ResultOf[context.ARM64]

var arm64Rules = rules{spAlign: 16, ipAlign: 4, ipBits: 48}

// arm64Preserved are the registers that functions preserve on every system.
const arm64Preserved = 0x7ff << 19 // x19-x29

func arm64State(r *context.ARM64) state {
	return state{r.PC, r.SP(), arm64Preserved &^ r.Known}
}

// FindARM64 walks from regs, the registers of a thread stopped at an arbitrary
// point. It allocates nothing. A nil b bounds nothing.
func FindARM64(u *arm64.Unwinder, regs *context.ARM64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame) (r ResultARM64) {
	r.Regs = *regs
	(*Specials)(nil).SeekARM64(u, &r.Regs, mem, b, out, &r.Outcome)
	return r
}

// SeekARM64 is FindARM64 in place, with an eye to specials: regs becomes the
// registers of the frame where the walk stopped, and o says the rest. A thread
// interrupted in a special keeps its registers, and its frame is the only one
// in out.
func (s *Specials) SeekARM64(u *arm64.Unwinder, regs *context.ARM64, mem *memory.Window, b *unwind.Bounds, out []unwind.Frame, o *Outcome) {
	const trust = unwind.TrustContext
	if v := s.refuse(regs.PC, regs.SP(), b); v != walkable {
		*o = refused(v)
		if v == StubOnTop {
			top := *regs
			o.Frames, _, _ = u.Walk(&top, true, trust, mem, b, out[:min(1, len(out))])
		}
		return
	}
	top := arm64State(regs)
	o.Frames, o.Exact, o.Stop = u.Walk(regs, true, trust, mem, b, out)
	if o.Trust = trust; o.Frames > 0 {
		o.Trust = out[o.Frames-1].Trust.Then(u.StepTrust())
	}
	o.Verdict = s.judge(o, &arm64Rules, top, arm64State(regs), b, out[:o.Frames])
}

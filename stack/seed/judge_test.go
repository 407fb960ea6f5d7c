package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// arrival is a Walker that has arrived at managed code, with every register known.
type arrival struct {
	unwind.Walker
	ip, sp, fp uint64 // a frame pointer of 0 is unchanged
	trust      unwind.Trust
}

func (a *arrival) Walk(s *unwind.State, _ *memory.Window, _ *unwind.Bounds,
	out []unwind.Frame) unwind.Result {
	out[0] = unwind.Frame{IP: s.Regs.IP(), SP: s.Regs.SP(), Module: -1, Exact: true, Trust: s.Trust}
	s.Regs.SetIP(a.ip)
	s.Regs.SetSP(a.sp)
	if a.fp != 0 {
		s.Regs.SetFP(a.fp)
	}
	s.Reached(false, a.trust)
	return unwind.Result{N: 1, Stop: unwind.Managed}
}

// TestJudge checks seeds that have all registers. Doubtful ones and impossible ones are unsafe.
func TestJudge(t *testing.T) {
	for _, a := range context.Arches {
		for _, c := range []struct {
			name  string
			ip    uint64
			sp    uint64
			trust unwind.Trust
			want  Verdict
		}{
			{"sure", methodAt, sp, unwind.TrustUnwindInfo, Found},
			{"by following the code", methodAt, sp, unwind.TrustCode, Unsafe},
			{"by the frame pointer", methodAt, sp, unwind.TrustFramePointer, Unsafe},
			{"an ip on the stack", stackLow + 16, sp, unwind.TrustUnwindInfo, Unsafe},
			{"a stack pointer outside of the stack", methodAt, stackEnd, unwind.TrustUnwindInfo, Unsafe},
		} {
			x := newScene(a)
			x.regs.AMD64.Known, x.regs.ARM64.Known = context.AMD64All, context.ARM64All
			x.regs.SetSP(sp - 32)
			x.s = unwind.Interrupted(&x.regs)
			mem := memory.New(memory.Run{Addr: stackLow, Data: x.stack})
			w := &arrival{x.u, c.ip, c.sp, 0, c.trust}
			var out [1]unwind.Frame
			o := Find(nil, w, &x.s, mem, &x.bounds, out[:], nil)
			expect.Equal(t, o.Verdict, c.want, "%v, %s", a, c.name)
		}
	}
}

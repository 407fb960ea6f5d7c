package judge

import (
	"fmt"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// kindOfIP is unwind.Instruction or unwind.ReturnAddress.
type kindOfIP func(ip uint64) unwind.Address

// stepper is one step of a vector, on either architecture.
type stepper interface {
	// run makes the step from the registers of the point.
	run(mem *memory.Window, as kindOfIP) unwind.Stop
	// compare returns the expected values beside those of the step.
	compare(want *pevec.State) []Pair
}

func (x *PE) newStep(v *pevec.Vector, p *pevec.Point) (stepper, error) {
	if v.ARM64() {
		regs, err := v.RegsARM64(p)
		return &stepARM64{u: x.a64, regs: regs, wantExact: p.Exact, said: v.Kind == "winetest"}, err
	}
	regs, err := v.AMD64(p)
	return &stepAMD64{u: x.u64, x: x, regs: regs}, err
}

func pair(name string, want, got uint64, known bool) Pair {
	p := Pair{name, fmt.Sprintf("%x", want), fmt.Sprintf("%x", got)}
	if !known {
		p.Got = "unknown"
	}
	return p
}

// stepAMD64 is a step on x64.
type stepAMD64 struct {
	u          *amd64.Unwinder
	stop       unwind.Stop
	x          *PE
	from, regs context.AMD64
	frame      unwind.Frame
	pe         amd64.PEResult // the same step's EstablisherFrame and handler
	same       bool           // it gave the same registers
	walk       walked
}

// walked is the result of Walk for the same step.
type walked struct {
	regs  context.Registers
	frame unwind.Frame
	stop  unwind.Stop
}

// oneStep replaces s by its caller. It also makes the same step by Walk, with room for one frame.
func oneStep(u unwind.Walker, s *unwind.State, mem *memory.Window,
	f *unwind.Frame) (stop unwind.Stop, w walked) {
	var out [1]unwind.Frame
	w.regs = *s.Regs
	other := *s
	other.Regs = &w.regs
	w.stop = u.Walk(&other, mem, nil, out[:]).Stop
	w.frame = out[0]
	return u.Step(s, mem, nil, f), w
}

// standing returns the state of a frame. as is the kind of its ip.
func standing(regs *context.Registers, as kindOfIP) unwind.State {
	return unwind.State{Regs: regs, Exact: as(regs.IP()).Exact, Trust: unwind.TrustContext}
}

// agrees reports whether Walk made the same step. Walk also examines the caller before it ends, so
// its stop may differ: the caller may be managed, or exceed the room.
func (w *walked) agrees(regs *context.Registers, frame *unwind.Frame, stop unwind.Stop) bool {
	if stop == unwind.StopNone {
		stop = unwind.BufferFull
	}
	return w.regs.Equal(regs) && w.frame == *frame && w.stop == stop
}

func (w *walked) pair(regs context.Registers, frame *unwind.Frame, stop unwind.Stop) Pair {
	p := Pair{"Walk and Step", "the same", "the same"}
	if !w.agrees(&regs, frame, stop) {
		p.Got = "differ"
	}
	return p
}

func (s *stepAMD64) run(mem *memory.Window, as kindOfIP) unwind.Stop {
	s.from = s.regs
	regs := context.FromAMD64(s.regs)
	at := standing(&regs, as)
	var stop unwind.Stop
	stop, s.walk = oneStep(s.u, &at, mem, &s.frame)
	s.regs = regs.AMD64
	raw := s.from
	var rawStop unwind.Stop
	s.pe, rawStop = amd64.StepPE(s.x.file.AMD64(), as(s.from.RIP-s.x.base), &raw, mem)
	s.same = stop != unwind.StopNone || rawStop == stop && raw == s.regs
	s.stop = stop
	return stop
}

// savedAMD64 are the registers that a Windows function preserves.
var savedAMD64 = []string{"rbx", "rbp", "rsi", "rdi", "r12", "r13", "r14", "r15"}

func (s *stepAMD64) compare(want *pevec.State) []Pair {
	out := []Pair{s.walk.pair(context.FromAMD64(s.regs), &s.frame, s.stop)}
	if want.RIP != nil {
		out = append(out, pair("rip", uint64(*want.RIP), s.regs.RIP, true))
	}
	if rsp, ok := want.GPR["rsp"]; ok {
		out = append(out, pair("rsp", uint64(rsp), s.regs.SP(), true))
	} else if want.RSP != nil {
		out = append(out, pair("rsp", uint64(*want.RSP), s.regs.SP(), true))
	}
	if want.Frame != nil {
		out = append(out, pair("establisher frame", uint64(*want.Frame), s.pe.Frame, true))
	}
	if want.HandlerRVA != nil {
		out = append(out, pair("handler", uint64(*want.HandlerRVA), uint64(s.pe.Handler), true))
	}
	if !s.same {
		out = append(out, Pair{"Step and StepPE", "the same", "differ"})
	}
	if want.GPR == nil { // Go's code preserves nothing
		return out
	}
	for _, name := range savedAMD64 {
		n := snap.AMD64Index(name)
		w, ok := want.GPR[name]
		if !ok {
			w = pevec.Hex(s.from.GPR[n])
		}
		out = append(out, pair(name, uint64(w), s.regs.GPR[n], s.regs.Known>>n&1 != 0))
	}
	for i := range s.regs.XMM {
		w := s.from.XMM[i]
		if v, ok := want.XMM[fmt.Sprintf("xmm%d", i+6)]; ok {
			w = context.XMM(v)
		}
		p := Pair{fmt.Sprintf("xmm%d", i+6), fmt.Sprintf("%016x%016x", w[1], w[0]),
			fmt.Sprintf("%016x%016x", s.regs.XMM[i][1], s.regs.XMM[i][0])}
		if s.regs.Known>>(16+i)&1 == 0 {
			p.Got = "unknown"
		}
		out = append(out, p)
	}
	return out
}

// stepARM64 is a step on ARM64.
type stepARM64 struct {
	u          *arm64.Unwinder
	from, regs context.ARM64
	exact      bool // the caller's pc is an interrupted one
	wantExact  int  // the vector's value of exact, if it has one
	said       bool
	frame      unwind.Frame
	stop       unwind.Stop
	walk       walked
}

func (s *stepARM64) run(mem *memory.Window, as kindOfIP) unwind.Stop {
	s.from = s.regs
	regs := context.FromARM64(s.regs)
	at := standing(&regs, as)
	s.stop, s.walk = oneStep(s.u, &at, mem, &s.frame)
	s.exact = at.Exact
	s.regs = regs.ARM64
	return s.stop
}

func (s *stepARM64) compare(want *pevec.State) []Pair {
	out := []Pair{s.walk.pair(context.FromARM64(s.regs), &s.frame, s.stop)}
	if want.PC != nil {
		out = append(out, pair("pc", uint64(*want.PC), s.regs.PC, true))
	}
	if want.SP != nil {
		out = append(out, pair("sp", uint64(*want.SP), s.regs.Sp, true))
	}
	if s.said && s.wantExact >= 0 {
		out = append(out, Pair{"exact", fmt.Sprint(s.wantExact == 1), fmt.Sprint(s.exact)})
	}
	if want.X == nil {
		return out
	}
	if lr, ok := want.X["x30"]; ok && s.said {
		out = append(out, pair("x30", uint64(lr), s.regs.X[30], true))
	}
	for n := 19; n <= 29; n++ {
		name := fmt.Sprintf("x%d", n)
		w, ok := want.X[name]
		if !ok {
			w = pevec.Hex(s.from.X[n])
		}
		out = append(out, pair(name, uint64(w), s.regs.X[n], s.regs.Known>>n&1 != 0))
	}
	for i := range s.regs.D {
		name := fmt.Sprintf("d%d", i+8)
		w, ok := want.D[name]
		if !ok {
			w = pevec.Hex(s.from.D[i])
		}
		out = append(out, pair(name, uint64(w), s.regs.D[i], s.regs.Known>>(32+i)&1 != 0))
	}
	return out
}

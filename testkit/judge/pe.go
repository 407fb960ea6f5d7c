package judge

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// PE judges the PE kinds of one file.
type PE struct {
	r      *Score
	u64    *amd64.Unwinder
	a64    *arm64.Unwinder
	file   *pe.File // of the vector at hand
	base   uint64
	gen    uint32
	stacks pevec.Stacks
}

// NewPE counts into s.
func NewPE(s *Score) *PE { return &PE{r: s, u64: amd64.New(), a64: arm64.New()} }

// Line judges one line by its kind. It returns an error if the line is not a vector.
func (x *PE) Line(data []byte) error {
	var p struct{ Arch, Kind string }
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	if context.ArchOf(p.Arch) == context.NoArch {
		return fmt.Errorf("architecture %q: %w", p.Arch, ErrFormat)
	}
	if x.judge(p.Kind) == nil {
		return fmt.Errorf("kind %q: %w", p.Kind, ErrFormat)
	}
	v, err := pevec.Parse(data)
	if err != nil {
		return err
	}
	return x.Vector(v)
}

// judge returns the function that judges a kind, nil if the kind is unknown.
func (x *PE) judge(kind string) func(*Tally, *pevec.Vector) error {
	switch kind {
	case "exec", "native-step", "synthetic", "winetest":
		return x.points
	case "malformed":
		return x.malformed
	case "decode":
		return x.decode
	case "decode-object":
		return x.decodeObject
	}
	return nil
}

// Vector judges a parsed line.
func (x *PE) Vector(v *pevec.Vector) error {
	judge := x.judge(v.Kind)
	if judge == nil {
		return fmt.Errorf("%s: kind %q: %w", v.ID, v.Kind, ErrFormat)
	}
	return judge(x.r.tally(v.Arch+" "+v.Kind, true), v)
}

// points judges every point of a vector.
func (x *PE) points(t *Tally, v *pevec.Vector) error {
	if err := x.load(v); err != nil {
		return fmt.Errorf("%s: %w", v.ID, err)
	}
	for i := range v.Points {
		p := &v.Points[i]
		err := x.point(t, v, p, unwind.Instruction)
		if err == nil && p.AfterCall && !calleeMoves(v, p) {
			err = x.point(x.r.tally(t.Kind+", return addresses", t.Strict), v, p, unwind.ReturnAddress)
		}
		if err != nil {
			return fmt.Errorf("%s point %d: %w", v.ID, i, err)
		}
	}
	return nil
}

// calleeMoves reports whether the function called before p moves the stack pointer, like
// ARM64's __security_pop_cookie. A walk then has other registers at the return address than p.
func calleeMoves(v *pevec.Vector, p *pevec.Point) bool {
	return v.ARM64() && slices.ContainsFunc(v.Points, func(q pevec.Point) bool {
		return q.PC != nil && *q.PC+4 == *p.PC && q.SP != nil && p.SP != nil && *q.SP != *p.SP
	})
}

// point judges the step from p. as makes p's pc an interrupted instruction or a return address.
func (x *PE) point(t *Tally, v *pevec.Vector, p *pevec.Point, as kindOfIP) error {
	if p.PC == nil || v.Want(p) == nil {
		return fmt.Errorf("no pc or nothing expected: %w", ErrFormat)
	}
	stop, values, err := x.step(v, p, as)
	if err != nil {
		return err
	}
	verdict := judgePoint(p, v.Want(p), stop, values)
	if verdict != right && p.Alt != nil {
		s2, v2, err := x.step(v, p.Alt, as)
		if err != nil {
			return err
		}
		if judgePoint(p.Alt, v.Want(p.Alt), s2, v2) == right {
			verdict = right
		}
	}
	x.r.count(t, verdict, func() Mismatch {
		where := fmt.Sprintf("rva %x", uint64(*p.PC))
		if v.Kind != "winetest" {
			where += fmt.Sprintf(" %s %q", p.Where, p.Ins)
		}
		return x.mismatch(v, uint64(*p.PC), where, stop, values)
	})
	return nil
}

// step makes the step from a point and compares the result with the expected one.
func (x *PE) step(v *pevec.Vector, p *pevec.Point, as kindOfIP) (unwind.Stop, []Pair, error) {
	mem, err := x.stacks.Window(v, p)
	if err != nil {
		return 0, nil, err
	}
	s, err := x.newStep(v, p)
	if err != nil {
		return 0, nil, err
	}
	stop := s.run(mem, as)
	if want := v.Want(p); want != nil {
		return stop, s.compare(want), nil
	}
	return stop, nil, nil
}

// callFails is a point's Handler where Windows itself refuses the step.
const callFails = -2

// judgePoint returns the verdict on a step. A return address of 0 ends a walk, but Wine's tests
// list it as a caller. That counts as right.
func judgePoint(p *pevec.Point, want *pevec.State, stop unwind.Stop, values []Pair) verdict {
	switch {
	case p.Handler == callFails && stop != unwind.StopNone:
		return right
	case p.Handler == callFails:
		return wrong
	case p.Where == "winetest" && stop == unwind.NullReturn && isZero(want.RIP) && isZero(want.PC):
		return right
	case stop != unwind.StopNone && !differ(values[:min(1, len(values))]):
		return refused
	case differ(values):
		return wrong
	}
	return right
}

func isZero(h *pevec.Hex) bool { return h == nil || *h == 0 }

func (x *PE) mismatch(v *pevec.Vector, rva uint64, where string, stop unwind.Stop, values []Pair) Mismatch {
	m := Mismatch{ID: v.ID, Where: where, Why: "the step differs", Values: values}
	if stop != unwind.StopNone {
		m.Why = "refused: " + stop.String()
	}
	m.Code = codeText(context.ArchOf(v.Arch), rva, rva, v.Code(rva, 32))
	m.Info = x.info(uint32(rva))
	return m
}

// load makes the vector's image the only module.
func (x *PE) load(v *pevec.Vector) error {
	w := imageWriter{arm64: v.ARM64(), base: uint64(v.Base),
		functions: v.Functions, size: uint64(v.ImageSize)}
	for _, m := range v.Mem {
		w.blocks = append(w.blocks, memory.Run{Addr: uint64(m.Addr), Data: m.Data})
	}
	data, err := w.bytes()
	if err != nil {
		return err
	}
	f, err := pe.New(data, v.ID)
	if err != nil {
		return err
	}
	x.file, x.base = f, uint64(v.Base)
	x.gen++
	m := module.Module{ID: 1, Start: uint64(v.Base), End: uint64(v.Base) + maxImageEnd,
		Bias: uint64(v.Base), Path: v.ID, PE: f}
	t := module.NewTable(x.gen, []module.Module{m}, nil)
	x.u64.SetTable(t)
	x.a64.SetTable(t)
	return nil
}

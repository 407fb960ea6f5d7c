package replay

import (
	"encoding/json"
	"fmt"

	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

// peRun replays the PE kinds of one file.
type peRun struct {
	r        *Runner
	u64      *amd64.Unwinder
	a64      *arm64.Unwinder
	file     *pe.File // of the vector at hand
	base     uint64
	gen      uint32
	filled   *memory.Window
	filledAt [2]hexWord
}

func (r *Runner) newPE() *peRun { return &peRun{r: r, u64: amd64.New(), a64: arm64.New()} }

// line replays one line; its kind decides.
func (x *peRun) line(data []byte) error {
	var p probe
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	if p.Arch != "amd64" && p.Arch != "arm64" {
		return fmt.Errorf("architecture %q: %w", p.Arch, ErrFormat)
	}
	name := p.Arch + " " + p.Kind
	switch p.Kind {
	case "exec", "native-step", "synthetic":
		return x.points(name, data)
	case "winetest":
		return x.wine(name, data)
	case "malformed":
		return x.malformed(name, data)
	case "decode":
		return x.decode(name, p.Arch, data)
	case "decode-object":
		return x.decodeObject(name, p.Arch, data)
	}
	x.r.tally(name, false).Note = "a kind this program does not know: not replayed"
	return nil
}

// points judges every point of a vector.
func (x *peRun) points(name string, data []byte) error {
	v := new(peVector)
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if err := x.load(v); err != nil {
		return fmt.Errorf("%s: %w", v.ID, err)
	}
	t := x.r.tally(name, true)
	for i := range v.Points {
		if err := x.point(t, v, &v.Points[i]); err != nil {
			return fmt.Errorf("%s point %d: %w", v.ID, i, err)
		}
	}
	return nil
}

func (x *peRun) point(t *Tally, v *peVector, p *pePoint) error {
	expect := v.Expect
	if p.Expect != nil {
		expect = p.Expect
	}
	if p.PC == nil || expect == nil {
		return fmt.Errorf("no pc or nothing expected: %w", ErrFormat)
	}
	var mem *memory.Window
	var err error
	s := x.newStep(v.Arch)
	s.set(&v.Entry)
	s.set(&p.peState)
	s.setIP(uint64(v.Base) + uint64(*p.PC))
	if v.StackRange[1] != 0 {
		mem, err = x.stackFilled(v.StackRange)
	} else {
		mem, err = stackAround(s.sp(), p.Stack)
	}
	if err != nil {
		return err
	}
	stop := s.run(mem)
	values := s.compare(expect)
	verdict := right
	switch {
	case stop != unwind.StopNone:
		verdict = refused
	case differ(values):
		verdict = wrong
	}
	x.r.count(t, verdict, func() Mismatch {
		return x.mismatch(v, uint64(*p.PC), fmt.Sprintf("rva %x %s %q", uint64(*p.PC), p.Where, p.Ins), stop, values)
	})
	return nil
}

func (x *peRun) mismatch(v *peVector, rva uint64, where string, stop unwind.Stop, values []Pair) Mismatch {
	m := Mismatch{ID: v.ID, Where: where, Why: "the step differs", Values: values}
	if stop != unwind.StopNone {
		m.Why = "refused: " + stop.String()
	}
	m.Code = codeText(peArch(v.Arch), rva, rva, v.codeAt(rva, 32))
	m.Info = x.info(v, uint32(rva))
	return m
}

// load makes the vector's image the only module.
func (x *peRun) load(v *peVector) error {
	w := imageWriter{arm64: v.Arch == "arm64", base: uint64(v.Base), functions: v.Functions, blocks: v.Mem, size: uint64(v.ImageSize)}
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
	m := module.Module{ID: 1, Start: uint64(v.Base), End: uint64(v.Base) + maxImageEnd, Bias: uint64(v.Base), Path: v.ID, PE: f}
	t := module.NewTable(x.gen, []module.Module{m}, nil)
	x.u64.SetTable(t)
	x.a64.SetTable(t)
	return nil
}

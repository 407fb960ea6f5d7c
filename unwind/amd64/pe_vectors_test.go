package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/pevec"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// eachPE calls f for every vector of a file; it skips where there is none.
func eachPE(t testing.TB, file string, f func(*pevec.Vector) error) {
	t.Helper()
	n, err := pevec.Each(file+".jsonl.gz", f)
	if errors.Is(err, pevec.ErrAbsent) {
		t.Skip("SKIPPED-CHECK: ", err)
	}
	if err != nil || n == 0 {
		t.Fatal(file, n, err)
	}
}

// peScore counts the points of a file.
type peScore struct{ points, right, frames, epilogs int }

func TestPEVectors(t *testing.T) {
	for _, file := range []string{"exec", "native", "synth", "winetest"} {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			var n peScore
			eachPE(t, "amd64-"+file, func(v *pevec.Vector) error {
				im, u := v.Image(), New()
				u.SetTable(peTable(im, uint64(v.Base)))
				for i := range v.Points {
					why, err := n.point(v, &v.Points[i], im, u, &stacks)
					if err != nil {
						return err
					}
					if why != "" && n.points-n.right <= 10 {
						p := &v.Points[i]
						t.Errorf("%s pc %#x %s %q: %s", v.ID, uint64(*p.PC), p.Where, p.Ins, why)
					}
				}
				return nil
			})
			t.Logf("amd64-%s: %d points, %d right; EstablisherFrame given and right for %d; %d in epilogs", file, n.points, n.right, n.frames, n.epilogs)
			if n.points != n.right {
				t.Errorf("%d of %d points are wrong", n.points-n.right, n.points)
			}
		})
	}
}

// point steps from a point, and through an Unwinder too: both must give what is
// expected, or what an older Windows gave.
func (n *peScore) point(v *pevec.Vector, p *pevec.Point, im *pe.File, u *Unwinder, stacks *pevec.Stacks) (why string, err error) {
	n.points++
	mem, err := stacks.Window(v, p)
	if err != nil {
		return "", err
	}
	regs, err := v.AMD64(p)
	if err != nil {
		return "", err
	}
	walked := regs
	res, stop := StepPE(im.AMD64(), uint32(*p.PC), !p.AfterCall, &regs, mem)
	if stop != unwind.StopNone {
		return stop.String() + ": " + res.Reason.String(), nil
	}
	for q := p; q != nil; q = q.Alt {
		if why, err = judgePE(v, q, &regs, &res); why == "" || err != nil {
			break
		}
	}
	if why != "" || err != nil {
		return why, err
	}
	var f unwind.Frame
	exact, stop := u.Step(&walked, !p.AfterCall, mem, nil, &f)
	switch {
	case regs.RIP == 0: // a walk ends there
		walked = regs
		if stop != unwind.NullReturn {
			return "walker: " + stop.String(), nil
		}
	case stop != unwind.StopNone:
		return "walker: " + stop.String(), nil
	case exact != (v.MachineFrame != 0 && res.Machine):
		return "walker: exactness of the caller", nil
	case f.CFA != regs.GPR[4] || u.StepTrust() != peTrust[res.Part]:
		return "walker: CFA or trust", nil
	}
	if why = pevec.DiffAMD64(&walked, &regs, v.Checked(p)); why != "" {
		return "walker: " + why, nil
	}
	n.right++
	if res.Part == PEEpilog {
		n.epilogs++
	}
	if e := v.Want(p); e.Frame != nil {
		n.frames++
	}
	return "", nil
}

// judgePE compares the outcome of a step with an answer.
func judgePE(v *pevec.Vector, p *pevec.Point, regs *Registers, res *PEResult) (string, error) {
	from, err := v.AMD64(p)
	if err != nil {
		return "", err
	}
	want, err := v.WantAMD64(p, &from)
	if err != nil {
		return "", err
	}
	if e := v.Want(p); e.Frame != nil && res.Frame != uint64(*e.Frame) {
		return "EstablisherFrame", nil
	}
	if v.Kind == "winetest" && (p.Handler == 1) != (res.Handler == 0x200 && res.Part == PECode) {
		return "handler", nil
	}
	return pevec.DiffAMD64(regs, &want, v.Checked(p)), nil
}

func TestPEMalformed(t *testing.T) {
	n := 0
	var stacks pevec.Stacks
	eachPE(t, "malformed", func(v *pevec.Vector) error {
		if v.ARM64() {
			return nil
		}
		n++
		p := &v.Points[0]
		mem, err := stacks.Window(v, p)
		if err != nil {
			return err
		}
		regs, err := v.AMD64(p)
		if err != nil {
			return err
		}
		res, stop := StepPE(v.Image().AMD64(), uint32(*p.PC), true, &regs, mem)
		refused := stop == unwind.BadInfo || stop == unwind.Unsupported
		switch v.Must {
		case "error":
			if !refused || res.Reason == peamd64.OK {
				t.Errorf("%s (%s): %v, %v", v.ID, v.Note, stop, res.Reason)
			}
		case "error-or-v3":
			if stop != unwind.Unsupported {
				t.Errorf("%s (%s): %v, %v", v.ID, v.Note, stop, res.Reason)
			}
		case "ok":
			if why, err := judgePE(v, p, &regs, &res); why != "" || err != nil || stop != unwind.StopNone {
				t.Errorf("%s (%s): %v %v %v", v.ID, v.Note, stop, why, err)
			}
		case "no-crash":
		default:
			t.Errorf("%s: must %q is not known to this test", v.ID, v.Must)
		}
		t.Logf("%s: %v, %v", v.ID, stop, res.Reason)
		return nil
	})
	t.Logf("malformed: %d amd64 lines", n)
	if n == 0 {
		t.Error("no lines")
	}
}

package arm64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// TestStepThroughPEFile steps the way a walk does: from the module table to the
// image, its exception directory, the codes and the caller, with the rule cache
// and without.
func TestStepThroughPEFile(t *testing.T) {
	for _, file := range []string{"arm64-native", "arm64-packedx", "arm64-exec", "arm64-synth"} {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			cached, plain := New(), New()
			plain.DisableCache(true)
			points, wrong, gen := 0, 0, uint32(0)
			n, err := pevec.Each(file+".jsonl.gz", func(v *pevec.Vector) error {
				gen++
				base := uint64(v.Base)
				table := module.NewTable(gen, []module.Module{{Start: base, End: base + 1<<32 - 1, Bias: base, PE: v.Image()}}, nil)
				cached.SetTable(table)
				plain.SetTable(table)
				for i := range v.Points {
					points++
					for _, u := range []*Unwinder{cached, plain, cached} {
						why, err := stepVector(u, v, &v.Points[i], &stacks)
						if err != nil {
							return err
						}
						if why != "" {
							if wrong++; wrong <= 10 {
								t.Errorf("%s point %d (%s): %s", v.ID, i, v.Points[i].Ins, why)
							}
							break
						}
					}
				}
				return nil
			})
			if errors.Is(err, pevec.ErrAbsent) {
				t.Skip("SKIPPED-CHECK: ", err)
			}
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			t.Logf("%s: %d points, %d wrong", file, points, wrong)
			if wrong != 0 {
				t.Errorf("%d of %d points are wrong", wrong, points)
			}
		})
	}
}

// stepVector steps from a point. Its state is that before the instruction at pc
// runs, also after a call: some calls in MSVC's epilogs pop the stack, so that
// the codes of the call instruction do not describe the state after it.
func stepVector(u *Unwinder, v *pevec.Vector, p *pevec.Point, stacks *pevec.Stacks) (why string, err error) {
	mem, err := stacks.Window(v, p)
	if err != nil {
		return "", err
	}
	regs, err := v.RegsARM64(p)
	if err != nil {
		return "", err
	}
	want, err := v.WantARM64(p, &regs)
	if err != nil {
		return "", err
	}
	var f unwind.Frame
	if _, stop := stepOf(u, &regs, true, mem, nil, &f); stop != unwind.StopNone {
		return stop.String(), nil
	}
	return pevec.DiffARM64(&regs, &want), nil
}

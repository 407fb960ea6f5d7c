package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/internal/pevec"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
)

// BenchmarkStepPE is one step per kind: warm by a cached rule, cold by reading
// the unwind information.
func BenchmarkStepPE(b *testing.B) {
	for name, k := range peKinds() {
		for _, mode := range []string{"warm", "cold"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				u, mem, f := peUnwinder(k.im), peMemory(), unwind.Frame{}
				u.DisableCache(mode == "cold")
				start := peRegs(peFn + k.into)
				b.ReportAllocs()
				for b.Loop() {
					regs := start
					if _, stop := u.Step(&regs, true, mem, nil, &f); stop != unwind.StopNone {
						b.Fatal(stop)
					}
				}
			})
		}
	}
}

// BenchmarkStepPEReal steps from every point recorded from real binaries by
// their unwind information; one operation is one step, and the look-up of the
// function is part of it.
func BenchmarkStepPEReal(b *testing.B) {
	var steps []func(*Unwinder) unwind.Stop
	eachPE(b, "amd64-exec", func(v *pevec.Vector) error {
		stacks := new(pevec.Stacks)
		im := v.Image()
		table := peTable(im, uint64(v.Base))
		regs, err := v.AMD64(&v.Points[0])
		if err != nil {
			return err
		}
		mem, err := stacks.Window(v, &v.Points[0])
		if err != nil {
			return err
		}
		steps = append(steps, func(u *Unwinder) unwind.Stop {
			r, f := regs, unwind.Frame{}
			_, stop := u.stepPE(table.At(0), &r, true, mem, &unbounded, &f)
			return stop
		})
		return nil
	})
	u, i := New(), 0
	b.ReportAllocs()
	for b.Loop() {
		if stop := steps[i%len(steps)](u); stop != unwind.StopNone {
			b.Fatal(stop)
		}
		i++
	}
}

// BenchmarkFindPE looks functions up in a table of 20,000.
func BenchmarkFindPE(b *testing.B) {
	fns := make([]pe.RuntimeFunction, 20000)
	for i := range fns {
		fns[i] = pe.RuntimeFunction{Begin: uint32(i) * 0x100, End: uint32(i)*0x100 + 0xf0, Unwind: 0x1000000}
	}
	im, at := pe.FromBlocks(pe.MachineAMD64, entries(fns...), nil), uint32(0)
	for b.Loop() {
		if _, why := im.FindAMD64(at % (20000 * 0x100) &^ 0xff); why != pe.OK {
			b.Fatal(why)
		}
		at += 0x9e3779b9
	}
}

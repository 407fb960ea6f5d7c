package amd64

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// BenchmarkStepPE is one step per kind: warm by a cached rule, cold by reading
// the unwind information.
func BenchmarkStepPE(b *testing.B) {
	for name, k := range peKinds() {
		for _, mode := range []string{"warm", "cold"} {
			b.Run(name+"/"+mode, func(b *testing.B) {
				u, mem, f := peUnwinder(k.im), peMemory(), unwind.Frame{}
				u.DisableCache(mode == "cold")
				start, from := peRegs(peFn+k.into), unwind.State{Regs: new(context.Registers)}
				b.ReportAllocs()
				for b.Loop() {
					begin(&from, &start, true)
					if stop := u.Step(&from, mem, nil, &f); stop != unwind.StopNone {
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
	from := unwind.State{Regs: new(context.Registers)}
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
			f := unwind.Frame{}
			begin(&from, &regs, true)
			_, stop := u.stepPE(table.At(0), &from, mem, &unbounded, &f)
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
	fns := make([]peamd64.RuntimeFunction, 20000)
	for i := range fns {
		fns[i] = peamd64.RuntimeFunction{Begin: uint32(i) * 0x100,
			End: uint32(i)*0x100 + 0xf0, Unwind: 0x1000000}
	}
	im, at := pe.FromBlocks(pe.MachineAMD64, entries(fns...), nil), uint32(0)
	for b.Loop() {
		if _, why := im.AMD64().Find(at % (20000 * 0x100) &^ 0xff); why != peamd64.OK {
			b.Fatal(why)
		}
		at += 0x9e3779b9
	}
}

// deepPE is deep's stack of Windows functions, each saving eight registers.
func deepPE(n int) (*Unwinder, *memory.Window) {
	fns, codes := make([]peamd64.RuntimeFunction, n), pe.Block{RVA: peInfo}
	text := pe.Block{RVA: 1 << 20, Data: make([]byte, 256*n)}
	for i := range fns {
		fns[i] = peamd64.RuntimeFunction{Begin: uint32(1<<20 + 256*i), End: uint32(1<<20 + 256*i + 240),
			Unwind: peInfo + uint32(len(codes.Data))}
		codes.Data = append(codes.Data,
			info(1, 0, 19, 0, 19, 0x42, 15, 0xf0, 13, 0xe0, 11, 0xd0, 9, 0xc0, 7, 0x70,
				6, 0x60, 5, 0x50, 4, 0x30)...)
	}
	im := pe.FromBlocks(pe.MachineAMD64, entries(fns...), []pe.Block{text, codes})
	mem := peMemory()
	for i := range n {
		ra := uint64(peBase + 1<<20 + 256*(i+1) + 0x40)
		if i == n-1 {
			ra = jitIP
		}
		b, _ := mem.Bytes(peRSP+112*uint64(i)+104, 8)
		binary.LittleEndian.PutUint64(b, ra)
	}
	m := module.Module{Start: peBase, End: peBase + 1<<28, Bias: peBase, PE: im}
	return unwinder(module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}})), mem
}

// BenchmarkWalkPE is BenchmarkWalk on Windows functions.
func BenchmarkWalkPE(b *testing.B) {
	for _, n := range []int{1, 8, 32, 128} {
		for _, mode := range []string{"warm", "cold", "off"} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				u, mem := deepPE(n)
				u.DisableCache(mode == "off")
				out, from := make([]unwind.Frame, n+1), unwind.State{Regs: new(context.Registers)}
				b.ReportAllocs()
				for b.Loop() {
					if mode == "cold" {
						u.flush()
					}
					r := peRegs(1<<20 + 0x40)
					begin(&from, &r, true)
					if got := u.Walk(&from, mem, nil, out); got.N != n || got.Stop != unwind.Managed {
						b.Fatal(got)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/frame")
			})
		}
	}
}

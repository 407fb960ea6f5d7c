package amd64

import (
	"bytes"
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

// PE images, registers and stacks made by hand.

const (
	peBase   = 0x1_4000_0000
	peFn     = 0x1000 // RVA of the function under test, peLen bytes
	peLen    = 0x100
	peInfo   = 0x5000 // RVA of its UNWIND_INFO
	peStack  = 0x7000_0000
	peRSP    = peStack + 0x8000
	peTagged = 0x0077 << 48 // a stack word is its own address with this
)

// peTable is a module table of one PE image.
func peTable(im *pe.File, base uint64) *module.Table { return peTableGen(1, im, base) }

func peTableGen(gen uint32, im *pe.File, base uint64) *module.Table {
	return module.NewTable(gen,
		[]module.Module{{ID: 1, Start: base, End: base + 1<<32 - 1, Bias: base, PE: im}}, nil)
}

// word is what the made stack holds at an address.
func word(at uint64) uint64 { return at | peTagged }

// peMemory is the made stack.
func peMemory() *memory.Window {
	data := make([]byte, 0x20000)
	for i := uint64(0); i < uint64(len(data)); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], word(peStack+i))
	}
	return memory.New(memory.Run{Addr: peStack, Data: data})
}

// peRegs are the registers at an RVA: each holds something of its own, RBP and
// R12 a place on the stack.
func peRegs(rva uint32) Registers {
	r := Registers{RIP: peBase + uint64(rva), Known: context.AMD64All}
	for i := range r.GPR {
		r.GPR[i] = 0xabc0_0000 + uint64(i)
	}
	for i := range r.XMM {
		r.XMM[i] = context.XMM{uint64(i), ^uint64(i)}
	}
	r.GPR[context.RSP], r.GPR[context.RBP], r.GPR[context.R12] = peRSP, peRSP+0x400, peRSP+0x600
	return r
}

// entries writes RUNTIME_FUNCTIONs.
func entries(fns ...peamd64.RuntimeFunction) (b []byte) {
	for _, f := range fns {
		for _, v := range []uint32{f.Begin, f.End, f.Unwind} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}

// peImage is an image of one function with this unwind information and code at
// its begin; the rest of it is nops. Where no entry is there are returns.
func peImage(info, code []byte, more ...pe.Block) *pe.File {
	return peImageOf(pe.MachineAMD64, info, code, nil, more...)
}

func peImageOf(machine uint16, info, code []byte,
	others []peamd64.RuntimeFunction, more ...pe.Block) *pe.File {
	text := make([]byte, peLen)
	for i := copy(text, code); i < len(text); i++ {
		text[i] = 0x90
	}
	fns := append([]peamd64.RuntimeFunction{{Begin: peFn, End: peFn + peLen, Unwind: peInfo}}, others...)
	return pe.FromBlocks(machine, entries(fns...),
		append(more, pe.Block{RVA: peFn, Data: text},
			pe.Block{RVA: peLeaf, Data: bytes.Repeat([]byte{0xc3}, 0x400)},
			pe.Block{RVA: peInfo, Data: info}))
}

// info writes an UNWIND_INFO head, then codes, padded to an even number.
func info(version, flags, prolog, frame byte, codes ...byte) []byte {
	b := append([]byte{version | flags<<3, prolog, byte(len(codes) / 2), frame}, codes...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// chained is information whose parent is fn.
func chained(frame byte, fn peamd64.RuntimeFunction, codes ...byte) []byte {
	return append(info(1, peamd64.UNW_FLAG_CHAININFO, 0, frame, codes...), entries(fn)...)
}

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

// BenchmarkStepPEReal steps from every point that was recorded from real binaries. One operation is one step,
// with the lookup of the function.
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

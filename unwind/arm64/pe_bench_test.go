package arm64

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// deepPE returns the same stack as deep, of Windows functions. Their packed unwind data saves
// x19-x24 and the frame record in 64 bytes (RegI 6, CR 3). The frame record is lowest.
func deepPE(n int) (*Unwinder, *memory.Window, Registers) {
	const packed = 1 | fnSize/4<<2 | 6<<16 | 3<<21 | 64/16<<23
	var pdata []byte
	for i := range n {
		pdata = binary.LittleEndian.AppendUint32(pdata, uint32(textLo+i*fnSize))
		pdata = binary.LittleEndian.AppendUint32(pdata, packed)
	}
	s := newStack()
	for i := range n {
		lr := at(i+1) + 0x20
		if i == n-1 {
			lr = jitIP
		}
		s.Set(sp0+64*uint64(i), sp0+64*uint64(i+1))
		s.Set(sp0+64*uint64(i)+8, lr)
	}
	text := pe.Block{RVA: textLo, Data: make([]byte, n*fnSize)} // no instruction of an epilog among them
	m := module.Module{Start: textBias, End: textBias + 1<<20, Bias: textBias,
		PE: pe.FromBlocks(pe.MachineARM64, pdata, []pe.Block{text})}
	r := start(at(0)+0x20, sp0)
	r.X[29] = sp0
	return unwinder(module.NewTable(1, []module.Module{m}, []memory.Range{{Start: jitLo, End: jitHi}})),
		s.Window(), r
}

// BenchmarkWalkPE is BenchmarkWalk on Windows functions.
func BenchmarkWalkPE(b *testing.B) {
	for _, n := range []int{1, 8, 32, 128} {
		for _, mode := range []string{"warm", "cold", "off"} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				u, mem, regs := deepPE(n)
				u.DisableCache(mode == "off")
				out, from := make([]unwind.Frame, n+1), unwind.State{Regs: new(context.Registers)}
				b.ReportAllocs()
				for b.Loop() {
					if mode == "cold" {
						u.flush()
					}
					r := regs
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

package arm64

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

const mul64 = 0x9E3779B97F4A7C15

// samePreserved compares what a step must restore.
func samePreserved(got, want *Registers) string {
	for i := 19; i < 30; i++ {
		if got.X[i] != want.X[i] {
			return "x" + strconv.Itoa(i)
		}
	}
	for i := range got.D {
		if got.D[i] != want.D[i] {
			return "d" + strconv.Itoa(i+8)
		}
	}
	switch {
	case got.PC != want.PC:
		return "pc"
	case got.Sp != want.Sp:
		return "sp"
	}
	return ""
}

// TestPERules: where unwind codes compile to a rule, the rule does what running
// them does, at every point of the vectors.
func TestPERules(t *testing.T) {
	for _, file := range []string{"exec", "native", "synth", "packedx"} {
		t.Run(file, func(t *testing.T) {
			var stacks pevec.Stacks
			u, points, compiled := New(), 0, 0
			_, err := pevec.Each("arm64-"+file+".jsonl.gz", func(v *pevec.Vector) error {
				m := &module.Module{Bias: uint64(v.Base), PE: v.Image()}
				for i := range v.Points {
					p := &v.Points[i]
					mem, err := stacks.Window(v, p)
					if err != nil {
						return err
					}
					regs, err := v.RegsARM64(p)
					if err != nil {
						return err
					}
					points++
					why, fast := u.ruleAgainstRun(t, m, &regs, mem)
					if why != "" {
						t.Errorf("%s pc %#x %s %q: %s", v.ID, uint64(*p.PC), p.Where, p.Ins, why)
					}
					if fast {
						compiled++
					}
				}
				return nil
			})
			if errors.Is(err, pevec.ErrAbsent) {
				t.Skip("SKIPPED-CHECK: ", err)
			}
			t.Logf("arm64-%s: %d points, %d by a packed rule too", file, points, compiled)
			expect.True(t, err == nil && compiled >= points/2,
				"%v: only %d of %d points have a rule", err, compiled, points)
		})
	}
}

// ruleAgainstRun steps by running the codes and, where they compile, by the rule.
func (u *Unwinder) ruleAgainstRun(t *testing.T, m *module.Module, regs *Registers,
	mem *memory.Window) (why string, compiled bool) {
	t.Helper()
	codes, kind := u.codesAt(m, regs.PC)
	if kind != RulePE {
		return "", false
	}
	slow, fast, f := *regs, *regs, unwind.Frame{}
	_, ran := leaveOf(&slow, true,
		func(s *unwind.State) (bool, unwind.Stop) { return u.runCodes(codes, s, mem, &unbounded, &f) })
	u.undo.compile()
	if u.undo.codes(codes) != undone {
		return "", false
	}
	r, ok := u.undo.pack(0)
	if !ok {
		return "", false
	}
	if stop := stepRule(t, &r, &fast, true, mem, &f); stop != ran {
		return "the rule ends with " + stop.String() + ", running the codes with " + ran.String(), true
	}
	return samePreserved(&fast, &slow), true
}

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

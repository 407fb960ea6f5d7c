package arm64

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// BenchmarkStep is one warm step per kind of rule.
func BenchmarkStep(b *testing.B) {
	for _, e := range cfiEffects {
		if e.stop != unwind.StopNone {
			continue
		}
		b.Run(e.kind.String()+"/"+e.name, func(b *testing.B) {
			u, s, r := unwinder(makeTable(b, nil, fn{program: e.program, signal: e.signal}, fn{})),
				newStack(), start(at(0), sp0)
			if e.prepare != nil {
				e.prepare(s, &r)
			}
			mem := s.window()
			var f unwind.Frame
			from := unwind.State{Regs: new(context.Registers)}
			for b.Loop() {
				begin(&from, &r, !e.ret)
				if stop := u.Step(&from, mem, nil, &f); stop != unwind.StopNone {
					b.Fatal(stop)
				}
			}
		})
	}
}

// BenchmarkUndo is one run of unwind codes, and the rule made from them.
func BenchmarkUndo(b *testing.B) {
	codes := []byte{0xe1, 0xe6, 0xd8, 0x0a, 0xe6, 0xe6, 0xe6, 0xc8, 0x02, 0x8b, 0xfc, 0xe4}
	u, mem := New(), testStack()
	f, from := unwind.Frame{}, unwind.State{Regs: new(context.Registers)}
	b.Run("codes", func(b *testing.B) {
		for b.Loop() {
			regs := testRegs()
			begin(&from, &regs, true)
			if _, stop := u.runCodes(codes, &from, mem, &unbounded, &f); stop != unwind.StopNone {
				b.Fatal(stop)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			u.undo.compile()
			must.True(b, u.undo.codes(codes) == undone, "refused")
			if _, ok := u.undo.pack(0); !ok {
				b.Fatal("does not fit")
			}
		}
	})
	b.Run("rule", func(b *testing.B) {
		u.undo.compile()
		u.undo.codes(codes)
		r, _ := u.undo.pack(0)
		for b.Loop() {
			regs := testRegs()
			begin(&from, &regs, true)
			if stop := u.stepSlots(&r, &from, mem, &unbounded, &f); stop != unwind.StopNone {
				b.Fatal(stop)
			}
		}
	})
}

// deep is a stack of n frames, each of a function of its own, saving x19-x24
// and the frame record: what a compiler makes of big functions.
func deep(tb testing.TB, n int) (*Unwinder, *stack) {
	fns := make([]fn, n)
	for i := range fns {
		fns[i].program = []byte{0x0e, 64, 0x9d, 8, 0x9e, 7, 0x93, 6, 0x94, 5,
			0x95, 4, 0x96, 3, 0x97, 2, 0x98, 1}
	}
	s := newStack()
	for i := range n {
		lr := at(i + 1)
		if i == n-1 {
			lr = jitIP
		}
		s.set(sp0+64*uint64(i)+8, lr)
	}
	return unwinder(makeTable(tb, nil, fns...)), s
}

// BenchmarkWalk reports ns/frame: warm from the rule cache, cold with every
// rule computed again.
func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{1, 8, 32, 100} {
		for _, mode := range []string{"warm", "cold"} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				u, s := deep(b, n)
				u.DisableCache(mode == "cold")
				mem, out := s.window(), make([]unwind.Frame, n+1)
				from := unwind.State{Regs: new(context.Registers)}
				b.ReportAllocs()
				for b.Loop() {
					r := start(at(0), sp0)
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

// BenchmarkRecorded walks every recorded stack once per round.
func BenchmarkRecorded(b *testing.B) {
	var all []*recorded
	eachSnapshot(b, func(r *recorded) { all = append(all, r) })
	for _, mode := range []string{"warm", "cold"} {
		b.Run(mode, func(b *testing.B) {
			frames, s := 0, unwind.State{Regs: new(context.Registers)}
			var out [256]unwind.Frame
			b.ReportAllocs()
			for b.Loop() {
				for i, r := range all {
					if mode == "cold" && (i == 0 || all[i-1].u != r.u) {
						r.u.flush()
					}
					begin(&s, &r.reg, true)
					frames += r.u.Walk(&s, r.mem, nil, out[:]).N
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
		})
	}
}

// BenchmarkGuess is a step out of managed code by its frame record: that no unwind data
// covers the code is kept, and so is what is known of the return address.
func BenchmarkGuess(b *testing.B) {
	for _, mode := range []string{"warm", "cold"} {
		b.Run(mode, func(b *testing.B) {
			u, s := unwinder(makeTable(b, nil, fn{})), newStack()
			u.DisableCache(mode == "cold")
			s.set(sp0+24, jitIP+0x40)
			mem, bounds := s.window(), unwind.Bounds{Guess: true}
			var f unwind.Frame
			from := unwind.State{Regs: new(context.Registers)}
			b.ReportAllocs()
			for b.Loop() {
				r := start(jitIP, sp0)
				r.X[regFP] = sp0 + 16
				begin(&from, &r, false)
				if stop := u.Step(&from, mem, &bounds, &f); stop != unwind.StopNone {
					b.Fatal(stop)
				}
			}
		})
	}
}

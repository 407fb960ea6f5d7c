package walktest

import (
	"fmt"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// Deep returns a stack of n frames, each of a Big function of its own, and a walker that knows them.
func (l *Lab) Deep(tb testing.TB, n int) (Walker, *Stack) {
	fns, s := make([]Fn, n), NewStack()
	for i := range fns {
		fns[i] = l.Big
		ra := At(i + 1)
		if i == n-1 {
			ra = JitIP
		}
		s.Set(SP0+64*uint64(i)+l.BigReturn, ra)
	}
	return l.New(tb, fns...), s
}

// BenchmarkWalk reports ns/frame of walks of up to most frames: warm from the rule cache, cold with every
// rule computed again.
func (l *Lab) BenchmarkWalk(b *testing.B, most int) {
	for _, n := range []int{1, 8, 32, most} {
		for _, mode := range []string{"warm", "cold"} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				u, stack := l.Deep(b, n)
				u.DisableCache(mode == "cold")
				mem, out, r := stack.Window(), make([]unwind.Frame, n+1), l.Start(At(0), SP0)
				s := unwind.State{Regs: new(context.Registers)}
				b.ReportAllocs()
				for b.Loop() {
					begin(&s, &r, true)
					if got := u.Walk(&s, mem, nil, out); got.N != n || got.Stop != unwind.Managed {
						b.Fatal(got)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/frame")
			})
		}
	}
}

// begin makes s the frame in registers r. It copies only the registers of r's architecture.
func begin(s *unwind.State, r *context.Registers, exact bool) {
	s.Regs.Copy(r)
	s.Exact, s.Trust = exact, unwind.TrustContext
}

// BenchmarkRecorded walks every recorded stack once per round.
func (l *Lab) BenchmarkRecorded(b *testing.B) {
	var all []*recorded
	l.snapshots(b, func(r *recorded) { all = append(all, r) })
	for _, mode := range []string{"warm", "cold"} {
		b.Run(mode, func(b *testing.B) {
			frames, s := 0, unwind.State{Regs: new(context.Registers)}
			var out [256]unwind.Frame
			b.ReportAllocs()
			for b.Loop() {
				for i, r := range all {
					if mode == "cold" && (i == 0 || all[i-1].Walker != r.Walker) {
						r.Walker.DisableCache(false)
					}
					begin(&s, &r.Regs, true)
					frames += r.Walker.Walk(&s, r.Mem, nil, out[:]).N
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
		})
	}
}

// BenchmarkGuess steps out of managed code by its frame pointer. The walker keeps two facts: no unwind data
// covers the code, and the return address is one.
func (l *Lab) BenchmarkGuess(b *testing.B) {
	for _, mode := range []string{"warm", "cold"} {
		b.Run(mode, func(b *testing.B) {
			u, stack, r := l.plain(b), NewStack(), l.Start(JitIP, SP0)
			u.DisableCache(mode == "cold")
			stack.Set(SP0+24, JitIP+0x40)
			r.SetFP(SP0 + 16)
			mem, bounds := stack.Window(), unwind.Bounds{Guess: true}
			var f unwind.Frame
			s := unwind.State{Regs: new(context.Registers)}
			b.ReportAllocs()
			for b.Loop() {
				begin(&s, &r, false)
				if stop := u.Step(&s, mem, &bounds, &f); stop != unwind.StopNone {
					b.Fatal(stop)
				}
			}
		})
	}
}

package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// keptARM64 are the general registers that every function preserves: X19-X29.
const keptARM64 = 0x7ff << 19

// worldARM64 is an image of n random functions and more, and a thread.
func worldARM64(tb testing.TB, f image.Format, seed uint64, n int) *world {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 64))
	var funcs []image.Func
	for i := range n {
		funcs = append(funcs, image.RandomARM64(r, f, fmt.Sprintf("f%d", i)))
	}
	root := must.Get(image.ShapeARM64{RegI: 2, FrameSize: 64, Calls: 3, Body: 4, Root: true}.Func(f,
		"root"))(tb)
	funcs = append(funcs, root)
	if f == image.ELF {
		tramp := image.SignalReturn(image.ARM64)
		if seed%2 == 1 {
			tramp = image.RestoreRT(image.ARM64)
		}
		funcs = append(funcs, tramp)
	}
	im := must.Get(image.Build(image.ARM64, f, "random", imageBase, funcs))(tb)
	return worldOf(tb, im, seed)
}

// diffARM64 compares the known registers. X19 to X29 and D8 to D15, which functions preserve, must be
// known. X30 is compared without its pointer authentication code.
func diffARM64(got *context.ARM64, want *State) (s string) {
	if got.PC != want.PC {
		s += fmt.Sprintf(" pc %#x, not %#x", got.PC, want.PC)
	}
	if got.Sp != want.R[31] {
		s += fmt.Sprintf(" sp %#x, not %#x", got.Sp, want.R[31])
	}
	for r, v := range got.X {
		same := v == want.R[r] || r == 30 && strip(v) == strip(want.R[r])
		if got.Known>>r&1 != 0 && !same {
			s += fmt.Sprintf(" x%d %#x, not %#x", r, v, want.R[r])
		}
	}
	for i, v := range got.D {
		if got.Known>>(32+i)&1 != 0 && v != want.V[8+i][0] {
			s += fmt.Sprintf(" d%d %#x, not %#x", 8+i, v, want.V[8+i][0])
		}
	}
	if missing := (keptARM64 | 0xff<<32) &^ got.Known; missing != 0 {
		s += fmt.Sprintf(" unknown %#x", missing)
	}
	return s
}

// TestEveryPackedARM64 checks the stack at every op of functions with every combination of the fields of a
// packed word, and with frame sizes at every edge of the prolog's forms.
func TestEveryPackedARM64(t *testing.T) {
	var funcs []image.Func
	ops := 0
	flush := func() {
		w := worldOf(t, must.Get(image.Build(image.ARM64, image.PE, "packed", imageBase, funcs))(t), 5)
		for _, fn := range w.fns {
			ops += w.through(fn)
		}
		funcs = funcs[:0]
	}
	count := 0
	for _, s := range packedShapes() {
		if len(funcs) == 0 {
			root := must.Get(image.ShapeARM64{FramePointer: true, Calls: 1,
				Root: true}.Func(image.PE, "root"))(t)
			funcs = append(funcs, root)
		}
		fn := must.Get(s.Func(image.PE, fmt.Sprintf("%+v", s)))(t)
		funcs = append(funcs, fn)
		if count++; len(funcs) == 500 {
			flush()
		}
	}
	flush()
	t.Logf("%d functions, %d instructions", count, ops)
}

// packedShapes lists the shapes that a packed word can describe.
func packedShapes() (all []image.ShapeARM64) {
	for regI := range 11 {
		for regF := range 9 {
			if regF == 1 {
				continue // RegF n means n+1 registers
			}
			for variant := range 8 {
				s := image.ShapeARM64{RegI: regI, RegF: regF, Homing: variant&1 != 0, Packed: true, Body: 1}
				s.Link, s.FramePointer, s.PAC = variant>>1 == 1, variant>>1 >= 2, variant>>1 == 3
				if s.Link || s.FramePointer {
					s.Calls = 1
				}
				save := uint32(regI+regF+variant&1*8+index(s.Link)) * 8
				save = (save + 15) &^ 15
				for _, local := range []uint32{0, 16, 480, 496, 528, 4080, 4096, 7900} {
					s.FrameSize = save + local
					all = append(all, s)
				}
			}
		}
	}
	return all
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestSignalTrampolines walks from signal handlers through a trampoline with CFI, and through one without.
// Both walks take the registers that the kernel saved: before Linux 5.8, the CFI is wrong.
func TestSignalTrampolines(t *testing.T) {
	for name, tramp := range map[string]image.Func{"cfi": image.SignalReturn(image.ARM64),
		"code": image.RestoreRT(image.ARM64)} {
		t.Run(name, func(t *testing.T) {
			root := must.Get(image.ShapeARM64{RegI: 3, RegF: 2, FramePointer: true, PAC: true, Calls: 1,
				Body: 3, Root: true}.Func(image.ELF, "root"))(t)
			handler := must.Get(image.ShapeARM64{RegI: 10, RegF: 8, Link: true, Body: 2}.Func(image.ELF,
				"handler"))(t)
			funcs := []image.Func{root, handler, tramp}
			w := worldOf(t, must.Get(image.Build(image.ARM64, image.ELF, "signal", imageBase, funcs))(t), 3)
			w.t.Start(w.im, w.roots[0])
			for range root.Ops[1:] {
				before := *w.t
				must.True(t, w.t.Interrupt(w.im, w.fns[0]), "no signal")
				for w.t.Depth() > before.Depth() {
					w.check()
					w.t.Step()
				}
				*w.t = before
				if w.t.Step() == AtCall {
					w.t.Skip()
				}
			}
			regs, f := context.FromARM64(w.tramp(t)), unwind.Frame{}
			at := unwind.Interrupted(&regs)
			w.mem.Reset(w.t.Stack())
			stop := w.walker.Step(&at, &w.mem, nil, &f)
			expect.True(t, stop == unwind.StopNone && at.Trust == unwind.TrustLeaf &&
				f.Kind == unwind.KindSignal, "%v, trust %v, kind %v", stop, at.Trust, f.Kind)
		})
	}
}

// tramp returns the registers at the trampoline, after the handler has returned.
func (w *world) tramp(t *testing.T) context.ARM64 {
	t.Helper()
	w.t.Start(w.im, w.roots[0])
	if !w.t.Interrupt(w.im, w.fns[0]) || !w.t.RunTo(func(t *Thread) bool {
		fn := w.im.Find(t.State().PC)
		return fn != nil && fn.Entry == image.SignalFrame
	}, 100) {
		t.Fatal("no signal returned")
	}
	st := w.t.State()
	return st.ARM64()
}

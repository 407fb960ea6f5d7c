package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
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
		funcs = append(funcs, image.SignalReturn(image.ARM64))
	}
	im := must.Get(image.Build(image.ARM64, f, "random", imageBase, funcs))(tb)
	w := &world{tb: tb, im: im, t: New(image.ARM64, stackLow, stackHigh, seed)}
	for i := range im.Funcs {
		switch fn := &im.Funcs[i]; {
		case fn.Root:
			w.roots = append(w.roots, fn)
		case fn.Entry == image.Called:
			w.fns = append(w.fns, fn)
		}
	}
	return w
}

// walkerARM64 is the real walker over the image's own unwind data.
func (w *world) walkerARM64() *arm64.Unwinder {
	w.tb.Helper()
	u := arm64.New()
	u.SetTable(w.table())
	return u
}

// checkWalkARM64 compares every step of u from the leaf with the truth.
func (w *world) checkWalkARM64(u *arm64.Unwinder, mem *memory.Window, out []Frame) {
	regs := out[0].State.Registers(image.ARM64)
	at := unwind.Interrupted(&regs)
	var f unwind.Frame
	for i := range out {
		stop := u.Step(&at, mem, nil, &f)
		if i == len(out)-1 {
			if stop != unwind.EndOfStack {
				w.tb.Fatalf("%s: the last frame ends with %v", w.where(), stop)
			}
			return
		}
		want := &out[i+1]
		if stop != unwind.StopNone || at.Exact != want.Exact {
			w.tb.Fatalf("%s: frame %d (%s): %v, exact %v", w.where(), i, out[i].Func.Name, stop, at.Exact)
		}
		if d := diffARM64(&regs.ARM64, &want.State); d != "" {
			w.tb.Fatalf("%s: frame %d of %s, from %s:%s", w.where(), i+1, want.Func.Name, out[i].Func.Name, d)
		}
	}
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

func TestWalkARM64PE(t *testing.T)  { walkRandomARM64(t, image.PE) }
func TestWalkARM64ELF(t *testing.T) { walkRandomARM64(t, image.ELF) }

// walkRandomARM64 walks every stack of random runs, by rows and with the real
// walker over the image's own unwind data.
func walkRandomARM64(t *testing.T, f image.Format) {
	frames := 0
	for seed := range uint64(10) {
		w := worldARM64(t, f, seed, 100)
		u := w.walkerARM64()
		var out []Frame
		var mem memory.Window
		w.run(rand.New(rand.NewPCG(seed, 5)), 1500, 8, func() {
			checkRowsARM64(t, w.t)
			out = w.t.Truth(out)
			mem.Reset(w.t.Stack())
			frames += len(out)
			w.checkWalkARM64(u, &mem, out)
		})
	}
	t.Logf("%d frames", frames)
}

func TestEveryOpARM64PE(t *testing.T)  { everyOpARM64(t, image.PE) }
func TestEveryOpARM64ELF(t *testing.T) { everyOpARM64(t, image.ELF) }

// everyOpARM64 steps through thousands of functions, called by the root, and
// walks at every op; at a call once more from inside what it calls.
func everyOpARM64(t *testing.T, f image.Format) {
	ops, fns := 0, 0
	for seed := range uint64(20) {
		w := worldARM64(t, f, 100+seed, 150)
		u := w.walkerARM64()
		var out []Frame
		var mem memory.Window
		check := func() {
			checkRowsARM64(t, w.t)
			out = w.t.Truth(out)
			mem.Reset(w.t.Stack())
			w.checkWalkARM64(u, &mem, out)
		}
		atCall := func(t *Thread) bool { _, call := t.callOp(); return call }
		for _, fn := range w.fns {
			w.t.Start(w.im, w.roots[0])
			if !w.t.RunTo(atCall, 100) || !w.t.Call(w.im, fn) {
				t.Fatalf("%s cannot run", fn.Name)
			}
			ops += w.through(fn, check)
			fns++
		}
	}
	t.Logf("%d functions, %d instructions", fns, ops)
}

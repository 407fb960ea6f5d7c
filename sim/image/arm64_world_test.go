package image_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// armWorld is an image of random ARM64 functions, a thread that runs them, and
// the real unwinder over the image's own bytes.
type armWorld struct {
	tb   testing.TB
	im   *image.Image
	root *image.Func
	fns  []*image.Func
	t    *machine.Thread
	u    *arm64.Unwinder
	mem  memory.Window
	out  []machine.Frame
}

// newARM64 makes n random functions, a root and, in ELF, a signal trampoline.
func newARM64(tb testing.TB, f image.Format, seed uint64, n int) *armWorld {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	root := must.Get(image.ShapeARM64{RegI: 3, FramePointer: true, FrameSize: 96, Calls: 3, Body: 4,
		Root: true}.Func(f, "root"))(tb)
	funcs := []image.Func{root}
	for i := range n {
		funcs = append(funcs, image.RandomARM64(r, f, fmt.Sprintf("f%d", i)))
	}
	if f == image.ELF && seed%2 == 0 {
		funcs = append(funcs, image.SignalReturn(image.ARM64))
	} else if f == image.ELF {
		funcs = append(funcs, image.RestoreRT(image.ARM64))
	}
	return worldOf(tb, f, seed, funcs)
}

// worldOf makes a world of these functions; the first is the root.
func worldOf(tb testing.TB, f image.Format, seed uint64, funcs []image.Func) *armWorld {
	tb.Helper()
	im := must.Get(image.Build(image.ARM64, f, "random", imageBase, funcs))(tb)
	w := &armWorld{tb: tb, im: im, t: machine.New(image.ARM64, stackLow, stackHigh, seed)}
	for i := range im.Funcs {
		switch fn := &im.Funcs[i]; {
		case fn.Root:
			w.root = fn
		case fn.Entry == image.Called:
			w.fns = append(w.fns, fn)
		}
	}
	w.u = arm64.New()
	w.u.SetTable(module.NewTable(1, []module.Module{moduleOf(tb, im)}, nil))
	return w
}

// moduleOf reads an image's bytes, in which nothing may be wrong.
func moduleOf(tb testing.TB, im *image.Image) (m module.Module) {
	tb.Helper()
	if im.Format == image.PE {
		file, err := pe.FromMemory(im.File, im.Name)
		if err != nil || len(file.Problems()) != 0 {
			tb.Fatal(err, file.Problems())
		}
		m = module.PEFromFile(1, file, im.Name, im.Base, im.End())
	} else {
		file, err := elf.New(im.File, im.Name)
		if err != nil || len(file.Problems()) != 0 {
			tb.Fatal(err, file.Problems())
		}
		m = module.ELFFromFile(1, file, im.Name, im.Base, im.End(), im.Base)
	}
	if m.Err != nil {
		tb.Fatal(m.Err)
	}
	return m
}

func (w *armWorld) where() string {
	f := w.out[0].Func
	pc := w.out[0].State.PC - w.im.Base - uint64(f.RVA)
	s := fmt.Sprintf("%s+%#x (fragment at %#x, noinfo %v):", f.Name, pc, f.Chained, f.NoInfo)
	for i := range f.Ops {
		mark := ""
		if uint64(f.Ops[i].Off) == pc {
			mark = "*"
		}
		s += fmt.Sprintf(" %s%d:%x", mark, f.Ops[i].Part, f.Ops[i].Code)
	}
	return s
}

// check compares every frame with the truth, by rows and by the real unwinder.
func (w *armWorld) check() {
	w.out = w.t.Truth(w.out)
	w.mem.Reset(w.t.Stack())
	row, regs := w.out[0].State, w.out[0].State.Registers(image.ARM64)
	at := unwind.Interrupted(&regs)
	var f unwind.Frame
	for i := range w.out {
		stop := w.u.Step(&at, &w.mem, nil, &f)
		rowExact, ok := machine.StepRow(image.ARM64, w.im, w.out[i].Func, &row, w.t.Word)
		if i == len(w.out)-1 {
			if stop != unwind.EndOfStack || ok {
				w.tb.Fatalf("%s: the first function's frame ends with %v, its row is left: %v",
					w.where(), stop, ok)
			}
			return
		}
		want := &w.out[i+1]
		if stop != unwind.StopNone || at.Exact != want.Exact || !ok || rowExact != at.Exact {
			w.tb.Fatalf("frame %d (%s): %v, exact %v, %v by row: %v\n%s", i, w.out[i].Func.Name, stop,
				at.Exact, rowExact, ok, w.where())
		}
		if d := diffARM64(&regs.ARM64, &want.State); d != "" {
			w.tb.Fatalf("frame %d of %s, from %s:%s\n%s", i+1, want.Func.Name,
				w.out[i].Func.Name, d, w.where())
		}
		if d := diffRow(&row, &want.State); d != "" {
			w.tb.Fatalf("frame %d of %s, from %s, by row:%s\n%s", i+1, want.Func.Name,
				w.out[i].Func.Name, d, w.where())
		}
	}
}

// keptARM64 are x19-x29 and d8-d15 as context.ARM64 numbers them.
const keptARM64 = 0x7ff<<19 | 0xff<<32

// diffARM64 names what differs of the registers known; the nonvolatile ones have
// to be. x30 of a caller is dead.
func diffARM64(got *context.ARM64, want *machine.State) (s string) {
	if got.PC != want.PC {
		s += fmt.Sprintf(" pc %#x, not %#x", got.PC, want.PC)
	}
	if got.Sp != want.R[31] {
		s += fmt.Sprintf(" sp %#x, not %#x", got.Sp, want.R[31])
	}
	for r := 19; r < 30; r++ {
		if got.X[r] != want.R[r] {
			s += fmt.Sprintf(" x%d %#x, not %#x", r, got.X[r], want.R[r])
		}
	}
	for i := range got.D {
		if got.D[i] != want.V[8+i][0] {
			s += fmt.Sprintf(" d%d", 8+i)
		}
	}
	if missing := uint64(keptARM64) &^ got.Known; missing != 0 {
		s += fmt.Sprintf(" unknown %#x", missing)
	}
	return s
}

func diffRow(got, want *machine.State) (s string) {
	for r := 19; r < 32; r++ {
		if r != 30 && got.R[r] != want.R[r] {
			s += fmt.Sprintf(" x%d", r)
		}
	}
	for v := 8; v < 16; v++ {
		if got.V[v][0] != want.V[v][0] {
			s += fmt.Sprintf(" d%d", v)
		}
	}
	if got.PC != want.PC {
		s += " pc"
	}
	return s
}

// through runs fn to its end. The root calls fn. It checks the unwind data at each op of fn, and
// at each call once more, from inside the called function. ops is the number of checked ops.
func (w *armWorld) through(fn *image.Func) (ops int) {
	w.t.Start(w.im, w.root)
	atCall := func(t *machine.Thread) bool {
		op, _ := t.Op()
		return op != nil && len(op.Effects) > 0 && op.Effects[0].Kind == image.Call
	}
	if !w.t.RunTo(atCall, 100) || !w.t.Call(w.im, fn) {
		w.tb.Fatalf("%s cannot run", fn.Name)
	}
	for depth := w.t.Depth(); w.t.Depth() == depth; ops++ {
		if op, _ := w.t.Op(); op != &fn.Ops[ops] {
			w.tb.Fatalf("%s: not at op %d", fn.Name, ops)
		}
		w.check()
		before := *w.t
		if w.t.Step() == machine.AtCall {
			w.t.Call(w.im, w.fns[ops%len(w.fns)])
			w.check()
			*w.t = before
			w.t.Skip()
		}
	}
	if ops != len(fn.Ops) {
		w.tb.Fatalf("%s: %d of %d ops", fn.Name, ops, len(fn.Ops))
	}
	return ops
}

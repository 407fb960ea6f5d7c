package image_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/arm64"
)

const (
	imageBase = 0x7ff6_0000_0000
	stackLow  = 0x7e00_0000_0000
	stackHigh = stackLow + 1<<19
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
	root, err := image.ShapeARM64{RegI: 3, FramePointer: true, FrameSize: 96, Calls: 3, Body: 4, Root: true}.Func(f, "root")
	if err != nil {
		tb.Fatal(err)
	}
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
	im, err := image.Build(image.ARM64, f, "random", imageBase, funcs)
	if err != nil {
		tb.Fatal(err)
	}
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
				w.tb.Fatalf("%s: the first function's frame ends with %v, its row is left: %v", w.where(), stop, ok)
			}
			return
		}
		want := &w.out[i+1]
		if stop != unwind.StopNone || at.Exact != want.Exact || !ok || rowExact != at.Exact {
			w.tb.Fatalf("frame %d (%s): %v, exact %v, %v by row: %v\n%s", i, w.out[i].Func.Name, stop, at.Exact, rowExact, ok, w.where())
		}
		if d := diffARM64(&regs.ARM64, &want.State); d != "" {
			w.tb.Fatalf("frame %d of %s, from %s:%s\n%s", i+1, want.Func.Name, w.out[i].Func.Name, d, w.where())
		}
		if d := diffRow(&row, &want.State); d != "" {
			w.tb.Fatalf("frame %d of %s, from %s, by row:%s\n%s", i+1, want.Func.Name, w.out[i].Func.Name, d, w.where())
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

// through runs fn, called by the root, to its end and checks at each op, and at
// each call once more from inside of what it calls.
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

// TestEveryOpARM64 holds rows and unwinder against execution at every
// instruction of thousands of functions.
func TestEveryOpARM64(t *testing.T) {
	for _, f := range []image.Format{image.PE, image.ELF} {
		t.Run(f.String(), func(t *testing.T) {
			ops, fns := 0, 0
			for seed := range uint64(5) {
				w := newARM64(t, f, 100+seed, 200)
				for _, fn := range w.fns {
					ops += w.through(fn)
					fns++
				}
			}
			t.Logf("%d functions, %d instructions", fns, ops)
		})
	}
}

// TestEveryPackedARM64: every combination of fields a packed word has, with frame
// sizes at every edge of the prolog's forms, at every instruction.
func TestEveryPackedARM64(t *testing.T) {
	var funcs []image.Func
	ops := 0
	flush := func() {
		w := worldOf(t, image.PE, 5, funcs)
		for _, fn := range w.fns {
			ops += w.through(fn)
		}
		funcs = funcs[:0]
	}
	count := 0
	for _, s := range packedShapes() {
		if len(funcs) == 0 {
			root, err := image.ShapeARM64{FramePointer: true, Calls: 1, Root: true}.Func(image.PE, "root")
			if err != nil {
				t.Fatal(err)
			}
			funcs = append(funcs, root)
		}
		fn, err := s.Func(image.PE, fmt.Sprintf("%+v", s))
		if err != nil {
			t.Fatal(err)
		}
		funcs = append(funcs, fn)
		if count++; len(funcs) == 500 {
			flush()
		}
	}
	flush()
	t.Logf("%d functions, %d instructions", count, ops)
}

// packedShapes lists shapes that packed words say.
func packedShapes() (all []image.ShapeARM64) {
	for regI := range 11 {
		for regF := range 9 {
			if regF == 1 {
				continue // RegF n stands for n+1 registers
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

// TestSignalTrampolines: one with call frame information, one without.
func TestSignalTrampolines(t *testing.T) {
	for name, tramp := range map[string]image.Func{"cfi": image.SignalReturn(image.ARM64), "code": image.RestoreRT(image.ARM64)} {
		t.Run(name, func(t *testing.T) {
			root, err := image.ShapeARM64{RegI: 3, RegF: 2, FramePointer: true, PAC: true, Calls: 1, Body: 3, Root: true}.Func(image.ELF, "root")
			if err != nil {
				t.Fatal(err)
			}
			handler, err := image.ShapeARM64{RegI: 10, RegF: 8, Link: true, Body: 2}.Func(image.ELF, "handler")
			if err != nil {
				t.Fatal(err)
			}
			w := worldOf(t, image.ELF, 3, []image.Func{root, handler, tramp})
			w.t.Start(w.im, w.root)
			for range root.Ops[1:] {
				before := *w.t
				if !w.t.Interrupt(w.im, w.fns[0]) {
					t.Fatal("no signal")
				}
				for w.t.Depth() > before.Depth() {
					w.check()
					w.t.Step()
				}
				*w.t = before
				if w.t.Step() == machine.AtCall {
					w.t.Skip()
				}
			}
			regs, f := context.FromARM64(w.tramp(t)), unwind.Frame{}
			at := unwind.Interrupted(&regs)
			var mem memory.Window
			mem.Reset(w.t.Stack())
			stop := w.u.Step(&at, &mem, nil, &f)
			t.Logf("%v, trust %v, kind %v", stop, at.Trust, f.Kind)
			if cfi := at.Trust == unwind.TrustCFI; cfi != (name == "cfi") {
				t.Errorf("found by %v", at.Trust)
			}
		})
	}
}

// tramp returns the registers at the trampoline, the handler having returned.
func (w *armWorld) tramp(t *testing.T) context.ARM64 {
	t.Helper()
	w.t.Start(w.im, w.root)
	if !w.t.Interrupt(w.im, w.fns[0]) || !w.t.RunTo(func(t *machine.Thread) bool {
		fn := w.im.Find(t.State().PC)
		return fn != nil && fn.Entry == image.SignalFrame
	}, 100) {
		t.Fatal("no signal returned")
	}
	st := w.t.State()
	return st.ARM64()
}

// TestWalkARM64 walks every stack of random runs, with signals in ELF.
func TestWalkARM64(t *testing.T) {
	for _, f := range []image.Format{image.PE, image.ELF} {
		t.Run(f.String(), func(t *testing.T) {
			frames, signals := 0, 0
			for seed := range uint64(3) {
				a, b := newARM64(t, f, seed, 100).run(rand.New(rand.NewPCG(seed, 3)), 3000, 8)
				frames, signals = frames+a, signals+b
			}
			t.Logf("%d frames, %d signals", frames, signals)
			if f == image.ELF && signals == 0 {
				t.Error("no signals")
			}
		})
	}
}

// run calls random functions from every call site up to a depth.
func (w *armWorld) run(r *rand.Rand, steps, depth int) (frames, signals int) {
	w.t.Start(w.im, w.root)
	for range steps {
		w.check()
		frames += len(w.out)
		fn := w.fns[r.IntN(len(w.fns))]
		if r.IntN(40) == 0 && w.t.Depth() < depth && w.im.Format == image.ELF && w.t.Interrupt(w.im, fn) {
			signals++
			continue
		}
		switch w.t.Step() {
		case machine.AtCall:
			if w.t.Depth() >= depth || !w.t.Call(w.im, fn) {
				w.t.Skip()
			}
		case machine.Ended:
			w.t.Start(w.im, w.root)
		case machine.Diverted, machine.Faulted:
			w.tb.Fatalf("stopped: %s", w.where())
		}
	}
	return frames, signals
}

// TestFrameOf512: a frame record cannot be popped with 512 bytes, as ldp reaches
// 504; the canonical prolog therefore never pushes it with so many.
func TestFrameOf512(t *testing.T) {
	for size, want := range map[uint32]int64{496: 496, 512: 528, 528: 528} {
		fn, err := image.ShapeARM64{FramePointer: true, FrameSize: size, Packed: true}.Func(image.PE, "f")
		if err != nil {
			t.Fatal(err)
		}
		deepest := int64(0)
		for _, r := range fn.Rows(image.ARM64) {
			deepest = max(deepest, r.Off)
		}
		if deepest != want {
			t.Errorf("a frame of %d has %d bytes", size, deepest)
		}
	}
}

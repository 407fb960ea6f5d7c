package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

const (
	imageBase = 0x7ff6_0000_0000
	stackLow  = 0x7e00_0000_0000
	stackHigh = stackLow + 1<<19
)

// world is an image of random functions and a thread.
type world struct {
	tb    testing.TB
	im    *image.Image
	roots []*image.Func
	fns   []*image.Func // that can be called
	traps []*image.Func
	t     *Thread

	walker unwind.Walker // over the image's own unwind data
	mem    memory.Window
	out    []Frame // the true frames of the last check
}

// newWorld makes n random functions and more for roots and traps.
func newWorld(tb testing.TB, f image.Format, seed uint64, n int) *world {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	var funcs []image.Func
	for i := range n {
		funcs = append(funcs, image.RandomAMD64(r, f, fmt.Sprintf("f%d", i)))
	}
	root := must.Get(image.ShapeAMD64{Saves: []image.Reg{3}, Alloc: 64, Calls: 3,
		Body: 4, Root: true}.Func(f, "root"))(tb)
	funcs = append(funcs, root)
	if f == image.PE {
		for i := range 1 + n/16 {
			funcs = append(funcs, image.RandomTrapAMD64(r, fmt.Sprintf("trap%d", i)))
		}
	} else {
		funcs = append(funcs, image.SignalReturn(image.AMD64))
	}
	im := must.Get(image.Build(image.AMD64, f, "random", imageBase, funcs))(tb)
	return worldOf(tb, im, seed)
}

// worldOf makes a world of an image and sorts its functions by how they are entered.
func worldOf(tb testing.TB, im *image.Image, seed uint64) *world {
	w := &world{tb: tb, im: im, t: New(im.Arch, stackLow, stackHigh, seed)}
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		switch {
		case fn.Root:
			w.roots = append(w.roots, fn)
		case fn.Entry == image.Called:
			w.fns = append(w.fns, fn)
		case fn.Entry != image.SignalFrame:
			w.traps = append(w.traps, fn)
		}
	}
	arch := context.ArchAMD64
	if im.Arch == image.ARM64 {
		arch = context.ArchARM64
	}
	w.walker = walker.New(arch)
	w.walker.SetTable(module.NewTable(1, []module.Module{w.module()}, nil))
	return w
}

func (w *world) find(addr uint64) (*image.Image, *image.Func) { return w.im, w.im.Find(addr) }

// run starts the root, calls random functions from every call site up to a
// depth, interrupts now and then, and calls check before every op.
func (w *world) run(r *rand.Rand, steps, depth int, check func()) {
	w.t.Start(w.im, w.roots[0])
	for range steps {
		check()
		if r.IntN(40) == 0 && w.t.Depth() < depth && w.interrupt(r) {
			continue
		}
		switch w.t.Step() {
		case AtCall:
			fn := w.fns[r.IntN(len(w.fns))]
			if w.t.Depth() >= depth || !w.t.Call(w.im, fn) {
				w.t.Skip()
			}
		case Ended:
			w.t.Start(w.im, w.roots[0])
		case Diverted, Faulted:
			op, part := w.t.Op()
			w.tb.Fatalf("stopped at %#x %v %v", w.t.State().PC, op, part)
		}
	}
}

// interrupt makes a signal or a trap; PE images of ARM64 have none.
func (w *world) interrupt(r *rand.Rand) bool {
	from := w.fns
	if w.im.Format == image.PE {
		from = w.traps
	}
	if len(from) == 0 {
		return false
	}
	w.t.Interrupt(w.im, from[r.IntN(len(from))])
	return true
}

// diff names the registers that differ; mask says which count.
func diff(got, want *State, mask uint32) (s string) {
	if got.PC != want.PC {
		s += fmt.Sprintf(" pc %#x, not %#x", got.PC, want.PC)
	}
	for r := range got.R {
		if mask>>r&1 != 0 && got.R[r] != want.R[r] {
			s += fmt.Sprintf(" r%d %#x, not %#x", r, got.R[r], want.R[r])
		}
	}
	return s
}

// keptAMD64 are the registers all functions of a format preserve, and RSP.
func keptAMD64(f image.Format) uint32 {
	if f == image.PE {
		return 0xf0f8
	}
	return 0xf038
}

// where names the thread's place.
func (w *world) where() string {
	if w.t.fn == nil {
		return "nowhere"
	}
	op := w.t.fn.Ops[w.t.at]
	return fmt.Sprintf("%s+%#x (op %d of %d, part %d, % x, entry %d, noinfo %v)", w.t.fn.Name, op.Off, w.t.at,
		len(w.t.fn.Ops), op.Part, op.Code, w.t.fn.Entry, w.t.fn.NoInfo)
}

// checkRows steps from the leaf by rows and compares every frame.
func (w *world) checkRows(out []Frame) []Frame {
	out = w.t.Truth(out)
	if w.im.Arch == image.ARM64 {
		checkRowsARM64(w.tb, w.t)
		return out
	}
	st := out[0].State
	for i := range out {
		exact, ok := StepRow(image.AMD64, out[i].Image, out[i].Func, &st, w.t.Word)
		if i == len(out)-1 {
			if ok {
				w.tb.Fatalf("%s: the first function has a caller", w.where())
			}
			break
		}
		want := &out[i+1]
		if !ok || exact != want.Exact {
			w.tb.Fatalf("%s: frame %d (%s) cannot be left, or exact is %v",
				w.where(), i, out[i].Func.Name, exact)
		}
		mask := keptAMD64(w.im.Format)
		if d := diff(&st, &want.State, mask); d != "" {
			w.tb.Fatalf("%s: frame %d of %s, from %s:%s", w.where(), i+1, want.Func.Name, out[i].Func.Name, d)
		}
		if w.im.Format == image.PE {
			for v := 6; v < 16; v++ {
				if st.V[v] != want.State.V[v] {
					w.tb.Fatalf("%s: frame %d: xmm%d", w.where(), i+1, v)
				}
			}
		}
	}
	return out
}

// module returns the image as a module that is read from its bytes.
func (w *world) module() (m module.Module) {
	w.tb.Helper()
	if w.im.Format == image.PE {
		file, err := pe.FromMemory(w.im.File, w.im.Name)
		must.True(w.tb, err == nil && len(file.Problems()) == 0, "%v %v", err, file.Problems())
		m = module.PEFromFile(1, file, w.im.Name, imageBase, w.im.End())
	} else {
		file, err := elf.New(w.im.File, w.im.Name)
		must.True(w.tb, err == nil && len(file.Problems()) == 0, "%v %v", err, file.Problems())
		m = module.ELFFromFile(1, file, w.im.Name, imageBase, w.im.End(), imageBase)
	}
	must.Do(w.tb, m.Err)
	return m
}

func TestWalkPE(t *testing.T)       { walkRandom(t, newWorld, image.PE, 20, 5000) }
func TestWalkELF(t *testing.T)      { walkRandom(t, newWorld, image.ELF, 20, 5000) }
func TestWalkARM64PE(t *testing.T)  { walkRandom(t, worldARM64, image.PE, 10, 1500) }
func TestWalkARM64ELF(t *testing.T) { walkRandom(t, worldARM64, image.ELF, 10, 1500) }

// makeWorld is newWorld or worldARM64.
type makeWorld func(tb testing.TB, f image.Format, seed uint64, n int) *world

// walkRandom walks every stack of random runs, by rows and with the real walker over the image's own unwind
// data.
func walkRandom(t *testing.T, world makeWorld, f image.Format, seeds uint64, steps int) {
	frames := 0
	for seed := range seeds {
		w := world(t, f, seed, 100)
		w.run(rand.New(rand.NewPCG(seed, 3)), steps, 12, func() {
			w.check()
			frames += len(w.out)
		})
	}
	t.Logf("%d frames", frames)
}

func TestEveryOpPE(t *testing.T)       { everyOp(t, newWorld, image.PE) }
func TestEveryOpELF(t *testing.T)      { everyOp(t, newWorld, image.ELF) }
func TestEveryOpARM64PE(t *testing.T)  { everyOp(t, worldARM64, image.PE) }
func TestEveryOpARM64ELF(t *testing.T) { everyOp(t, worldARM64, image.ELF) }

// everyOp checks the stack at every op of thousands of functions.
func everyOp(t *testing.T, world makeWorld, f image.Format) {
	ops, fns := 0, 0
	for seed := range uint64(20) {
		w := world(t, f, 100+seed, 150)
		for _, fn := range append(w.fns, w.traps...) {
			ops += w.through(fn)
			fns++
		}
	}
	t.Logf("%d functions, %d instructions", fns, ops)
}

// through runs fn, which the root calls, to its end. It checks the stack at each op of fn, and at each call
// once more from inside the called function.
func (w *world) through(fn *image.Func) (ops int) {
	w.t.Start(w.im, w.roots[0])
	atCall := func(t *Thread) bool { _, call := t.callOp(); return call }
	if !w.t.RunTo(atCall, 100) || !w.t.Call(w.im, fn) && !w.t.Interrupt(w.im, fn) {
		w.tb.Fatalf("%s cannot run", fn.Name)
	}
	for depth := w.t.Depth(); w.t.Depth() == depth; ops++ {
		if op, _ := w.t.Op(); op != &fn.Ops[ops] {
			w.tb.Fatalf("%s: not at op %d", w.where(), ops)
		}
		w.check()
		before := *w.t
		if w.t.Step() == AtCall {
			w.t.Call(w.im, w.fns[ops%len(w.fns)])
			w.check()
			*w.t = before
			w.t.Skip()
		}
	}
	must.True(w.tb, ops == len(fn.Ops), "%s: %d of %d ops", fn.Name, ops, len(fn.Ops))
	return ops
}

// check compares every frame with the truth, by rows and by the real walker.
func (w *world) check() {
	w.out = w.checkRows(w.out)
	w.mem.Reset(w.t.Stack())
	w.checkWalk(w.out)
}

// checkWalk compares every step of the real walker from the leaf with the truth.
func (w *world) checkWalk(out []Frame) {
	regs := out[0].State.Registers(w.im.Arch)
	at := unwind.Interrupted(&regs)
	var f unwind.Frame
	for i := range out {
		stop := w.walker.Step(&at, &w.mem, nil, &f)
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
		var d string
		if w.im.Arch == image.ARM64 {
			d = diffARM64(&regs.ARM64, &want.State)
		} else {
			d = diffAMD64(&regs.AMD64, &want.State, keptAMD64(w.im.Format))
		}
		if d != "" {
			w.tb.Fatalf("%s: frame %d of %s, from %s:%s", w.where(), i+1, want.Func.Name, out[i].Func.Name, d)
		}
	}
}

// diffAMD64 compares the known registers. Those of must have to be known.
func diffAMD64(got *context.AMD64, want *State, must uint32) (s string) {
	if got.RIP != want.PC {
		s += fmt.Sprintf(" rip %#x, not %#x", got.RIP, want.PC)
	}
	for r := range got.GPR {
		if got.Known>>r&1 != 0 && got.GPR[r] != want.R[r] {
			s += fmt.Sprintf(" r%d %#x, not %#x", r, got.GPR[r], want.R[r])
		}
	}
	if missing := must &^ got.Known; missing != 0 {
		s += fmt.Sprintf(" unknown %#x", missing)
	}
	for i := range got.XMM {
		if got.Known>>(16+i)&1 != 0 && [2]uint64(got.XMM[i]) != want.V[6+i] {
			s += fmt.Sprintf(" xmm%d", 6+i)
		}
	}
	return s
}

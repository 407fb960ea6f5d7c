package image_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

const (
	imageBase = 0x7ff6_0000_0000
	stackLow  = 0x7e00_0000_0000
	stackHigh = stackLow + 1<<19
)

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
	for name, tramp := range map[string]image.Func{"cfi": image.SignalReturn(image.ARM64),
		"code": image.RestoreRT(image.ARM64)} {
		t.Run(name, func(t *testing.T) {
			root := must.Get(image.ShapeARM64{RegI: 3, RegF: 2, FramePointer: true, PAC: true, Calls: 1,
				Body: 3, Root: true}.Func(image.ELF, "root"))(t)
			handler := must.Get(image.ShapeARM64{RegI: 10, RegF: 8, Link: true, Body: 2}.Func(image.ELF,
				"handler"))(t)
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
		fn := must.Get(image.ShapeARM64{FramePointer: true, FrameSize: size,
			Packed: true}.Func(image.PE, "f"))(t)
		deepest := int64(0)
		for _, r := range fn.Rows(image.ARM64) {
			deepest = max(deepest, r.Off)
		}
		if deepest != want {
			t.Errorf("a frame of %d has %d bytes", size, deepest)
		}
	}
}

package machine

import (
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestTrapAlignment: the processor aligns the stack before it pushes.
func TestTrapAlignment(t *testing.T) {
	w := single(t, image.PE, shape(t, image.ShapeAMD64{Body: 1, Leaf: true}, "f"), shape(t, image.ShapeAMD64{MachineFrame: true}, "trap"))
	before := w.t.State()
	if before.R[4]%16 != 8 || !w.t.Interrupt(w.im, &w.im.Funcs[1]) {
		t.Fatalf("rsp %#x", before.R[4])
	}
	if sp := w.t.State().R[4]; sp != before.R[4]-8-40 {
		t.Errorf("rsp %#x, then %#x", before.R[4], sp)
	}
	if e := w.t.Step(); e != Returned || w.t.State() != before {
		t.Errorf("%v, not as before the trap", e)
	}
}

// TestRedZone: a signal leaves alone what is just below RSP.
func TestRedZone(t *testing.T) {
	fn := must.Get(image.ShapeAMD64{Body: 1, Leaf: true}.Func(image.ELF, "f"))(t)
	w := single(t, image.ELF, fn, image.SignalReturn(image.AMD64))
	sp := w.t.State().R[4]
	for at := sp - redZone; at < sp; at += 8 {
		w.t.Poke(at, at)
	}
	if !w.t.Interrupt(w.im, &w.im.Funcs[0]) || w.t.State().R[4]%16 != 8 {
		t.Fatal("no signal, or a misaligned stack")
	}
	for at := sp - redZone; at < sp; at += 8 {
		if v, _ := w.t.Word(at); v != at {
			t.Errorf("%#x has changed", at)
		}
	}
}

// TestFaultUndoes: an op that faults at its second effect changes no register.
func TestFaultUndoes(t *testing.T) {
	fn := must.Get(image.ShapeAMD64{FramePointer: true, Dynamic: true}.Func(image.ELF, "f"))(t)
	w := single(t, image.ELF, fn)
	w.t.RunTo(func(t *Thread) bool { _, part := t.Op(); return part == image.Epilog }, 20)
	w.t.state.R[5] = 0x10 // leave reads there
	before := w.t.State()
	if e := w.t.Step(); e != Faulted || w.t.State() != before {
		t.Errorf("%v, rsp %#x", e, w.t.State().R[4])
	}
}

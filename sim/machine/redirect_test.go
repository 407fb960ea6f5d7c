package machine

import (
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// redirectPair is a function to be redirected from, and the one to go to.
func redirectPair(t *testing.T, a image.Arch) *image.Image {
	t.Helper()
	var fns [2]image.Func
	var errs [2]error
	if a == image.AMD64 {
		fns[0], errs[0] = image.ShapeAMD64{Saves: []image.Reg{3}, Alloc: 40, Body: 3}.Func(image.PE, "f")
		fns[1] = image.RedirectStub("stub")
	} else {
		fns[0], errs[0] = image.ShapeARM64{RegI: 2, Calls: 1, Body: 3, FrameSize: 64}.Func(image.PE, "f")
		fns[1], errs[1] = image.ShapeARM64{RegI: 2, FramePointer: true, Calls: 1, Body: 3, FrameSize: 96}.Func(image.PE, "stub")
	}
	for _, err := range errs {
		must.Do(t, err)
	}
	im := must.Get(image.Build(a, image.PE, "pair", imageBase, fns[:]))(t)
	return im
}

// A redirected thread stands where it stood but for the ip; from the answer on
// the stub's rows lead back there; and all registers come back.
func TestRedirect(t *testing.T) {
	for _, a := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(a.String(), func(t *testing.T) {
			im := redirectPair(t, a)
			th := New(a, stackLow, stackHigh, 1)
			th.Start(im, &im.Funcs[0])
			inBody := func(t *Thread) bool { _, part := t.Op(); return part == image.Body }
			if th.Answer() || !th.RunTo(inBody, 20) {
				t.Fatal("an answer to nobody, or no body")
			}
			before := th.State()
			th.Redirect(im, &im.Funcs[1])
			if now := th.State(); now.PC != im.Base+uint64(im.Funcs[1].RVA) || now.R != before.R || th.Depth() != 2 {
				t.Fatalf("pc %#x, or another register has changed", now.PC)
			}
			if tr := th.Truth(nil); !tr[1].Exact || tr[1].State != before {
				t.Errorf("the truth below the stub is %+v", tr[1])
			}
			if !th.RunTo(inBody, 20) {
				t.Fatal("no room, or no body")
			}
			if next := th.caller(a); next.PC == before.PC {
				t.Error("the return address is known too early")
			}
			if !th.Answer() {
				t.Fatal("no answer")
			}
			n := 0
			for ; th.Depth() == 2; n++ {
				next := th.caller(a)
				if d := next.R[a.SP()] - before.R[a.SP()]; next.PC != before.PC || d != 0 || next.R[a.FP()] != before.R[a.FP()] {
					t.Errorf("op %d: the caller's pc is %#x, not %#x; sp is off by %d", th.at, next.PC, before.PC, d)
				}
				if e := th.Step(); e == AtCall {
					th.Skip()
				} else if e == Faulted || e == Diverted {
					t.Fatal(e)
				}
			}
			if th.State() != before || n < 4 {
				t.Errorf("after %d steps it goes on at %#x, not at %#x as it was", n, th.State().PC, before.PC)
			}
		})
	}
}

// caller is the frame below that the rows tell.
func (t *Thread) caller(a image.Arch) State {
	st := t.State()
	StepRow(a, t.image, t.fn, &st, t.Word)
	return st
}

// A stack without room has none for a redirection.
func TestRedirectWithoutRoom(t *testing.T) {
	im := redirectPair(t, image.AMD64)
	th := New(image.AMD64, stackLow, stackHigh, 1)
	th.Start(im, &im.Funcs[0])
	th.state.R[4] = stackLow
	th.Redirect(im, &im.Funcs[1])
	if before := th.State(); th.Step() != Faulted || th.State() != before {
		t.Error("there is room below the stack")
	}
}

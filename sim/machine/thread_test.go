package machine

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestCallsPreserve: a function that returns leaves the caller's nonvolatile
// registers and SP as they were, whatever it did to them.
func TestCallsPreserve(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, image.PE, seed, 50)
		r := rand.New(rand.NewPCG(seed, 5))
		var before []State
		returns, changed := 0, 0
		w.t.Start(w.im, w.roots[0])
		for range 20000 {
			switch w.t.Step() {
			case AtCall:
				s := w.t.State()
				if w.t.Depth() < 10 && w.t.Call(w.im, w.fns[r.IntN(len(w.fns))]) {
					before = append(before, s)
				} else {
					w.t.Skip()
				}
			case Returned:
				want, got := before[len(before)-1], w.t.State()
				before = before[:len(before)-1]
				want.PC = got.PC
				if d := diff(&got, &want, keptAMD64(image.PE)); d != "" {
					t.Fatalf("%s:%s", w.where(), d)
				}
				for v := 6; v < 16; v++ {
					must.True(t, got.V[v] == want.V[v], "%s: xmm%d", w.where(), v)
				}
				returns++
				if got.R[10] != want.R[10] {
					changed++
				}
			case Ended:
				w.t.Start(w.im, w.roots[0])
			case Faulted, Diverted:
				t.Fatal(w.where())
			}
		}
		expect.True(t, returns >= 100 && changed >= returns/2,
			"%d returns, %d with another r10", returns, changed)
	}
}

// TestClobbers: a body does change the nonvolatile registers it has saved, and
// no others.
func TestClobbers(t *testing.T) {
	fn := must.Get(image.ShapeAMD64{Saves: []image.Reg{3, 12}, FramePointer: true,
		Body: 2}.Func(image.PE, "f"))(t)
	w := single(t, image.PE, fn)
	start := w.t.State()
	must.True(t, w.t.RunTo(func(t *Thread) bool { _, part := t.Op(); return part == image.Epilog }, 100),
		"no epilog")
	now := w.t.State()
	for r, want := range map[int]bool{0: true, 3: true, 12: true, 8: true, 5: false, 6: false, 13: false} {
		if r != 5 && (now.R[r] != start.R[r]) != want {
			t.Errorf("r%d changed: %v", r, !want)
		}
	}
	expect.True(t, now.R[5] >= stackLow && now.R[5] < stackHigh, "the frame pointer is %#x", now.R[5])
}

// single is a world of the given functions, the first running.
func single(t *testing.T, f image.Format, fns ...image.Func) *world {
	t.Helper()
	im := must.Get(image.Build(image.AMD64, f, "single", imageBase, fns))(t)
	w := &world{tb: t, im: im, t: New(image.AMD64, stackLow, stackHigh, 1)}
	w.t.Start(im, &im.Funcs[0])
	return w
}

func shape(t *testing.T, s image.ShapeAMD64, name string) image.Func {
	t.Helper()
	return must.Get(s.Func(image.PE, name))(t)
}

// TestDiverted: a return address that was changed sends the thread elsewhere; a
// stub that is entered there returns to the true caller.
func TestDiverted(t *testing.T) {
	w := single(t, image.PE, shape(t, image.ShapeAMD64{Calls: 1, Body: 2, Root: true}, "caller"),
		shape(t, image.ShapeAMD64{Leaf: true}, "callee"),
		shape(t, image.ShapeAMD64{Saves: []image.Reg{3}}, "stub"))
	if !w.t.RunTo(func(t *Thread) bool { _, call := t.callOp(); return call }, 10) ||
		!w.t.Call(w.im, &w.im.Funcs[1]) {
		t.Fatal("no call")
	}
	sp := w.t.State().R[4]
	ra, _ := w.t.Word(sp)
	stub := w.im.Base + uint64(w.im.Funcs[2].RVA)
	w.t.Poke(sp, stub)
	if e := w.t.Step(); e != Diverted || w.t.State().PC != stub || w.t.Depth() != 1 {
		t.Fatalf("%v at %#x, depth %d", e, w.t.State().PC, w.t.Depth())
	}
	op, _ := w.t.Op()
	expect.True(t, op == nil && w.t.Step() == Faulted, "runs at no op")
	must.True(t, w.t.Enter(w.im, &w.im.Funcs[2], ra) && w.t.Depth() == 2, "the stub")
	w.checkRows(nil)
	for range 3 {
		w.t.Step()
	}
	expect.True(t, w.t.State().PC == ra && w.t.Depth() == 1 && w.t.State().R[4] == sp+8,
		"at %#x, not %#x", w.t.State().PC, ra)
}

// TestFaults: an op that leaves the stack changes nothing.
func TestFaults(t *testing.T) {
	im := must.Get(image.Build(image.AMD64, image.PE, "small", imageBase, []image.Func{
		shape(t, image.ShapeAMD64{Saves: []image.Reg{3, 6, 7, 12}, Calls: 1}, "f")}))(t)
	th := New(image.AMD64, stackLow, stackLow+96, 1)
	th.Start(im, &im.Funcs[0])
	var last Event
	before := th.State()
	for range 10 {
		before = th.State()
		if last = th.Step(); last != Ran {
			break
		}
	}
	after := th.State()
	expect.True(t, last == Faulted && after == before, "%v: %+v, then %+v", last, before, after)
	_, ok := th.Word(stackLow + 89)
	expect.True(t, !ok, "read past the end")
	_, ok = th.Word(^uint64(0))
	expect.True(t, !ok, "read at the end of the address space")
	th.Poke(stackLow-1, 1)
}

// TestEnd: the first function's return ends the thread.
func TestEnd(t *testing.T) {
	w := single(t, image.PE, shape(t, image.ShapeAMD64{Leaf: true}, "f"))
	if e := w.t.Step(); e != Ended || w.t.Depth() != 0 || len(w.t.Truth(nil)) != 0 || w.t.Step() != Faulted {
		t.Errorf("%v, depth %d", e, w.t.Depth())
	}
}

// TestCopyFrom: a copy goes the same way, and neither touches the other.
func TestCopyFrom(t *testing.T) {
	w := newWorld(t, image.PE, 3, 30)
	w.run(rand.New(rand.NewPCG(1, 1)), 500, 8, func() {})
	var c Thread
	c.CopyFrom(w.t)
	saved := *w.t
	saved.stack.mem = append([]byte(nil), w.t.stack.mem...)
	walk := func(th *Thread) []State {
		var all []State
		for range 200 {
			switch th.Step() {
			case AtCall:
				th.Skip()
			case Ended:
				th.Start(w.im, w.roots[0])
			}
			all = append(all, th.State())
		}
		return all
	}
	a := walk(&c)
	expect.True(t, cmptest.Diff(w.t.stack.mem, saved.stack.mem) == "" && saved.state == w.t.state,
		"running the copy changed the original")
	expect.True(t, cmptest.Diff(walk(w.t), a) == "", "the copy went another way")
}

func TestNoAllocation(t *testing.T) {
	w := newWorld(t, image.PE, 4, 30)
	r := rand.New(rand.NewPCG(1, 1))
	var out []Frame
	w.run(r, 2000, 8, func() { out = w.t.Truth(out) })
	var c Thread
	c.CopyFrom(w.t)
	out = make([]Frame, 0, 64)
	read := w.t.Word
	find := w.find
	if n := testing.AllocsPerRun(20, func() {
		w.run(r, 50, 8, func() {
			out = w.t.Truth(out)
			Unwind(image.AMD64, find, w.t.State(), true, read)
		})
		c.CopyFrom(w.t)
	}); n > 1 { // the closure
		t.Errorf("%v allocations", n)
	}
}

// TestSignalStack: a handler runs on the signal stack, and the walk by rows comes
// back from it; a second signal stays on it.
func TestSignalStack(t *testing.T) {
	w := newWorld(t, image.ELF, 6, 30)
	w.t.AltStack(0x1000, 0x1000+16<<10)
	r := rand.New(rand.NewPCG(6, 6))
	seen := 0
	var out []Frame
	w.run(r, 20000, 6, func() {
		if addr, _ := w.t.Stack(); addr < stackLow {
			seen++
		}
		out = w.checkRows(out)
	})
	expect.True(t, seen >= 100, "%d steps on the signal stack", seen)
}

func BenchmarkStep(b *testing.B) {
	w := newWorld(b, image.PE, 1, 50)
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	w.run(r, b.N, 8, func() {})
}

// TestTrapAlignment: the processor aligns the stack before it pushes.
func TestTrapAlignment(t *testing.T) {
	w := single(t, image.PE, shape(t, image.ShapeAMD64{Body: 1, Leaf: true}, "f"),
		shape(t, image.ShapeAMD64{MachineFrame: true}, "trap"))
	before := w.t.State()
	must.True(t, before.R[4]%16 == 8 && w.t.Interrupt(w.im, &w.im.Funcs[1]), "rsp %#x", before.R[4])
	expect.Equal(t, w.t.State().R[4], before.R[4]-8-40, "rsp, before %#x", before.R[4])
	e := w.t.Step()
	expect.True(t, e == Returned && w.t.State() == before, "%v, not as before the trap", e)
}

// TestRedZone: a signal leaves alone what is just below RSP.
func TestRedZone(t *testing.T) {
	fn := must.Get(image.ShapeAMD64{Body: 1, Leaf: true}.Func(image.ELF, "f"))(t)
	w := single(t, image.ELF, fn, image.SignalReturn(image.AMD64))
	sp := w.t.State().R[4]
	for at := sp - redZone; at < sp; at += 8 {
		w.t.Poke(at, at)
	}
	must.True(t, w.t.Interrupt(w.im, &w.im.Funcs[0]) && w.t.State().R[4]%16 == 8,
		"no signal, or a misaligned stack")
	for at := sp - redZone; at < sp; at += 8 {
		v, _ := w.t.Word(at)
		expect.True(t, v == at, "%#x has changed", at)
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
		fns[1], errs[1] = image.ShapeARM64{RegI: 2, FramePointer: true, Calls: 1, Body: 3,
			FrameSize: 96}.Func(image.PE, "stub")
	}
	for _, err := range errs {
		must.Do(t, err)
	}
	return must.Get(image.Build(a, image.PE, "pair", imageBase, fns[:]))(t)
}

// A redirected thread keeps its registers but for the ip; from the answer on
// the stub's rows lead back there; and all registers come back.
func TestRedirect(t *testing.T) {
	for _, a := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(a.String(), func(t *testing.T) {
			im := redirectPair(t, a)
			th := New(a, stackLow, stackHigh, 1)
			th.Start(im, &im.Funcs[0])
			inBody := func(t *Thread) bool { _, part := t.Op(); return part == image.Body }
			must.True(t, !th.Answer() && th.RunTo(inBody, 20), "an answer without a request, or no body")
			before := th.State()
			th.Redirect(im, &im.Funcs[1])
			now := th.State()
			must.True(t, now.PC == im.Base+uint64(im.Funcs[1].RVA) && now.R == before.R && th.Depth() == 2,
				"pc %#x, or another register has changed", now.PC)
			tr := th.Truth(nil)
			expect.True(t, tr[1].Exact && tr[1].State == before, "the truth below the stub is %+v", tr[1])
			must.True(t, th.RunTo(inBody, 20), "no room, or no body")
			expect.True(t, th.caller(a).PC != before.PC, "the return address is known too early")
			must.True(t, th.Answer(), "no answer")
			n := 0
			for ; th.Depth() == 2; n++ {
				next := th.caller(a)
				d := next.R[a.SP()] - before.R[a.SP()]
				expect.True(t, next.PC == before.PC && d == 0 && next.R[a.FP()] == before.R[a.FP()],
					"op %d: the caller's pc is %#x, not %#x; sp is off by %d", th.at, next.PC, before.PC, d)
				if e := th.Step(); e == AtCall {
					th.Skip()
				} else if e == Faulted || e == Diverted {
					t.Fatal(e)
				}
			}
			expect.True(t, th.State() == before && n >= 4,
				"after %d steps it goes on at %#x, not at %#x as it was", n, th.State().PC, before.PC)
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
	before := th.State()
	expect.True(t, th.Step() == Faulted && th.State() == before, "there is room below the stack")
}

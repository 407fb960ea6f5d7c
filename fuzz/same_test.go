package fuzz

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// What holds of steps and walks on either architecture: u has a rule cache,
// plain has none.

// allocates reports whether f allocates each time it runs: what the runtime allocates
// by itself meanwhile is counted too, but not thrice in a row.
func allocates(f func()) bool {
	for range 3 {
		if testing.AllocsPerRun(1, f) == 0 {
			return false
		}
	}
	return true
}

// checkStep makes one step from regs, which hold an interrupted ip, if exact, or
// a return address.
func checkStep(t *testing.T, u, plain unwind.Walker, regs context.Registers, exact bool, mem *memory.Window) {
	from := unwind.State{Exact: exact, Trust: unwind.TrustContext}
	now, again := regs, regs
	at, at2 := from, from
	var f, f2 unwind.Frame
	var stop unwind.Stop
	if allocates(func() {
		now, at = regs, from
		at.Regs = &now
		stop = u.Step(&at, mem, nil, &f)
	}) {
		t.Fatal("a step allocates")
	}
	at2.Regs = &again
	stop2 := plain.Step(&at2, mem, nil, &f2)
	must.True(t, at.Exact == at2.Exact && at.Trust == at2.Trust && stop2 == stop && f2 == f &&
		same(again, now), "with cache %v, %+v,\n%+v; without %v, %+v,\n%+v", stop, f, now, stop2, f2, again)
	switch {
	case stop != unwind.StopNone && (!now.Equal(&regs) || f.CFA != 0):
		t.Fatalf("%v, but the registers changed", stop)
	case stop == unwind.StopNone && !at.Exact && now.SP() < regs.SP():
		t.Fatalf("the stack pointer went down to %#x", now.SP())
	case stop == unwind.StopNone &&
		(f.CFA != now.SP() || at.Trust.Doubtful() && at.Trust != unwind.TrustOutside):
		t.Fatalf("frame %+v, trust %v", f, at.Trust)
	}
}

// checkWalk walks from regs, those of a thread that was interrupted.
func checkWalk(t *testing.T, u, plain unwind.Walker, mods *module.Table, regs context.Registers,
	mem *memory.Window, guess bool) {
	b := unwind.Bounds{Low: walkStack, High: walkStack + 1<<16, MaxSteps: walkSteps, Guess: guess}
	var out, out2 [walkSteps + 8]unwind.Frame
	first, second := regs, regs
	at, at2 := unwind.Interrupted(&first), unwind.Interrupted(&second)
	begin := time.Now()
	got := u.Walk(&at, mem, &b, out[:])
	checkTime(t, begin)
	want := plain.Walk(&at2, mem, &b, out2[:])
	must.True(t, got == want && at.Exact == at2.Exact && out == out2 && same(first, second),
		"with cache %d frames, %v; without %d, %v", got.N, got.Stop, want.N, want.Stop)
	checkFrames(t, mods, out[:got.N], got.Stop)
	if allocates(func() {
		first = regs
		at = unwind.Interrupted(&first)
		u.Walk(&at, mem, &b, out[:])
	}) {
		t.Fatal("a walk allocates")
	}
}

// same reports whether two frames' registers say the same: what an unknown one
// contains does not matter.
func same(a, b context.Registers) bool {
	dropUnknown(&a)
	dropUnknown(&b)
	return a.Equal(&b)
}

func dropUnknown(r *context.Registers) {
	x, a := &r.AMD64, &r.ARM64
	for i := range x.GPR {
		x.GPR[i] *= uint64(x.Known >> i & 1)
	}
	for i := range x.XMM {
		if x.Known>>(16+i)&1 == 0 {
			x.XMM[i] = context.XMM{}
		}
	}
	for i := range a.X {
		a.X[i] *= a.Known >> i & 1
	}
	for i := range a.D {
		a.D[i] *= a.Known >> (32 + i) & 1
	}
}

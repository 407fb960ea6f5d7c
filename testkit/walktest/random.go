package walktest

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// randomStacks: walks over random stacks, with random registers and real rules, are bounded and progress.
// They are the same with and without the cache.
func (l *Lab) randomStacks(t *testing.T) {
	u, plain := l.New(t, l.Real...), l.New(t, l.Real...)
	plain.DisableCache(true)
	rnd := rand.New(rand.NewPCG(1, 2))
	stops := map[unwind.Stop]int{}
	for range 2000 {
		s := NewStack()
		for i := uint64(0); i < StackSize; i += 8 {
			s.Set(StackLow+i, l.Word(rnd))
		}
		sp := StackLow + rnd.Uint64N(StackSize)
		r := l.Start(l.Word(rnd), sp)
		for i := range r.AMD64.GPR {
			r.AMD64.GPR[i] = l.Word(rnd)
		}
		for i := range r.ARM64.X {
			r.ARM64.X[i] = l.Word(rnd)
		}
		r.SetSP(sp)
		stops[l.agree(t, u, plain, r, s.Window())]++
	}
	t.Log(stops)
}

func (l *Lab) agree(t *testing.T, u, plain Walker, r context.Registers, mem *memory.Window) unwind.Stop {
	t.Helper()
	b := unwind.Bounds{Low: StackLow, High: StackLow + StackSize, MaxSteps: 64, Guess: true}
	r2 := r
	var out, out2 [80]unwind.Frame
	s, s2 := unwind.Interrupted(&r), unwind.Interrupted(&r2)
	got, got2 := u.Walk(&s, mem, &b, out[:]), plain.Walk(&s2, mem, &b, out2[:])
	expect.True(t, got == got2 && s.Exact == s2.Exact && s.Trust == s2.Trust && out == out2 && r.Equal(&r2),
		"with cache %+v, without %+v", got, got2)
	for i := 1; i < got.N; i++ {
		if out[i].SP < out[i-1].SP && !(l.arm64() && out[i-1].Kind == unwind.KindSignal) {
			t.Errorf("frame %d: SP fell from %#x to %#x", i, out[i-1].SP, out[i].SP)
		}
	}
	return got.Stop
}

// noAllocations: steps and walks do not allocate, with and without kept rules.
func (l *Lab) noAllocations(t *testing.T) {
	u, mem, out := l.plain(t), chain(40, JitIP).Window(), make([]unwind.Frame, 64)
	first, s := l.Start(At(0), SP0), unwind.State{Regs: new(context.Registers)}
	for name, run := range map[string]func(){
		"Step":      func() { u.Step(&s, mem, nil, &out[0]) },
		"Walk":      func() { u.Walk(&s, mem, nil, out) },
		"Walk cold": func() { u.DisableCache(false); u.Walk(&s, mem, nil, out) },
	} {
		expect.Equal(t, testing.AllocsPerRun(100, func() { begin(&s, &first, true); run() }), 0,
			"%s: allocations", name)
	}
}

// noAllocationsRecorded: walks of recorded stacks do not allocate either, with side rules, expressions,
// trampolines, and code without unwind data.
func (l *Lab) noAllocationsRecorded(t *testing.T) {
	n := 0
	l.snapshots(t, func(r *recorded) {
		if n++; n%10 != 0 && r.Snapshot.Class == "cfi_exact" {
			return
		}
		var out [256]unwind.Frame
		b, s := unwind.Bounds{Guess: true}, unwind.State{Regs: new(context.Registers)}
		allocs := testing.AllocsPerRun(2, func() {
			begin(&s, &r.Regs, true)
			r.Walker.DisableCache(false)
			r.Walker.Walk(&s, r.Mem, &b, out[:])
		})
		expect.True(t, allocs == 0, "%s: %v allocations", r.Snapshot.ID, allocs)
	})
}

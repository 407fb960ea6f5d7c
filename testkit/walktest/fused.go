// Package walktest holds the tests that both walkers share: of made-up and recorded stacks (Lab), random
// functions (Fused), and two stacks (Leaving). Walk agrees with steps on all of them.
//
// Source: the contract of unwind.Walker.
//
// Glossary. A walk is *cold* when no rule is kept, *warm* when all are. A *section*
// is a run of frames that a walker takes in one piece; how long it is the test says.
//
// Strategy. The room, bounds, and memory of a walk are random. So walks end at every place at
// which a walk can end, and the test counts each reason.
//
// Known gaps: the test compares a walker with itself. Other tests compare it with vectors.
package walktest

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Walker is a walker whose rules can be dropped.
type Walker interface {
	unwind.Walker
	// DisableCache(false) drops the rules that are kept.
	DisableCache(off bool)
	Table() *module.Table
}

// Fused is a test of walks over random stacks of random functions.
type Fused struct {
	New     func() Walker
	Section int    // frames
	Low     uint64 // where the stack is
	Stack   []byte
	// Functions returns a table of random functions, and a function lay. lay writes a stack
	// of at most that many frames of these functions, and returns the leaf's registers.
	Functions func(rnd *rand.Rand) (t *module.Table, lay func(frames int) context.Registers)
	// Forget drops what is known of some registers.
	Forget func(rnd *rand.Rand, r *context.Registers)
	// Managed is made managed code now and then, amid a module's.
	Managed memory.Range
	// Stops are reasons that a walk must have ended for besides those that all can.
	Stops []unwind.Stop
}

// Run walks 4,000 stacks. Walk agrees with steps in frames, every register and the
// reason, wherever the room, the bounds, the steps or the memory end.
func (f *Fused) Run(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 4))
	longest, stops := 0, map[unwind.Stop]int{}
	for round := range 40 {
		table, lay := f.Functions(rnd)
		if round%4 == 0 {
			table = module.NewTable(2, modules(table), append(table.Managed(), f.Managed))
		}
		u := f.New()
		u.SetTable(table)
		for range 100 {
			r := lay(f.depth())
			if rnd.IntN(8) == 0 {
				f.Forget(rnd, &r)
			}
			s := unwind.State{Regs: &r, Exact: rnd.IntN(4) != 0, Trust: unwind.TrustContext}
			if rnd.IntN(8) == 0 {
				s.Trust = unwind.TrustFramePointer // its doubt stays with all above it
			}
			n, stop := f.check(t, u, &s, f.window(rnd, r.SP()), f.bounds(rnd, r.SP()), f.room(rnd))
			longest = max(longest, n)
			stops[stop]++
			if t.Failed() {
				return
			}
		}
	}
	if longest <= f.Section {
		t.Errorf("no walk longer than a section: %d frames", longest)
	}
	for _, stop := range append([]unwind.Stop{unwind.Managed, unwind.BufferFull, unwind.Limit,
		unwind.NullReturn, unwind.OutOfStack, unwind.Unreadable, unwind.NoInfo}, f.Stops...) {
		if stops[stop] == 0 {
			t.Errorf("no walk ended %v: %v", stop, stops)
		}
	}
}

func modules(t *module.Table) (all []module.Module) {
	for i := range t.Len() {
		all = append(all, *t.At(i))
	}
	return all
}

// depth is more than two sections, so that one ends amid its like.
func (f *Fused) depth() int { return 2*f.Section + 50 }

func (f *Fused) room(rnd *rand.Rand) int {
	switch rnd.IntN(4) {
	case 0:
		return rnd.IntN(40)
	case 1:
		return rnd.IntN(4)
	}
	return 2 * f.depth()
}

func (f *Fused) bounds(rnd *rand.Rand, sp uint64) *unwind.Bounds {
	b := &unwind.Bounds{}
	switch rnd.IntN(6) {
	case 0:
		b.Low, b.High = f.Low, f.Low+8*rnd.Uint64N(uint64(len(f.Stack)/8))
	case 1:
		b.Low = sp + 8*rnd.Uint64N(64)
		b.High = b.Low + 8*rnd.Uint64N(64)
	case 2:
		b.Low, b.High = f.Low, sp+8*rnd.Uint64N(64)
	}
	if rnd.IntN(4) == 0 {
		b.MaxSteps = 1 + rnd.IntN(f.depth())
	}
	return b
}

// window is the stack, or parts of it: the greatest becomes the hot run.
func (f *Fused) window(rnd *rand.Rand, sp uint64) *memory.Window {
	a := rnd.IntN(len(f.Stack))
	switch rnd.IntN(3) {
	case 0:
		return memory.New(memory.Run{Addr: f.Low, Data: f.Stack})
	case 1: // a gap beside the first frames
		a = int(sp-f.Low) + rnd.IntN(8)*8
	}
	b := min(len(f.Stack), a+rnd.IntN(8)*8)
	return memory.New(memory.Run{Addr: f.Low, Data: f.Stack[:a:a]},
		memory.Run{Addr: f.Low + uint64(b), Data: f.Stack[b:]})
}

func (f *Fused) check(t *testing.T, u Walker, from *unwind.State, mem *memory.Window, b *unwind.Bounds,
	room int) (int, unwind.Stop) {
	t.Helper()
	out := make([]unwind.Frame, room)
	want, regs, why := stepped(u, from, mem, b, room)
	dropUnknown(regs.Regs)
	for _, mode := range []string{"cold", "warm"} {
		if mode == "cold" {
			u.DisableCache(false)
		}
		r, s := *from.Regs, *from
		s.Regs = &r
		got := u.Walk(&s, mem, b, out)
		dropUnknown(&r)
		if got.N != len(want) || got.Stop != why || s.Exact != regs.Exact || s.Trust != regs.Trust ||
			s.Left != regs.Left || !r.Equal(regs.Regs) {
			t.Errorf("%s: Walk %d frames, %v, %+v\nStep %d, %v, %+v", mode, got.N, got.Stop,
				r, len(want), why, *regs.Regs)
		}
		for i := range want {
			if i < got.N && out[i] != want[i] {
				t.Errorf("%s: frame %d: %+v, stepped %+v", mode, i, out[i], want[i])
			}
		}
	}
	return len(want), why
}

// dropUnknown clears the unknown general registers of x86-64: a walk leaves anything in them.
func dropUnknown(r *context.Registers) {
	for i := range r.AMD64.GPR {
		r.AMD64.GPR[i] *= uint64(r.AMD64.Known >> i & 1)
	}
}

// stepped is Walk's contract in words of Step.
func stepped(u unwind.Walker, from *unwind.State, mem *memory.Window, b *unwind.Bounds,
	room int) (out []unwind.Frame, s unwind.State, why unwind.Stop) {
	limit := b.MaxSteps
	if limit == 0 {
		limit = unwind.DefaultMaxSteps
	}
	regs := *from.Regs
	s = *from
	s.Regs = &regs
	for {
		switch {
		case u.Table().IsManaged(s.Address().Lookup()):
			return out, s, unwind.Managed
		case len(out) == room:
			return out, s, unwind.BufferFull
		case len(out) == limit:
			return out, s, unwind.Limit
		}
		var f unwind.Frame
		why = u.Step(&s, mem, b, &f)
		if out = append(out, f); why != unwind.StopNone {
			return out, s, why
		}
	}
}

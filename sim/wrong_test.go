package sim_test

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// good is a recording with its true stack as the merge gives it.
type good struct {
	r   *recorded
	out []merge.Frame
	res merge.Result
}

// goodOnes are recordings whose merged stacks are complete, without doubt and not short,
// with managed frames among unmanaged ones.
func goodOnes(t *testing.T) (all []good) {
	tl := newTools()
	for i := range recordings() {
		r := &recordings()[i]
		_, m := tl.use(r)
		out := make([]merge.Frame, 512)
		res := m.Merge(&r.capture, out)
		out = out[:res.N]
		doubtful := slices.ContainsFunc(out, func(f merge.Frame) bool { return f.Trust.Doubtful() })
		if !res.Complete() || doubtful || len(out) < 4 || r.top() < 1 || res.N != len(r.truth) {
			continue
		}
		if _, err := r.w.Host.Check(r.truth, out, &res); err != nil {
			t.Fatal(err)
		}
		all = append(all, good{r, out, res})
	}
	if len(all) < 3 {
		t.Fatalf("%d good recordings only", len(all))
	}
	return all
}

// managed is the index of the first managed frame.
func (g *good) managed() int {
	return slices.IndexFunc(g.out, func(f merge.Frame) bool { return f.Kind == unwind.KindManaged && f.Function != 0 })
}

// native is that of the first unmanaged one below the top.
func (g *good) native() int {
	return 1 + slices.IndexFunc(g.out[1:], func(f merge.Frame) bool { return f.Kind != unwind.KindManaged })
}

func gap(out []merge.Frame, at int) []merge.Frame {
	return slices.Insert(out, at, merge.Frame{Kind: unwind.KindGap, Gap: merge.GapLimit})
}

// doubted is the leaf and a wrong frame that says that it is doubtful.
func doubted(g *good) []merge.Frame {
	f := g.out[1]
	f.IP, f.Trust = f.IP+1, unwind.TrustFramePointer
	return append(slices.Clone(g.out[:1]), f)
}

// wrongs are stacks that no judge may let pass.
var wrongs = []struct {
	name string
	gap  bool // the stack says that it has gaps
	bend func(g *good) []merge.Frame
}{
	{"the leaf is missing", false, func(g *good) []merge.Frame { return g.out[1:] }},
	{"the root is missing", false, func(g *good) []merge.Frame { return g.out[:len(g.out)-1] }},
	{"nothing at all", false, func(g *good) []merge.Frame { return nil }},
	{"a frame in the midst is missing", false, func(g *good) []merge.Frame { return slices.Delete(g.out, 2, 3) }},
	{"a frame twice", false, func(g *good) []merge.Frame { return slices.Insert(g.out, 2, g.out[1]) }},
	{"the root twice", false, func(g *good) []merge.Frame { return append(g.out, g.out[len(g.out)-1]) }},
	{"two frames changed places", false, func(g *good) []merge.Frame { g.out[1], g.out[2] = g.out[2], g.out[1]; return g.out }},
	{"root first", false, func(g *good) []merge.Frame { slices.Reverse(g.out); return g.out }},
	{"an invented frame", false, func(g *good) []merge.Frame {
		return slices.Insert(g.out, 2, merge.Frame{IP: 0x1234, SP: g.out[2].SP, FP: g.out[2].FP, Trust: unwind.TrustCFI})
	}},
	{"an ip one byte off", false, func(g *good) []merge.Frame { g.out[g.native()].IP--; return g.out }},
	{"a managed ip one byte off", false, func(g *good) []merge.Frame { g.out[g.managed()].IP++; return g.out }},
	{"an unmanaged sp a word off", false, func(g *good) []merge.Frame { g.out[g.native()].SP += 8; return g.out }},
	{"an unmanaged fp a word off", false, func(g *good) []merge.Frame { g.out[g.native()].FP += 8; return g.out }},
	{"a managed sp a word off", false, func(g *good) []merge.Frame { g.out[g.managed()].SP -= 8; return g.out }},
	{"a managed fp a word off", false, func(g *good) []merge.Frame { g.out[g.managed()].FP -= 8; return g.out }},
	{"another method", false, func(g *good) []merge.Frame { g.out[g.managed()].Function++; return g.out }},
	{"a method without its id", false, func(g *good) []merge.Frame { g.out[g.managed()].Function = 0; return g.out }},
	{"a caller said to be interrupted", false, func(g *good) []merge.Frame {
		called := slices.IndexFunc(g.r.truth, func(f machine.Frame) bool { return !f.Exact })
		g.out[called].Exact = true
		return g.out
	}},
	{"a gap in a stack said to be complete", false, func(g *good) []merge.Frame { return gap(g.out, 2) }},
	{"an invented frame behind a gap", true, func(g *good) []merge.Frame {
		return append(gap(g.out[:2], 2), merge.Frame{IP: 0x1234, SP: g.out[1].SP, Trust: unwind.TrustCFI})
	}},
	{"a frame twice, before and behind a gap", true, func(g *good) []merge.Frame {
		return append(gap(slices.Clone(g.out[:3]), 3), g.out[2])
	}},
	{"out of order behind a gap", true, func(g *good) []merge.Frame {
		return append(gap(slices.Clone(g.out[:1]), 1), g.out[3], g.out[2])
	}},
	{"the outermost frames twice, first by a guess", true, func(g *good) []merge.Frame {
		at := g.managed()
		out := slices.Clone(g.out[:at])
		for _, f := range g.out[at+1:] {
			f.Trust = unwind.TrustFramePointer
			out = append(out, f)
		}
		out = append(gap(out, len(out)), g.out[at:]...)
		return out
	}},
	{"an invented frame behind a doubtful one", false, func(g *good) []merge.Frame {
		return append(doubted(g), merge.Frame{IP: 0x1234, SP: g.out[2].SP, Trust: unwind.TrustCFI})
	}},
	{"a frame twice behind a doubtful one", false, func(g *good) []merge.Frame { return append(doubted(g), g.out[3], g.out[3]) }},
	{"out of order behind a doubtful one", false, func(g *good) []merge.Frame { return append(doubted(g), g.out[3], g.out[2]) }},
	{"another method behind a gap", true, func(g *good) []merge.Frame {
		f := g.out[g.managed()]
		f.Function++
		return append(gap(slices.Clone(g.out[:1]), 1), f)
	}},
}

// The judge refuses each of them; one that lets everything pass would make every
// "0 wrong" of this project worthless.
func TestJudgeRefusesWrongStacks(t *testing.T) {
	all := goodOnes(t)
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			for _, g := range all {
				g.out = slices.Clone(g.out)
				g.res.Gap = merge.GapNone
				if w.gap {
					g.res.Gap = merge.GapLimit
				}
				if _, err := g.r.w.Host.Check(g.r.truth, w.bend(&g), &g.res); err == nil {
					t.Fatalf("%v, %v: it passes", g.r.w.Variant, g.r.w.Arch)
				}
			}
		})
	}
	t.Logf("%d wrong stacks, each of %d recordings, refused", len(wrongs), len(all))
}

// And the judge of seeds refuses wrong verdicts and registers.
func TestJudgeRefusesWrongSeeds(t *testing.T) {
	all := goodOnes(t)
	for _, w := range []struct {
		name string
		v    seed.Verdict
		bend func(g *good, st *machine.State)
	}{
		{"no managed frame where there is one", seed.NoManaged, func(*good, *machine.State) {}},
		{"not needed where the top is unmanaged", seed.NotNeeded, func(*good, *machine.State) {}},
		{"ip one byte off", seed.Found, func(_ *good, st *machine.State) { st.PC-- }},
		{"the frame below", seed.Found, func(g *good, st *machine.State) { *st = g.r.truth[g.r.top()+1].State }},
		{"sp a word off", seed.Found, func(g *good, st *machine.State) { st.R[g.r.w.Arch.SP()] += 8 }},
		{"fp a word off", seed.Found, func(g *good, st *machine.State) { st.R[g.r.w.Arch.FP()] += 8 }},
	} {
		for _, g := range all {
			st := g.r.truth[g.r.top()].State
			if err := g.r.w.Host.CheckSeed(g.r.truth, seed.Found, &st); err != nil {
				t.Fatalf("the true seed: %v", err)
			}
			w.bend(&g, &st)
			if err := g.r.w.Host.CheckSeed(g.r.truth, w.v, &st); err == nil {
				t.Errorf("%s: %v, %v: it passes", w.name, g.r.w.Variant, g.r.w.Arch)
			}
		}
	}
}

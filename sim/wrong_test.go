package sim_test

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
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
		_, err := r.w.Host.Check(r.truth, out, &res)
		must.Do(t, err)
		all = append(all, good{r, out, res})
	}
	must.True(t, len(all) >= 3, "%d good recordings only", len(all))
	return all
}

// find is the index of the first frame from index from on that is as wanted, -1 if
// there is none.
func (g *good) find(from int, want func(t *machine.Frame, f *merge.Frame) bool) int {
	for i := from; i < len(g.out); i++ {
		if want(&g.r.truth[i], &g.out[i]) {
			return i
		}
	}
	return -1
}

// method is the index of the first method.
func (g *good) method() int {
	return g.find(0, func(_ *machine.Frame, f *merge.Frame) bool { return f.Kind == unwind.KindManaged })
}

// native is that of the first unmanaged frame below the leaf, whose FP is judged.
func (g *good) native() int {
	return g.find(1, func(_ *machine.Frame, f *merge.Frame) bool { return f.Kind == unwind.KindNative })
}

// stub is that of the first IL stub.
func (g *good) stub() int {
	return g.find(0, func(t *machine.Frame, f *merge.Frame) bool {
		code, _ := g.r.w.CLR.Codes.At(t.State.PC)
		return code == vm.Dynamic
	})
}

// called is that of the first frame that has called.
func (g *good) called() int {
	return g.find(0, func(t *machine.Frame, _ *merge.Frame) bool { return !t.Exact })
}

// change changes frame at, if there is one.
func (g *good) change(at int, how func(f *merge.Frame)) bool {
	if at >= 0 {
		how(&g.out[at])
	}
	return at >= 0
}

// interrupt makes the true frame at an interrupted one, if there is one.
func (g *good) interrupt(at int) bool {
	if at >= 0 {
		r := *g.r
		r.truth = slices.Clone(r.truth)
		r.truth[at].Exact = true
		g.r = &r
	}
	return at >= 0
}

// gap puts a gap in front of frame at.
func (g *good) gap(at int) {
	g.out = slices.Insert(g.out, at, merge.Frame{Kind: unwind.KindGap, Gap: merge.GapLimit, Module: -1})
}

// doubt makes the frames from the given one on doubtful, up to the next that the CLR
// reported.
func (g *good) doubt(from int) {
	for i := from; i < len(g.out) && g.out[i].Trust != unwind.TrustCLR; i++ {
		g.out[i].Trust = unwind.TrustFramePointer
	}
}

// count makes the result agree with the frames.
func (g *good) count() {
	guess := -1
	g.res.N, g.res.Gap, g.res.Managed, g.res.Hidden, g.res.Doubtful = len(g.out), merge.GapNone, 0, 0, 0
	for i := range g.out {
		f := &g.out[i]
		managed := f.Kind == unwind.KindManaged || f.Kind == unwind.KindStub
		switch {
		case f.Kind == unwind.KindGap && g.res.Gap == merge.GapNone:
			g.res.Gap = f.Gap
		case f.Trust == unwind.TrustCLR && managed:
			g.res.Managed++
		case managed:
			g.res.Hidden++
		}
		if f.Kind != unwind.KindGap && f.Trust == unwind.TrustCLR {
			guess, g.res.Doubtful = -1, 0
		}
		if f.Kind != unwind.KindGap && (guess >= 0 || f.Trust.Doubtful()) {
			guess = i
			g.res.Doubtful++
		}
	}
}

// The judge refuses each wrong stack for its own reason. A judge that lets
// everything pass would make every "0 wrong" of this project worthless.
func TestJudgeRefusesWrongStacks(t *testing.T) {
	all := goodOnes(t)
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) { refuses(t, all, w.why, w.bend, (*good).count) })
	}
	for _, w := range miscounts {
		t.Run(w.name, func(t *testing.T) { refuses(t, all, w.why, w.bend, func(*good) {}) })
	}
	t.Logf("%d wrong stacks, %d recordings", len(wrongs)+len(miscounts), len(all))
}

// refuses checks that the judge refuses each bent recording because of why. done is called after bend.
func refuses(t *testing.T, all []good, why string, bend func(g *good) bool, done func(g *good)) {
	n := 0
	for _, g := range all {
		g.out = slices.Clone(g.out)
		if !bend(&g) {
			continue
		}
		n++
		done(&g)
		_, err := g.r.w.Host.Check(g.r.truth, g.out, &g.res)
		must.True(t, err != nil, "%v, %v: it passes", g.r.w.Variant, g.r.w.Arch)
		expect.Contains(t, err.Error(), why)
	}
	expect.True(t, n != 0, "no recording has such a frame")
}

// The judge accepts what is true though it is not the whole truth.
func TestJudgeAcceptsWhatIsTrue(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(g *good) bool
	}{
		{"as it is", func(g *good) bool { return true }},
		{"frames are missing behind a gap", func(g *good) bool {
			g.out = slices.Delete(g.out, 1, 3)
			g.gap(1)
			return true
		}},
		{"nothing but a gap", func(g *good) bool { g.out = nil; g.gap(0); return true }},
		{"the end is missing behind a gap", func(g *good) bool { g.out = g.out[:2]; g.gap(2); return true }},
		{"a doubtful frame that is not there, then the rest", func(g *good) bool {
			return g.change(g.native(), func(f *merge.Frame) { f.IP++; f.Trust = unwind.TrustFramePointer })
		}},
		{"a doubtful unmanaged frame with a wrong fp", func(g *good) bool {
			return g.change(g.native(), func(f *merge.Frame) { f.FP++; f.Trust = unwind.TrustFramePointer })
		}},
		{"an interrupted method that the CLR has reported", func(g *good) bool {
			return g.interrupt(g.find(1, func(_ *machine.Frame, f *merge.Frame) bool {
				return f.Kind == unwind.KindManaged && f.Trust == unwind.TrustCLR
			}))
		}},
	} {
		for _, g := range goodOnes(t) {
			g.out = slices.Clone(g.out)
			if !c.bend(&g) {
				continue
			}
			g.count()
			_, err := g.r.w.Host.Check(g.r.truth, g.out, &g.res)
			expect.True(t, err == nil, "%s: %v, %v: %v", c.name, g.r.w.Variant, g.r.w.Arch, err)
		}
	}
}

// The judge of seeds refuses wrong verdicts and registers.
func TestJudgeRefusesWrongSeeds(t *testing.T) {
	all := goodOnes(t)
	for _, w := range []struct {
		name string
		v    seed.Verdict
		bend func(g *good, st *machine.State) bool
	}{
		{"no managed frame where there is one", seed.NoManaged,
			func(*good, *machine.State) bool { return true }},
		{"not needed where the top is unmanaged", seed.NotNeeded,
			func(*good, *machine.State) bool { return true }},
		{"found where no frame is managed", seed.Found, func(g *good, _ *machine.State) bool {
			g.r = &recorded{w: g.r.w, truth: g.r.truth[:g.r.top()]}
			return true
		}},
		{"ip one byte off", seed.Found, func(_ *good, st *machine.State) bool { st.PC--; return true }},
		{"the frame below", seed.Found,
			func(g *good, st *machine.State) bool { *st = g.r.truth[g.r.top()+1].State; return true }},
		{"sp a word off", seed.Found,
			func(g *good, st *machine.State) bool { st.R[g.r.w.Arch.SP()] += 8; return true }},
		{"fp a word off", seed.Found,
			func(g *good, st *machine.State) bool { st.R[g.r.w.Arch.FP()] += 8; return true }},
		{"the last preserved register", seed.Found, func(g *good, st *machine.State) bool {
			st.R[[2]int{image.AMD64: 15, image.ARM64: 28}[g.r.w.Arch]]++
			return true
		}},
		{"a preserved vector register", seed.Found, func(g *good, st *machine.State) bool {
			st.V[9][0]++
			return g.r.w.Arch == image.ARM64 || g.r.w.Format() == image.PE
		}},
	} {
		n := 0
		for _, g := range all {
			st := g.r.truth[g.r.top()].State
			must.Equal(t, g.r.w.Host.CheckSeed(g.r.truth, seed.Found, &st), nil, "the true seed")
			if !w.bend(&g, &st) {
				continue
			}
			n++
			expect.True(t, g.r.w.Host.CheckSeed(g.r.truth, w.v, &st) != nil,
				"%s: %v, %v: it passes", w.name, g.r.w.Variant, g.r.w.Arch)
		}
		expect.True(t, n != 0, "%s: no recording is of that kind", w.name)
	}
}

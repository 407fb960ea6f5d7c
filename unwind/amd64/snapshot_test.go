package amd64

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/snap"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// recorded is one snapshot ready to walk.
type recorded struct {
	s   *snap.Snapshot
	reg Registers
	mem *memory.Window
	u   *Unwinder
}

// eachSnapshot walks over every recorded x86-64 snapshot; one unwinder serves
// a program, as in a profiler.
func eachSnapshot(tb testing.TB, fn func(r *recorded)) {
	tb.Helper()
	a, err := snap.OpenVectors(snap.ForArch("x86_64"))
	if errors.Is(err, snap.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range a.Programs("x86_64") {
		p, err := a.Load(name)
		if err != nil {
			tb.Fatal(err)
		}
		u := New()
		for i := range p.Snapshots {
			fn(prepare(tb, p, &p.Snapshots[i], u))
		}
	}
}

func prepare(tb testing.TB, p *snap.Program, s *snap.Snapshot, u *Unwinder) *recorded {
	tb.Helper()
	t, err := p.Table(s)
	if err != nil {
		tb.Fatal(err)
	}
	r := &recorded{s: s, u: u}
	if r.reg, err = s.AMD64(); err != nil {
		tb.Fatal(err)
	}
	if r.mem, err = p.Window(s); err != nil {
		tb.Fatal(err)
	}
	u.SetTable(t)
	return r
}

// tally counts what became of one class's snapshots.
type tally struct {
	snapshots, right, frames, rightFrames, wrongSure, guessed int
}

// TestSnapshots holds every recorded stack against the single-stepped truth.
// Where unwind data gives every frame, every frame must be right in pc, sp and
// each callee-saved register; elsewhere no frame may be wrong that is not
// marked doubtful.
func TestSnapshots(t *testing.T) {
	for _, guess := range []bool{false, true} {
		sum := map[string]*tally{}
		eachSnapshot(t, func(r *recorded) { score(t, r, guess, sum) })
		if len(sum) == 0 {
			t.Fatal("no snapshots")
		}
		for class, c := range sum {
			t.Logf("guess=%v %s: %d of %d snapshots right, %d of %d frames, %d wrong without doubt, %d wrong or extra with doubt",
				guess, class, c.right, c.snapshots, c.rightFrames, c.frames, c.wrongSure, c.guessed)
		}
	}
}

func score(t *testing.T, r *recorded, guess bool, sum map[string]*tally) {
	c := sum[r.s.Class]
	if c == nil {
		c = &tally{}
		sum[r.s.Class] = c
	}
	var out [256]unwind.Frame
	bounds := unwind.Bounds{Guess: guess}
	n, stop, saved := walkRegs(r, &bounds, out[:])
	right, wrongSure, wrongDoubt, why := judge(r.s, out[:n], saved)
	c.snapshots++
	c.frames += len(r.s.Frames)
	c.rightFrames += right
	c.wrongSure += wrongSure
	c.guessed += wrongDoubt
	if right == len(r.s.Frames) && n == right {
		c.right++
	}
	exact := r.s.Class == "cfi_exact" || r.s.Class == "cfi_exact_end_nocfi"
	if exact && right != len(r.s.Frames) || r.s.Class == "cfi_exact" && n != right {
		t.Errorf("%s: %d of %d frames right, %d walked, stop %v: %s", r.s.ID, right, len(r.s.Frames), n, stop, why)
	}
	if wrongSure > 0 && r.s.Class != "cfi_misleads" && r.s.Class != "context_rewritten" {
		t.Errorf("%s: %d wrong frames without doubt, stop %v: %s", r.s.ID, wrongSure, stop, why)
	}
}

// walkRegs is Walk by single steps, keeping each frame's registers, and checks
// that Walk gives the same frames.
func walkRegs(r *recorded, b *unwind.Bounds, out []unwind.Frame) (int, unwind.Stop, []Registers) {
	regs, exact, trust := r.reg, true, unwind.TrustContext
	var saved []Registers
	for n := range out {
		saved = append(saved, regs)
		out[n].Trust = trust
		caller, stop := r.u.Step(&regs, exact, r.mem, b, &out[n])
		if stop != unwind.StopNone {
			return n + 1, stop, saved
		}
		exact = caller
		if !trust.Doubtful() {
			trust = r.u.StepTrust()
		}
	}
	return len(out), unwind.BufferFull, saved
}

// judge counts right frames from the leaf on, and wrong ones after them.
func judge(s *snap.Snapshot, got []unwind.Frame, regs []Registers) (right, sure, doubt int, why string) {
	for i, f := range got {
		if i < len(s.Frames) && right == i {
			if why = differs(s, i, &f, &regs[i]); why == "" {
				right++
				continue
			}
		}
		if f.Trust.Doubtful() {
			doubt++
		} else {
			sure++
		}
	}
	return right, sure, doubt, why
}

func differs(s *snap.Snapshot, i int, f *unwind.Frame, regs *Registers) string {
	want := &s.Frames[i]
	if f.IP != uint64(want.PC) {
		return "pc"
	}
	if want.SP != nil && f.SP != uint64(*want.SP) {
		return "sp"
	}
	if f.Exact != (want.Kind != "ret") && want.Kind != "tramp" {
		return "exact"
	}
	if s.DisputedFrom != nil && i >= *s.DisputedFrom {
		return ""
	}
	for name, v := range want.Regs {
		n := snap.AMD64Index(name)
		if known(regs, n) && regs.GPR[n] != uint64(v) {
			return name
		}
		if !known(regs, n) && !f.Trust.Doubtful() {
			return name + " unknown"
		}
	}
	return ""
}

// Walk and Step agree, with and without the cache.
func TestWalkAgreesWithStep(t *testing.T) {
	walks := 0
	eachSnapshot(t, func(r *recorded) {
		var a, b, c [256]unwind.Frame
		bounds := unwind.Bounds{Guess: true}
		n, stop, _ := walkRegs(r, &bounds, a[:])
		regs := r.reg
		n2, _, stop2 := r.u.Walk(&regs, true, unwind.TrustContext, r.mem, &bounds, b[:])
		if n != n2 || stop != stop2 || a != b {
			t.Errorf("%s: Step %d frames, %v; Walk %d, %v", r.s.ID, n, stop, n2, stop2)
		}
		r.u.DisableCache(true)
		uncached := r.reg
		n3, _, stop3 := r.u.Walk(&uncached, true, unwind.TrustContext, r.mem, &bounds, c[:])
		r.u.DisableCache(false)
		if n3 != n2 || stop3 != stop2 || b != c || regs != uncached {
			t.Errorf("%s: cached %d frames, %v; uncached %d, %v", r.s.ID, n2, stop2, n3, stop3)
		}
		walks++
	})
	t.Logf("%d snapshots walked three ways", walks)
}

package arm64

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

// eachSnapshot walks over every recorded AArch64 snapshot; one unwinder serves
// a program, as in a profiler.
func eachSnapshot(tb testing.TB, fn func(r *recorded)) {
	tb.Helper()
	a, err := snap.OpenVectors(snap.ForArch("aarch64"))
	if errors.Is(err, snap.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range a.Programs("aarch64") {
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
	if r.reg, err = s.ARM64(); err != nil {
		tb.Fatal(err)
	}
	if r.mem, err = p.Window(s); err != nil {
		tb.Fatal(err)
	}
	u.SetTable(t)
	return r
}

// walkSteps is Walk by single steps.
func walkSteps(r *recorded, b *unwind.Bounds, out []unwind.Frame) (int, Registers, unwind.Stop) {
	at := stateOf(&r.reg, true)
	for n := range out {
		if stop := r.u.Step(&at, r.mem, b, &out[n]); stop != unwind.StopNone {
			return n + 1, at.Regs.ARM64, stop
		}
	}
	return len(out), at.Regs.ARM64, unwind.BufferFull
}

// Walk and Step agree, with and without the cache.
func TestWalkAgreesWithStep(t *testing.T) {
	walks := 0
	eachSnapshot(t, func(r *recorded) {
		var a, b, c [256]unwind.Frame
		bounds := unwind.Bounds{Guess: true}
		n, last, stop := walkSteps(r, &bounds, a[:])
		regs := r.reg
		n2, _, stop2 := walkOf(r.u, &regs, true, unwind.TrustContext, r.mem, &bounds, b[:])
		if n != n2 || stop != stop2 || a != b || last != regs {
			t.Errorf("%s: Step %d frames, %v; Walk %d, %v", r.s.ID, n, stop, n2, stop2)
		}
		r.u.DisableCache(true)
		uncached := r.reg
		n3, _, stop3 := walkOf(r.u, &uncached, true, unwind.TrustContext, r.mem, &bounds, c[:])
		r.u.DisableCache(false)
		if n3 != n2 || stop3 != stop2 || b != c || regs != uncached {
			t.Errorf("%s: cached %d frames, %v; uncached %d, %v", r.s.ID, n2, stop2, n3, stop3)
		}
		walks++
	})
	t.Logf("%d snapshots walked three ways", walks)
}

package walktest

import (
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/snap"
	"github.com/seedwalk/seedwalk/unwind"
)

// recorded is one snapshot ready to walk.
type recorded struct {
	Snapshot *snap.Snapshot
	Regs     context.Registers
	Mem      *memory.Window
	Walker   Walker
}

// archNames are those of the recordings.
var archNames = [...]string{context.ArchAMD64: "x86_64", context.ArchARM64: "aarch64"}

// snapshots calls fn with every recorded snapshot of the architecture; one walker serves a program, as in a
// profiler.
func (l *Lab) snapshots(tb testing.TB, fn func(r *recorded)) {
	tb.Helper()
	all, err := snap.OpenVectors(snap.ForArch(archNames[l.Arch]))
	if errors.Is(err, snap.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(tb, err)
	for _, name := range all.Programs(archNames[l.Arch]) {
		p := must.Get(all.Load(name))(tb)
		u := l.New(tb)
		for i := range p.Snapshots {
			fn(prepare(tb, l.Arch, p, &p.Snapshots[i], u))
		}
	}
}

func prepare(tb testing.TB, a context.Arch, p *snap.Program, s *snap.Snapshot, u Walker) *recorded {
	tb.Helper()
	t, err := p.Table(s)
	must.Do(tb, err)
	r := &recorded{Snapshot: s, Walker: u}
	if r.Regs, err = registers(a, s); err != nil {
		tb.Fatal(err)
	}
	if r.Mem, err = p.Window(s); err != nil {
		tb.Fatal(err)
	}
	u.SetTable(t)
	return r
}

func registers(a context.Arch, s *snap.Snapshot) (context.Registers, error) {
	if a == context.ArchARM64 {
		r, err := s.ARM64()
		return context.FromARM64(r), err
	}
	r, err := s.AMD64()
	return context.FromAMD64(r), err
}

// walkAgreesWithStep walks every recorded snapshot three ways: Walk and Step agree, with and without the
// cache.
func (l *Lab) walkAgreesWithStep(t *testing.T) {
	walks := 0
	l.snapshots(t, func(r *recorded) {
		var a, b, c [256]unwind.Frame
		bounds := unwind.Bounds{Guess: true}
		last := r.Regs
		n, stop := r.steps(&last, &bounds, a[:])
		regs, uncached := r.Regs, r.Regs
		at := unwind.Interrupted(&regs)
		got := r.Walker.Walk(&at, r.Mem, &bounds, b[:])
		if n != got.N || stop != got.Stop || a != b || !last.Equal(&regs) {
			t.Errorf("%s: Step %d frames, %v; Walk %d, %v", r.Snapshot.ID, n, stop, got.N, got.Stop)
		}
		r.Walker.DisableCache(true)
		at = unwind.Interrupted(&uncached)
		plain := r.Walker.Walk(&at, r.Mem, &bounds, c[:])
		r.Walker.DisableCache(false)
		if plain != got || b != c || !regs.Equal(&uncached) {
			t.Errorf("%s: cached %d frames, %v; uncached %d, %v", r.Snapshot.ID, got.N,
				got.Stop, plain.N, plain.Stop)
		}
		walks++
	})
	t.Logf("%d snapshots walked three ways", walks)
}

// steps is Walk by single steps.
func (r *recorded) steps(regs *context.Registers, b *unwind.Bounds, out []unwind.Frame) (int, unwind.Stop) {
	at := unwind.Interrupted(regs)
	for n := range out {
		if stop := r.Walker.Step(&at, r.Mem, b, &out[n]); stop != unwind.StopNone {
			return n + 1, stop
		}
	}
	return len(out), unwind.BufferFull
}

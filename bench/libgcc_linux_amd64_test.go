package bench

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// libgcc is the deep program, which walks by libgcc the stack that it has recorded.
func libgcc(tb testing.TB, depth string) (*peer.Timer, *capture.File) {
	tb.Helper()
	dir := tb.TempDir()
	deep, err := peer.Build(dir, "libunwind", "deep")
	if errors.Is(err, peer.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(tb, err)
	path := filepath.Join(dir, "recorded")
	timer, err := peer.StartLive(deep, path, depth, "libgcc")
	must.Do(tb, err)
	tb.Cleanup(func() {
		if err := timer.Close(); err != nil {
			tb.Error(err)
		}
	})
	theirs, n, err := timer.Ask("f", 1) // answered when all is recorded
	must.Do(tb, err)
	f, err := capture.Read(path)
	must.Do(tb, err)
	s := newSide(f)
	s.empty(true)
	ours, hash := s.walk(0), uint64(0xcbf29ce484222325)
	for i := 1; i < ours; i++ { // the first frame's place is that of the recording
		hash = (hash ^ s.out[i].IP) * 0x100000001b3
	}
	if uint64(ours-1) != n || hash != theirs {
		tb.Fatalf("%d frames above the first, of hash %x; libgcc has %d of %x", ours-1, hash, n, theirs)
	}
	return timer, f
}

// Both walk the same return addresses.
func TestLibgcc(t *testing.T) {
	timer, f := libgcc(t, "32")
	if _, frames, err := timer.Ask("n", 5); err != nil || frames != 5*(32+2) || f.Stacks[0].Limit < 32 {
		t.Errorf("%d frames, %v", frames, err)
	}
}

// BenchmarkLibgcc is a walk that computes each rule again, compared with libgcc's, which does so too.
func BenchmarkLibgcc(b *testing.B) {
	timer, f := libgcc(b, "32")
	theirs := func(n int) float64 {
		ns, frames, err := timer.Ask("n", n)
		if err != nil || frames == 0 {
			b.Fatal(frames, err)
		}
		return float64(ns) / float64(frames)
	}
	s := newSide(f)
	b.Run("deep-32/off/libgcc", func(b *testing.B) {
		r := against("deep-32/off", "libgcc", 32, s.ours(peer.Off), theirs)
		s.again(b, peer.Off)
		r.report(b)
	})
}

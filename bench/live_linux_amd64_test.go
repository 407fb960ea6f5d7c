package bench

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// liveDepth is how many frames the program's own stack has, at each place it walks from.
const liveDepth = 29

// live builds and starts a program that walks its own stack, by unw_backtrace and by our C
// library. The program exits with an error if the two find different frames.
func live(tb testing.TB) *peer.Timer {
	tb.Helper()
	dir := tb.TempDir()
	library := filepath.Join(dir, "libseedwalk.so")
	needs.Command(tb, "gcc")
	must.Do(tb, run("../capi/build.sh", "shared", library))
	program, err := peer.Build(dir, "live", "live", library, "-Wl,-rpath,"+dir, "-lunwind")
	if errors.Is(err, peer.ErrAbsent) {
		tb.Skip("SKIPPED-CHECK: " + err.Error())
	}
	must.Do(tb, err)
	timer := must.Get(peer.StartLive(program))(tb)
	tb.Cleanup(func() {
		expect.Equal(tb, timer.Close(), nil)
	})
	return timer
}

// BenchmarkLive is what a C program pays for its own stack: seedwalk_walk and
// seedwalk_walk_batch beside unw_backtrace, which takes return addresses only.
func BenchmarkLive(b *testing.B) {
	timer := live(b)
	by := func(what string) round {
		return func(n int) float64 {
			ns, frames, err := timer.Ask(what, n)
			if err != nil || frames == 0 {
				b.Fatal(frames, err)
			}
			return float64(ns) / float64(frames)
		}
	}
	for _, c := range []struct{ name, what string }{{"live/walk", "s"}, {"live/batch", "b"}} {
		b.Run(c.name, func(b *testing.B) {
			r := against(c.name, "unw_backtrace", liveCalls*liveDepth, by(c.what), by("u"))
			for b.Loop() {
				by(c.what)(1)
			}
			r.report(b)
		})
	}
}

// liveCalls is how many walks the program does each time it is asked.
const liveCalls = 64

// All three ways find the same frames.
func TestLive(t *testing.T) {
	timer := live(t)
	for _, what := range []string{"u", "s", "b"} {
		_, frames, err := timer.Ask(what, 3)
		expect.True(t, err == nil && frames == 3*liveCalls*liveDepth, "%s: %d frames, %v", what, frames, err)
	}
}

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
		expect.Equal(tb, timer.Close(), nil)
	})
	theirs, n, err := timer.Ask("f", 1) // answered when all is recorded
	must.Do(tb, err)
	f := must.Get(capture.Read(path))(tb)
	s := newSide(f)
	s.empty(true)
	ours, hash := s.walk(0), uint64(0xcbf29ce484222325)
	for i := 1; i < ours; i++ { // the first frame's place is that of the recording
		hash = (hash ^ s.out[i].IP) * 0x100000001b3
	}
	must.True(tb, uint64(ours-1) == n && hash == theirs,
		"%d frames above the first, of hash %x; libgcc has %d of %x", ours-1, hash, n, theirs)
	return timer, f
}

// Both walk the same return addresses.
func TestLibgcc(t *testing.T) {
	timer, f := libgcc(t, "32")
	_, frames, err := timer.Ask("n", 5)
	expect.True(t, err == nil && frames == 5*(32+2) && f.Stacks[0].Limit >= 32, "%d frames, %v", frames, err)
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

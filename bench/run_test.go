package bench

import (
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func run(name string, args ...string) error {
	if b, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, b)
	}
	return nil
}

func record(tb testing.TB, deep, path string, depth int) {
	tb.Helper()
	must.Do(tb, run(deep, path, fmt.Sprint(depth)))
}

// rawFiles lists the raw sample files to walk, or skips nothing and says so.
func rawFiles(b *testing.B) []string {
	files, err := peer.RawFiles(b.TempDir())
	if err != nil {
		b.Log("SKIPPED-CHECK: " + err.Error())
	}
	return files
}

// Both sides give every frame of stacks of known depth: the timed work is the
// whole walk.
func TestDeep(t *testing.T) {
	peers, deep := rivals(t)
	for _, depth := range []int{8, 32, 128} {
		path := t.TempDir() + "/deep"
		record(t, deep, path, depth)
		f := must.Get(capture.Read(path))(t)
		for i := range peers {
			if got := peers[i].agreed(t, f).Stacks[0].Limit; got != depth {
				t.Errorf("%s: %d frames of a stack of %d", peers[i].name, got, depth)
			}
		}
		replayed(t, f)
	}
}

// A sampler's worst walks matter more than its mean: each stack once, from an empty cache.

// tails are the 99th percentiles of this run, us by name of the input.
var tails = map[string]float64{}

// tailRounds are taken of each stack, the fastest counts: what else runs on the machine
// only ever adds.
const tailRounds = 9

// times is every stack's time in us of a round that begins with empty caches.
func (s *side) times() []float64 {
	us := make([]float64, len(s.file.Stacks))
	for round := range tailRounds {
		s.empty(false)
		for i := range us {
			begin := time.Now()
			s.walk(i)
			t := float64(time.Since(begin)) / 1000
			if round == 0 || t < us[i] {
				us[i] = t
			}
		}
	}
	return us
}

// percentile99 is what one in a hundred reaches or exceeds.
func percentile99(us []float64) float64 {
	sorted := slices.Sorted(slices.Values(us))
	return sorted[len(sorted)*99/100]
}

// BenchmarkTail is the 99th percentile of a compiler's stacks, each walked once.
func BenchmarkTail(b *testing.B) {
	for _, c := range captured(b) {
		b.Run(c.name, func(b *testing.B) {
			s := newSide(c.file)
			for b.Loop() {
				s.times()
			}
			tails[c.name] = percentile99(s.times())
			b.ReportMetric(tails[c.name], "p99-us")
		})
	}
}

func TestPercentile(t *testing.T) {
	us := make([]float64, 1000)
	for i := range us {
		us[i] = float64(1000 - i)
	}
	if got := percentile99(us); got != 991 {
		t.Error(got)
	}
	if got := percentile99(us[:1]); got != 1000 {
		t.Error(got)
	}
}

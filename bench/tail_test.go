package bench

import (
	"slices"
	"testing"
	"time"
)

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

package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/bench/peer"
)

// A round (or a try at one) times n repetitions of the same work and gives ns per frame.
type round func(n int) float64

// Rounds of each side. The best of some tries counts for a round: a try is
// short, so that most pass undisturbed on a machine that others use too.
const (
	rounds  = 15
	tries   = 8
	tryTime = 400 * time.Microsecond
)

// best is a side's round.
func best(try round, n int) float64 {
	ns := try(n)
	for range tries - 1 {
		ns = min(ns, try(n))
	}
	return ns
}

// result is how two sides compare. A ratio is the other side's time by ours:
// above 1 we are faster.
type result struct {
	name, peer   string
	frames       int
	ours, theirs float64   // ns per frame, the minimum of the rounds
	ratios       []float64 // of neighbouring rounds, sorted; nil = there is no peer
}

// against alternates rounds of both sides.
func against(name, peer string, frames int, ours, theirs round) result {
	times := func(perFrame float64) int { return max(1, int(float64(tryTime)/perFrame/float64(frames))) }
	nOurs, nTheirs := times(best(ours, 2)), times(best(theirs, 2))
	r := result{name: name, peer: peer, frames: frames}
	var o, p []float64
	for range rounds {
		o, p = append(o, best(ours, nOurs)), append(p, best(theirs, nTheirs))
		r.ratios = append(r.ratios, p[len(p)-1]/o[len(o)-1])
	}
	r.ours, r.theirs = slices.Min(o), slices.Min(p)
	slices.Sort(r.ratios)
	return r
}

// report gives a result's numbers to the benchmark and to the table.
func (r result) report(b *testing.B) {
	b.ReportMetric(r.ours, "ours-ns/frame")
	b.ReportMetric(r.theirs, r.peer+"-ns/frame")
	b.ReportMetric(r.ratios[0], "ratio-min")
	b.ReportMetric(r.ratios[rounds/2], "ratio-median")
	b.ReportMetric(r.ratios[rounds-1], "ratio-max")
	table = append(table, r)
}

// table holds the results of this run. Benchmarks run one after another.
var table []result

// TestMain prints the table below the benchmarks, and what it says of the goals.
func TestMain(m *testing.M) {
	code := m.Run()
	if len(table) > 0 {
		fmt.Printf("\n%-22s %7s %10s  %-22s %10s   %s\n", "walk", "frames", "ours", "beside", "ns/frame", "times faster: median (min ... max)")
	}
	for _, r := range table {
		fmt.Printf("%-22s %7d %10.1f  %-22s %10.1f   %.2f (%.2f ... %.2f)\n", r.name, r.frames, r.ours, r.peer, r.theirs,
			r.ratios[rounds/2], r.ratios[0], r.ratios[rounds-1])
	}
	if len(table)+len(loads)+len(tails) > 0 {
		printGoals(os.Stdout)
	}
	os.Exit(code)
}

// ours is our side's round.
func (s *side) ours(m peer.Mode) round {
	return func(n int) float64 {
		ns, frames := s.round(m, n)
		return float64(ns) / float64(frames)
	}
}

// again repeats our side for the testing package's own figures.
func (s *side) again(b *testing.B, m peer.Mode) {
	b.ReportAllocs()
	for b.Loop() {
		s.round(m, 1)
	}
}

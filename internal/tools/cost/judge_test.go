package main

import (
	"math"
	"testing"
)

// A goal is judged only where the noise leaves no doubt.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		goal goal
		want string
	}{
		{"below the limit", goal{limit: 1, got: 0.4, noise: 0.3}, "met"},
		{"faster with the tool, on a busy machine", goal{limit: 1, got: -56, noise: 40}, "not judged: the machine is not quiet"},
		{"above, beyond the noise", goal{limit: 1, got: 2, noise: 0.5}, "MISSED"},
		{"above, within the noise", goal{limit: 1, got: 1.4, noise: 0.5}, "not judged: the machine is not quiet"},
		{"at least, above", goal{limit: 95, least: true, got: 99, noise: 1}, "met"},
		{"at least, below", goal{limit: 95, least: true, got: 80, noise: 1}, "MISSED"},
		{"few samples", goal{limit: 5, got: math.NaN(), noise: 1}, "too few samples"},
	} {
		if got := c.goal.verdict(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Throughput is judged by the best round of each setup: one disturbed round of the
// program alone makes the tool no gain.
func TestJudgeByTheBest(t *testing.T) {
	rows := make([]series, len(setups))
	for i, s := range setups {
		for _, wall := range []float64{2.0, 2.1, 2.05} {
			if s.way == "probe" {
				wall *= 1.02
			}
			rows[i] = append(rows[i], result{wall: wall, cpu: 3, p50: 2, rate: 1, samples: 500})
		}
	}
	rows[0][1].wall = 5 // somebody else's minute
	for _, g := range judge(program{name: "cpu"}, rows) {
		want := "met"
		if g.what == "cpu, 100 Hz: throughput lost" {
			want = "MISSED"
		}
		if got := g.verdict(); got != want {
			t.Errorf("%s: %.2f, %q, want %q", g.what, g.got, got, want)
		}
	}
}

package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// A goal is judged only where all of the interval is on one side.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		goal goal
		want string
	}{
		{"below the limit", goal{limit: 1, got: interval{-0.1, 0.4, 0.9}}, "met"},
		{"faster with the tool, on a busy machine", goal{limit: 1, got: interval{-96, -56, 40}}, undecided},
		{"faster, and surely no slower", goal{limit: 1, got: interval{-0.9, -0.4, 0.1}}, "met"},
		{"above", goal{limit: 1, got: interval{1.5, 2, 2.5}}, "MISSED"},
		{"above, the interval reaches below", goal{limit: 1, got: interval{0.9, 1.4, 1.9}}, undecided},
		{"below, the interval reaches above", goal{limit: 1, got: interval{0.2, 0.8, 1.4}}, undecided},
		{"at least, above", goal{limit: 95, least: true, got: interval{98, 99, 100}}, "met"},
		{"at least, below", goal{limit: 95, least: true, got: interval{79, 80, 81}}, "MISSED"},
		{"at least, around", goal{limit: 95, least: true, got: interval{90, 96, 97}}, undecided},
		{"few samples", goal{limit: 5, got: interval{math.NaN(), 1, 2}}, "too few samples"},
		{"few windows", goal{limit: 5, got: interval{math.NaN(), 1, math.NaN()}}, "too few samples"},
	} {
		expect.Equal(t, c.goal.verdict(), c.want, c.name)
	}
}

// made describes a made-up series of windows, in the order in which they are measured. The
// program loses a share of its units while a tool is attached. The machine has noise.
type made struct {
	lost  float64                    // share
	noise float64                    // standard deviation of a window, share
	drift float64                    // share by which the machine is slower at the end
	rough func(i int, w *window)     // what else befalls a window
	draw  func(r *rand.Rand) float64 // of the noise; nil: normal
	pairs int                        // of each rate
}

func (m *made) series(seed uint64) []window {
	r := rand.New(rand.NewPCG(seed, 11))
	draw := m.draw
	if draw == nil {
		draw = (*rand.Rand).NormFloat64
	}
	var all []window
	n := (2*len(rates) + 1) * m.pairs
	for turn := range m.pairs {
		for k := range 2*len(rates) + 1 {
			i := len(all)
			w := window{units: 1000 * (1 - m.drift*float64(i)/float64(n)) * (1 + m.noise*draw(r)), own: 1}
			if k%2 == 1 {
				w.rate = rates[(k/2+turn)%len(rates)]
				w.units *= 1 - m.lost
			}
			if m.rough != nil {
				m.rough(i, &w)
			}
			all = append(all, w)
		}
	}
	return all
}

func (m *made) goal(seed uint64, limit float64) *goal {
	return &goal{limit: limit, got: centre(differences(m.series(seed), 100, throughput))}
}

// The judge finds what is lost, and acquits who loses less, if it has windows enough for
// the noise; if not it says nothing.
func TestJudge(t *testing.T) {
	burst := func(i int, w *window) {
		if i%21 == 4 { // a second disturbed by others
			w.units *= 0.4
		}
	}
	for _, c := range []struct {
		name  string
		made  made
		limit float64
		want  string
	}{
		{"3 % lost, quiet", made{lost: 0.03, noise: 0.005, pairs: 14}, 1, "MISSED"},
		{"3 % lost, noise of 3 % a window", made{lost: 0.03, noise: 0.03, pairs: 150}, 1, "MISSED"},
		{"0.5 % lost, quiet", made{lost: 0.005, noise: 0.003, pairs: 20}, 1, "met"},
		{"0.5 % lost, noise of 5 %, many windows", made{lost: 0.005, noise: 0.05, pairs: 2500}, 1, "met"},
		{"0.5 % lost, noise of 5 %, few windows", made{lost: 0.005, noise: 0.05, pairs: 20}, 1, undecided},
		{"nothing lost, the machine gets slower by a third",
			made{noise: 0.003, drift: 0.33, pairs: 20}, 1, "met"},
		{"3 % lost, the machine gets slower by a third",
			made{lost: 0.03, noise: 0.005, drift: 0.33, pairs: 20}, 1, "MISSED"},
		{"nothing lost, seconds of others", made{noise: 0.003, rough: burst, pairs: 40}, 1, "met"},
		{"3 % lost, seconds of others", made{lost: 0.03, noise: 0.003, rough: burst, pairs: 40}, 1, "MISSED"},
		{"four windows", made{lost: 0.03, noise: 0.001, pairs: 4}, 1, "too few samples"},
		{"4 % of 5 %", made{lost: 0.04, noise: 0.01, pairs: 30}, 5, "met"},
		{"6 % of 5 %", made{lost: 0.06, noise: 0.01, pairs: 40}, 5, "MISSED"},
	} {
		runs := uint64(5)
		if c.made.pairs > 500 {
			runs = 1 // each takes half a second
		}
		for seed := range runs {
			if g := c.made.goal(seed, c.limit); g.verdict() != c.want {
				t.Errorf("%s, run %d: %v: %q, want %q", c.name, seed, g.got, g.verdict(), c.want)
			}
		}
	}
}

// The interval holds the truth as often as it says, few windows or many, whatever the
// noise is like.
func TestIntervalHolds(t *testing.T) {
	heavy := func(r *rand.Rand) float64 { // two machines: one in ten windows is of the worse
		if r.IntN(10) == 0 {
			return 8 * r.NormFloat64()
		}
		return r.NormFloat64()
	}
	for _, c := range []struct {
		name string
		made made
	}{
		{"8 windows", made{lost: 0.02, noise: 0.01, pairs: 8}},
		{"25 windows", made{lost: 0.02, noise: 0.01, pairs: 25}},
		{"70 windows, where ranks are taken for normal", made{lost: 0.02, noise: 0.01, pairs: 70}},
		{"25 windows, some far off", made{lost: 0.02, noise: 0.005, draw: heavy, pairs: 25}},
	} {
		const runs = 600
		held := 0
		for seed := range uint64(runs) {
			d := differences(c.made.series(seed), 100, throughput)
			if i := centre(d); i.low <= 100*c.made.lost && 100*c.made.lost <= i.high {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.935 || share > 0.985 {
			t.Errorf("%s: the interval held the truth in %.1f of 100 runs", c.name, 100*share)
		}
	}
}

// critical is the table's, for two-sided 5 %: one more than the greatest sum of ranks that
// is rejected.
func TestCritical(t *testing.T) {
	for n, want := range map[int]int{5: 0, 6: 1, 7: 3, 8: 4, 10: 9, 15: 26, 20: 53, 30: 138, 50: 435} {
		expect.Equal(t, critical(n), want, "%d differences", n)
	}
	a, b := critical(manyPairs), critical(manyPairs+1)
	expect.True(t, b > a && b <= a+40, "%d of %d differences, %d of one more", a, manyPairs, b)
}

// Windows are compared with those beside them only, and windows alone among themselves.
func TestDifferences(t *testing.T) {
	all := []window{{units: 100, own: 1}, {rate: 100, units: 90, own: 1}, {units: 100, own: 1},
		{rate: 1000, units: 40, own: 1}, {units: 60, own: 1}}
	for _, c := range []struct {
		name string
		rate int
		f    func(w, a, b *window) float64
		want float64
	}{
		{"100 Hz", 100, throughput, 10},
		{"1,000 Hz, of a machine that got slower", 1000, throughput, 50},
		{"nothing", 0, throughput, -25},
		{"processor time of a unit", 100, effort, 100.0 / 9},
	} {
		if d := differences(all, c.rate, c.f); len(d) != 1 || math.Abs(d[0]-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, d, c.want)
		}
	}
}

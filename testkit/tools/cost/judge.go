package main

import (
	"fmt"
	"math"
)

// goal is a limit and the measured value.
type goal struct {
	what  string
	limit float64 // at most; at least, if least
	least bool
	got   interval
	unit  string
}

// verdict judges a goal. It is met or missed if the whole interval of the measurement is on one
// side of the limit. Otherwise it is not judged.
func (g *goal) verdict() string {
	good, bad := g.got.high <= g.limit, g.got.low > g.limit
	if g.least {
		good, bad = g.got.low >= g.limit, g.got.high < g.limit
	}
	switch {
	case math.IsNaN(g.got.low) || math.IsNaN(g.got.high):
		return "too few samples"
	case good:
		return "met"
	case bad:
		return "MISSED"
	}
	return undecided
}

const undecided = "not judged: the limit lies within the interval"

// The goals of issue and README: throughput by rate, and what holds of any.
var mayLose = map[int]float64{100: 1, 1000: 5}

const (
	mayStand    = 5    // microseconds, the median
	mustReach   = 95   // percent of the rate asked, up to the kernel's tick
	mayUse      = 0.01 // of a core, for a thousand threads that sleep
	enough      = 100  // fewer samples have no useful median
	microsecond = "us"
	percent     = "%"
)

// judge compares the losses of a program with the goals.
func judge(p program, m *steady) (goals []goal) {
	for _, rate := range rates {
		attachments := m.attachments[rate]
		name := fmt.Sprintf("%s, %d Hz: ", p.name, rate)
		still, reached := centre(each(attachments, func(v *attachment) float64 { return v.p50 })),
			centre(each(attachments, func(v *attachment) float64 { return 100 * v.rate }))
		samples := 0.0
		for i := range attachments {
			samples += attachments[i].samples
		}
		if samples < enough {
			still.low, reached.low = math.NaN(), math.NaN()
		}
		goals = append(goals,
			goal{name + "throughput lost", mayLose[rate], false,
				centre(differences(m.windows, rate, throughput)), percent},
			goal{name + "processor time", mayLose[rate], false,
				centre(differences(m.windows, rate, effort)), percent},
			goal{name + "a thread stands still", mayStand, false, still, microsecond},
			goal{name + "rate reached", mustReach, true, reached, percent})
	}
	return goals
}

func each[T any](all []T, f func(*T) float64) []float64 {
	out := make([]float64, len(all))
	for i := range all {
		out[i] = f(&all[i])
	}
	return out
}

func verdicts(goals []goal) {
	open := false
	fmt.Printf("\n%-44s %12s %12s %22s  %s\n", "goal", "limit", "reached", "95 of 100 between", "verdict")
	for i := range goals {
		g := &goals[i]
		sign := "<="
		if g.least {
			sign = ">="
		}
		fmt.Printf("%-44s %2s %6.2f %-2s %9.2f %-2s %9.2f and %7.2f %-2s %s\n", g.what, sign, g.limit, g.unit,
			g.got.mid, g.unit, g.got.low, g.got.high, g.unit, g.verdict())
		open = open || g.verdict() == undecided
	}
	if open {
		fmt.Println(`More windows make an interval narrower: make bench-cost COST="-only server -each 10m"`)
	}
}

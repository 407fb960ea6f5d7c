package main

import (
	"fmt"
	"math"
)

// goal is a limit, and what was reached of it.
type goal struct {
	what  string
	limit float64 // at most; at least, if least
	least bool
	got   float64
	noise float64 // how far off got may be; NaN: it was not measured
	unit  string
}

// verdict judges a goal: it is met or missed if the noise leaves no doubt.
func (g *goal) verdict() string {
	over := g.got - g.limit
	if g.least {
		over = -over
	}
	switch {
	case math.IsNaN(g.got) || math.IsNaN(g.noise):
		return "too few samples"
	case over <= 0 && g.noise <= math.Abs(g.limit):
		return "met"
	case over > g.noise:
		return "MISSED"
	}
	return "not judged: the machine is not quiet"
}

// The goals of issue and README: throughput by rate, and what holds of any.
var mayLose = map[int]float64{100: 0.01, 1000: 0.05}

const (
	mayStand    = 5    // microseconds, the median
	mustReach   = 0.95 // of the rate asked, up to the kernel's tick
	mayUse      = 0.01 // of a core, for a thousand threads that sleep
	enough      = 100  // samples of which a median says something
	microsecond = "us"
	percent     = "%"
)

// best is the least of a series' figures: what disturbs a run makes it longer.
func (s series) best(f func(r *result) float64) float64 { return s.each(f).low }

func wall(r *result) float64      { return r.wall }
func processor(r *result) float64 { return r.cpu }

// twice is the best of the program alone, and by how much its two setups differ.
func twice(rows []series, f func(r *result) float64) (best, noise float64) {
	one, two := rows[0].best(f), rows[1].best(f)
	best = min(one, two)
	return best, math.Abs(one-two) / best
}

// judge holds a program's rows against the goals. The first two setups are the program
// alone.
func judge(p program, rows []series) (goals []goal) {
	if len(rows[0]) == 0 {
		return nil
	}
	alone, noise := twice(rows, wall)
	work, workNoise := twice(rows, processor)
	for i, s := range setups {
		if s.way != "probe" || len(rows[i]) == 0 {
			continue
		}
		r := rows[i]
		name := fmt.Sprintf("%s, %d Hz: ", p.name, s.rate)
		goals = append(goals, goal{name + "throughput lost", 100 * mayLose[s.rate], false, 100 * (1 - alone/r.best(wall)), 100 * noise, percent})
		goals = append(goals, goal{name + "processor time", 100 * mayLose[s.rate], false, 100 * (1 - work/r.best(processor)), 100 * workNoise, percent})
		samples := r.each(func(r *result) float64 { return r.samples })
		still, rate := r.each(func(r *result) float64 { return r.p50 }), r.each(func(r *result) float64 { return r.rate })
		g := []goal{
			{name + "a thread stands still", mayStand, false, still.mid, still.high - still.mid, microsecond},
			{name + "rate reached", 100 * mustReach, true, 100 * rate.mid, 100 * (rate.mid - rate.low), percent},
		}
		for k := range g {
			if samples.mid < enough {
				g[k].got = math.NaN()
			}
		}
		goals = append(goals, g...)
	}
	return goals
}

func verdicts(goals []goal) {
	fmt.Printf("\n%-44s %12s %12s %10s  %s\n", "goal", "limit", "reached", "noise", "verdict")
	for i := range goals {
		g := &goals[i]
		sign := "<="
		if g.least {
			sign = ">="
		}
		fmt.Printf("%-44s %2s %6.2f %-2s %9.2f %-2s %7.2f %-2s  %s\n", g.what, sign, g.limit, g.unit, g.got, g.unit, g.noise, g.unit, g.verdict())
	}
}

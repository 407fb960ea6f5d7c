package main

import (
	"fmt"
	"slices"
)

// series are the rounds of one setup.
type series []result

// spread is a median with the smallest and the largest value.
type spread struct{ low, mid, high float64 }

func of(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	slices.Sort(values)
	return spread{values[0], values[len(values)/2], values[len(values)-1]}
}

func (s spread) percent() string {
	return fmt.Sprintf("%6.2f (%.2f to %.2f)", 100*s.mid, 100*s.low, 100*s.high)
}

func (s series) each(f func(r *result) float64) spread { return of(each(s, f)) }

// against pairs each round with the same round without the tool.
func (s series) against(alone series, f func(with, without *result) float64) spread {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = f(&s[i], &alone[i])
	}
	return of(out)
}

func (i interval) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", i.mid, i.low, i.high) }

const columns = "%-18v %24s %24s %8s %10s %10s %14s %8s %8s\n"

// print prints the loss of a continuous program: medians with their intervals.
func (m *steady) print(p program, seconds float64) {
	fmt.Printf("\n%s, windows of %.0f s: middles (95 of 100 between)\n", p.name, seconds)
	fmt.Printf(columns, "", "throughput lost %", "more processor time %", "tool %", "tool us", "program us",
		"still p50/p99", "rate %", "KiB")
	fmt.Printf(columns, "", "", "", "of a core", "a sample", "a sample", "us", "", "")
	null := differences(m.windows, 0, throughput)
	fmt.Printf(columns, "nothing", centre(null),
		centre(differences(m.windows, 0, effort)), "", "", "", "", "", "")
	for _, rate := range rates {
		v := m.attachments[rate]
		at := func(f func(*attachment) float64) float64 { return median(each(v, f)) }
		with := m.at(rate)
		mine, theirs := make([]float64, len(with)), differences(m.windows, rate, surplus)
		for i := range with {
			mine[i] = 1e6 * with[i].tool / v[i].taken
			theirs[i] *= 1e6 / v[i].signals
		}
		fmt.Printf(columns, setup{"probe", rate}, centre(differences(m.windows, rate, throughput)),
			centre(differences(m.windows, rate, effort)),
			fmt.Sprintf("%.2f", 100*median(each(with, func(w *window) float64 { return w.tool }))),
			fmt.Sprintf("%.1f", median(mine)), fmt.Sprintf("%.1f", centre(theirs).mid),
			fmt.Sprintf("%.1f/%.1f", at(func(v *attachment) float64 { return v.p50 }),
				at(func(v *attachment) float64 { return v.p99 })),
			fmt.Sprintf("%.1f", 100*at(func(v *attachment) float64 { return v.rate })),
			fmt.Sprint(int(at(func(v *attachment) float64 { return float64(v.memory) }))))
		fmt.Printf("%18s once: %.2f s of processor time before, %.2f s after; with both the program lost %.2f s of its work; begun after %.2f s; %.0f samples a second, %.0f signals\n", "",
			at(func(v *attachment) float64 { return v.start }),
			at(func(v *attachment) float64 { return v.end }),
			at(func(v *attachment) float64 { return v.lost }),
			at(func(v *attachment) float64 { return v.ready }),
			at(func(v *attachment) float64 { return v.taken }),
			at(func(v *attachment) float64 { return v.signals }))
	}
	fmt.Printf("%18s %d windows at each rate, %d alone\n", "", len(m.attachments[rates[0]]), len(m.at(0)))
}

// at returns the windows at a rate.
func (m *steady) at(rate int) (all []window) {
	for _, w := range m.windows {
		if w.rate == rate {
			all = append(all, w)
		}
	}
	return all
}

// surplus returns the additional processor time of a program per second, in seconds.
func surplus(w, a, b *window) float64 { return w.own - w.units*(a.own+b.own)/(a.units+b.units) }

// printWhole prints the runs of whole processes.
func printWhole(p program, rows []series) {
	fmt.Printf("\n%s, whole processes, %d rounds: medians (least to greatest)\n", p.name, len(rows[0]))
	fmt.Printf("%-18s %26s %26s %22s %14s %8s %8s\n", "", "throughput lost %", "more processor time %",
		"tool, % of a core", "still p50/p99", "rate %", "KiB")
	for i, s := range setups {
		r := rows[i]
		if len(r) == 0 {
			continue
		}
		if s.way == "" {
			wall, cpu := r.each(func(r *result) float64 { return r.wall }),
				r.each(func(r *result) float64 { return r.cpu })
			fmt.Printf("%-18v %.2f s (%.2f to %.2f), %.2f s of processor time (%.2f to %.2f)\n", s, wall.mid,
				wall.low, wall.high, cpu.mid, cpu.low, cpu.high)
			continue
		}
		lost := r.against(rows[0], func(a, b *result) float64 { return 1 - b.wall/a.wall })
		more := r.against(rows[0], func(a, b *result) float64 { return a.cpu/b.cpu - 1 })
		p50, p99 := r.each(func(r *result) float64 { return r.p50 }),
			r.each(func(r *result) float64 { return r.p99 })
		fmt.Printf("%-18v %26s %26s %22s %6.1f/%7.1f %8.1f %8.0f\n", s, lost.percent(), more.percent(),
			r.each(func(r *result) float64 { return r.tool }).percent(), p50.mid, p99.mid,
			100*r.each(func(r *result) float64 { return r.rate }).mid,
			r.each(func(r *result) float64 { return float64(r.memory) }).mid)
	}
}

package main

import (
	"fmt"
	"slices"
)

// series are the rounds of one setup.
type series []result

// spread is a median with the least and the greatest.
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

func (s series) each(f func(r *result) float64) spread {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = f(&s[i])
	}
	return of(out)
}

// against pairs each round with the same round alone.
func (s series) against(alone series, f func(with, without *result) float64) spread {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = f(&s[i], &alone[i])
	}
	return of(out)
}

func print(p program, rows []series) {
	fmt.Printf("\n%s, %d rounds: medians (least to greatest)\n", p.name, len(rows[0]))
	fmt.Printf("%-18s %26s %26s %22s %14s %8s %8s\n", "", "throughput lost %", "more processor time %", "tool, % of a core", "still p50/p99", "rate %", "KiB")
	for i, s := range setups {
		r := rows[i]
		if len(r) == 0 {
			continue
		}
		if s.way == "" {
			wall, cpu := r.each(func(r *result) float64 { return r.wall }), r.each(func(r *result) float64 { return r.cpu })
			fmt.Printf("%-18v %.2f s (%.2f to %.2f), %.2f s of processor time (%.2f to %.2f)\n", s, wall.mid, wall.low, wall.high, cpu.mid, cpu.low, cpu.high)
			continue
		}
		lost := r.against(rows[0], func(a, b *result) float64 { return 1 - b.wall/a.wall })
		more := r.against(rows[0], func(a, b *result) float64 { return a.cpu/b.cpu - 1 })
		p50, p99 := r.each(func(r *result) float64 { return r.p50 }), r.each(func(r *result) float64 { return r.p99 })
		fmt.Printf("%-18v %26s %26s %22s %6.1f/%7.1f %8.1f %8.0f\n", s, lost.percent(), more.percent(),
			r.each(func(r *result) float64 { return r.tool }).percent(), p50.mid, p99.mid,
			100*r.each(func(r *result) float64 { return r.rate }).mid, r.each(func(r *result) float64 { return float64(r.memory) }).mid)
	}
}

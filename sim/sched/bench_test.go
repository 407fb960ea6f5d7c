package sched

import (
	"testing"
	"time"
)

func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(*World)
	}{
		{"steps", steps(4, 4, 4)},
		{"locks", threeLocks},
	} {
		b.Run(c.name, func(b *testing.B) {
			runs, start := 0, time.Now()
			for b.Loop() {
				runs += Explore(ExploreOptions{}, c.build).Interleavings
			}
			b.ReportMetric(float64(runs)/time.Since(start).Seconds(), "runs/s")
		})
	}
}

// threeLocks is three actors with four points each.
func threeLocks(w *World) {
	l := &Lock{Name: "l"}
	for _, n := range [...]string{"A", "B", "C"} {
		w.Go(n, func(a *Actor) {
			a.Yield("before")
			a.Lock(l)
			a.Unlock(l)
			a.Yield("after")
		})
	}
}

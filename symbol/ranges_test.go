package symbol

import (
	"math/rand/v2"
	"testing"
)

func TestRanges(t *testing.T) {
	var r Ranges
	for _, n := range []Range{
		{Start: 0x100, End: 0x200, Until: Always, Listed: true, Value: 1}, // from a list
		{Start: 0x100, End: 0x180, From: 50, Until: Always, Value: 2},     // loaded at 50
		{Start: 0x300, End: 0x400, From: 10, Until: 20, Value: 3},         // unloaded at 20
		{Start: 0x300, End: 0x340, From: 20, Until: Always, Value: 4},     // its memory reused
		{Start: 0x500, End: 0x600, Until: Always, Listed: true, Value: 5}, // the same range twice
		{Start: 0x500, End: 0x600, Until: Always, Listed: true, Value: 5},
	} {
		r.Add(n)
	}
	for _, n := range []Range{{Start: 5, End: 5, Until: 1}, {Start: 9, End: 3, Until: 1}, {Start: 1, End: 2, From: 3, Until: 3}} {
		if r.Add(n) {
			t.Errorf("%+v was taken", n)
		}
	}
	for _, c := range []struct {
		addr, time uint64
		want       int32
	}{
		{0x100, 0, 1}, {0x100, 50, 2}, {0x17f, 99, 2}, {0x180, 99, 1}, {0xff, 5, 0}, {0x200, 5, 0},
		{0x300, 9, 0}, {0x300, 10, 3}, {0x3ff, 19, 3}, {0x300, 20, 4}, {0x3ff, 20, 0}, {0x550, 1, 5},
	} {
		if got, _ := r.Find(c.addr, c.time); got != c.want {
			t.Errorf("%#x at %d: %d, want %d", c.addr, c.time, got, c.want)
		}
	}
	r.Close(0x100, 80)
	if r.sort(); len(r.all) != 5 {
		t.Errorf("%d ranges", len(r.all))
	}
	if got, _ := r.Find(0x100, 90); got != 1 {
		t.Errorf("after its end: %d", got)
	}
}

// TestRangesLike compares with a linear search.
func TestRangesLike(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var r Ranges
		var all []Range
		for i := range g.IntN(30) {
			start, from := g.Uint64N(60), g.Uint64N(20)
			n := Range{Start: start, End: start + g.Uint64N(20), From: from, Until: from + g.Uint64N(10), Listed: g.IntN(2) == 0, Value: int32(i + 1)}
			if r.Add(n) {
				all = append(all, n)
			}
		}
		for addr := range uint64(90) {
			time := g.Uint64N(30)
			want := map[int32]bool{}
			var best *Range
			for i := range all {
				if n := &all[i]; n.Start <= addr && addr < n.End && n.From <= time && time < n.Until && (best == nil || n.better(best)) {
					best = n
				}
			}
			for i := range all {
				if n := &all[i]; best != nil && n.Start <= addr && addr < n.End && n.From <= time && time < n.Until && !best.better(n) {
					want[n.Value] = true
				}
			}
			if got, ok := r.Find(addr, time); ok != (best != nil) || ok && !want[got] {
				t.Fatalf("%d at %d: %d, want one of %v of %+v", addr, time, got, want, all)
			}
		}
	}
}

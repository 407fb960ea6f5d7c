package waits

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The list contains the longest waits, in any order of arrival, in little more room than it needs.
func TestLongestWaits(t *testing.T) {
	const limit = 1000
	const all = 50 * limit
	r := rand.New(rand.NewPCG(1, 2))
	few, every := New(), New()
	few.List, every.List = limit, all
	few.Trace.Frequency, every.Trace.Frequency = 1e9, 1e9
	for i := range all {
		w := Wait{Kind: Handle, Thread: uint64(r.IntN(5)), Stack: StackID(r.IntN(300)), Start: uint64(i / 3), Nanos: int64(r.IntN(20000))}
		w.Stop = w.Start + 1
		few.take(&w)
		every.take(&w)
		if cap(few.Waits) > limit*3/2 {
			t.Fatalf("room for %d waits", cap(few.Waits))
		}
	}
	few.Finish()
	every.prune(all)
	slices.SortFunc(every.Waits, func(x, y Wait) int { return longest(&x, &y) })
	want := every.Waits[:limit]
	slices.SortFunc(want, func(x, y Wait) int { return order(&x, &y) })
	if len(few.Waits) != limit || few.Unlisted != all-limit {
		t.Fatalf("%d waits are listed, %d are not", len(few.Waits), few.Unlisted)
	}
	for i := range want {
		if got := few.Waits[i]; got.Nanos != want[i].Nanos || got.Start != want[i].Start || got.Thread != want[i].Thread {
			t.Fatalf("wait %d is %+v, want %+v", i, got, want[i])
		}
	}
	every.Finish()
	if !slices.Equal(few.Groups, every.Groups) {
		t.Error("the sums differ")
	}
	if n, _ := few.Total(); n != all {
		t.Errorf("%d waits are in the sums", n)
	}
}

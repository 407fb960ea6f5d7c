package waits

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
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
		w := Wait{Kind: Handle, Thread: uint64(r.IntN(5)), Stack: StackID(r.IntN(300)),
			Start: uint64(i / 3), Nanos: int64(r.IntN(20000))}
		w.Stop = w.Start + 1
		few.take(&w)
		every.take(&w)
		must.True(t, cap(few.Waits) <= limit*3/2, "room for %d waits", cap(few.Waits))
	}
	few.Finish()
	every.prune(all)
	slices.SortFunc(every.Waits, func(x, y Wait) int { return longest(&x, &y) })
	want := every.Waits[:limit]
	slices.SortFunc(want, func(x, y Wait) int { return order(&x, &y) })
	must.True(t, len(few.Waits) == limit && few.Unlisted == all-limit,
		"%d waits are listed, %d are not", len(few.Waits), few.Unlisted)
	for i := range want {
		got := few.Waits[i]
		must.True(t, got.Nanos == want[i].Nanos && got.Start == want[i].Start && got.Thread == want[i].Thread,
			"wait %d is %+v, want %+v", i, got, want[i])
	}
	every.Finish()
	expect.Slices(t, few.Groups, every.Groups, "the sums differ")
	n, _ := few.Total()
	expect.True(t, n == all, "%d waits are in the sums", n)
}

// If waits cannot be seen, their absence means nothing, and the reason is known.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		name           string
		major          uint16
		requested      bool
		locks, handles int64
		want           string
		blind          bool
	}{
		{"a trace of others without events", 9, false, 0, 0,
			"this trace has no wait events: recorded without the keyword WaitHandle", true},
		{"a trace of others with locks", 9, false, 5, 0,
			"waits for wait handles and tasks are not in this trace: recorded", false},
		{"a trace with waits", 9, false, 0, 5, "", false},
		{"a session", 9, true, 0, 0, "", false},
		{"a session, the version unknown", 0, true, 0, 0, "", false},
		{"a session of .NET 8", 8, true, 0, 0,
			"waits for wait handles and tasks are not in this trace: .NET 8 reports waits for locks only", true},
		{"a session of .NET 8 with locks", 8, true, 2, 0,
			"waits for wait handles and tasks are not in this trace: .NET 8 reports waits for locks only", false},
		{"a trace of .NET Core 3", 4, false, 0, 0,
			"this trace has no wait events: .NET Core 2 or 3 reports", true},
		{"a trace of .NET 8", 8, false, 0, 0, "this trace has no wait events: .NET 8 reports", true},
	} {
		a := New()
		a.Requested, a.Names.Runtime.Version[0] = c.requested, c.major
		for range c.locks {
			a.visible.count(clrevent.ContentionStop)
		}
		for range c.handles {
			a.visible.count(clrevent.WaitStart)
		}
		got := a.Unseen()
		expect.True(t, strings.HasPrefix(got, c.want) && (got == "") == (c.want == "") &&
			a.Blind() == c.blind, "%s: %q, blind %v", c.name, got, a.Blind())
	}
}

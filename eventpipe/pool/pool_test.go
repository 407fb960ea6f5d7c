package pool

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// TestQueue: items are paired in any order of reading, and no pair is invented.
func TestQueue(t *testing.T) {
	q := Queue[string]{Late: 100}
	_, ok := q.Queued(1, 10, "a")
	expect.True(t, !ok, "taken before it was queued")
	what, since, ok := q.Taken(1, 30)
	expect.True(t, ok && what == "a" && since == 10, "%q since %d, %v", what, since, ok)
	_, _, ok = q.Taken(1, 40)
	expect.True(t, !ok, "taken twice")
	taken, ok := q.Queued(1, 35, "b")
	expect.True(t, ok && taken == 40, "read out of order: %d, %v", taken, ok)
	q.Taken(2, 50)
	_, ok = q.Queued(2, 60, "c")
	expect.True(t, !ok, "queued after it was taken: an older item had this address")
	_, _, ok = q.Taken(2, 55)
	expect.True(t, !ok, "taken before it was queued")
	q.Taken(3, 1000)
	_, ok = q.Queued(3, 800, "d")
	expect.True(t, !ok, "too late to be the same item")
	for i := range uint64(3 * maxItems) {
		q.Queued(1000+i, i, "")
	}
	n := len(q.queued) + len(q.taken)
	expect.True(t, n <= maxItems, "%d items are remembered", n)
}

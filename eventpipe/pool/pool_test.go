package pool

import "testing"

// TestQueue: items are paired in any order of reading, and no pair is invented.
func TestQueue(t *testing.T) {
	q := Queue[string]{Late: 100}
	if _, ok := q.Queued(1, 10, "a"); ok {
		t.Error("taken before it was queued")
	}
	if what, since, ok := q.Taken(1, 30); !ok || what != "a" || since != 10 {
		t.Errorf("%q since %d, %v", what, since, ok)
	}
	if _, _, ok := q.Taken(1, 40); ok {
		t.Error("taken twice")
	}
	if taken, ok := q.Queued(1, 35, "b"); !ok || taken != 40 {
		t.Errorf("read out of order: %d, %v", taken, ok)
	}
	q.Taken(2, 50)
	if _, ok := q.Queued(2, 60, "c"); ok {
		t.Error("queued after it was taken: an older item had this address")
	}
	if _, _, ok := q.Taken(2, 55); ok {
		t.Error("taken before it was queued")
	}
	q.Taken(3, 1000)
	if _, ok := q.Queued(3, 800, "d"); ok {
		t.Error("too late to be the same item")
	}
	for i := range uint64(3 * maxItems) {
		q.Queued(1000+i, i, "")
	}
	if n := len(q.queued) + len(q.taken); n > maxItems {
		t.Errorf("%d items are remembered", n)
	}
}

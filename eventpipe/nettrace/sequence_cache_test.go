package nettrace

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Threads that share a slot in the cache have separate counters, and a removed or dropped thread starts
// again.
func TestSequencesShareAPlace(t *testing.T) {
	s := sequences{last: map[uint64]*uint32{}}
	const far = 1 << 20 // shares the slot of thread 0
	must.True(t, s.place(0) == s.place(far), "the threads have places of their own")
	for n := uint32(1); n < 5; n++ {
		for i, thread := range []uint64{0, far} {
			if lost, restart := s.see(thread, n*uint32(i+1)); lost != uint32(i) || restart {
				t.Fatalf("thread %d, event %d: %d lost, restart %v", thread, n, lost, restart)
			}
		}
	}
	s.remove(far)
	lost, restart := s.see(far, 1)
	expect.True(t, lost == 0 && !restart, "a removed thread: %d lost, restart %v", lost, restart)
	lost, _ = s.see(0, 5)
	expect.True(t, lost == 0, "%d lost of the other", lost)
	s.forget()
	lost, restart = s.see(0, 3)
	expect.True(t, lost == 2 && !restart, "a forgotten thread: %d lost, restart %v", lost, restart)
}

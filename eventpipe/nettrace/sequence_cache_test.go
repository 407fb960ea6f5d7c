package nettrace

import "testing"

// Threads that share a slot in the cache have separate counters, and a removed or dropped thread starts
// again.
func TestSequencesShareAPlace(t *testing.T) {
	s := sequences{last: map[uint64]*uint32{}}
	const far = 1 << 20 // shares the slot of thread 0
	if s.place(0) != s.place(far) {
		t.Fatal("the threads have places of their own")
	}
	for n := uint32(1); n < 5; n++ {
		for i, thread := range []uint64{0, far} {
			if lost, restart := s.see(thread, n*uint32(i+1)); lost != uint32(i) || restart {
				t.Fatalf("thread %d, event %d: %d lost, restart %v", thread, n, lost, restart)
			}
		}
	}
	s.remove(far)
	if lost, restart := s.see(far, 1); lost != 0 || restart {
		t.Errorf("a removed thread: %d lost, restart %v", lost, restart)
	}
	if lost, _ := s.see(0, 5); lost != 0 {
		t.Errorf("%d lost of the other", lost)
	}
	s.forget()
	if lost, restart := s.see(0, 3); lost != 2 || restart {
		t.Errorf("a forgotten thread: %d lost, restart %v", lost, restart)
	}
}

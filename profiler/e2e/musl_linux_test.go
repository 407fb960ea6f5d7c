package e2e

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// Attaching to a process that uses musl works, and stack shows it too.
func TestMusl(t *testing.T) {
	c := newChecker(t)
	c.attached(t, on(t, needs.Net9Musl, "Truth", "12"))
	c.few(t, 0, 0)
	s := stacks(t, attached(t, on(t, needs.Net9Musl, "Truth", "20")...).id)
	whole, managed := s.whole(t), 0
	for i := range s.Threads {
		if len(s.Threads[i].managed("")) > 0 {
			managed++
		}
	}
	if t.Logf("%d threads with managed frames", managed); !s.Runtime || managed < 20 || whole < len(s.Threads)-1 {
		t.Error("not whole")
	}
}

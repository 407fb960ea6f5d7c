package e2e

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The one probe in a process of musl, whose libc has no unwind data, on a CLR that
// publishes no descriptor and brings precompiled code along in its own file: stacks
// are what the threads say of themselves, from the start and attached.
func TestMusl(t *testing.T) {
	c := newChecker(t)
	c.want = 1000
	frames, doubtful := 0, 0
	for runs := 0; runs < 4 && c.total < c.want; runs++ {
		// Its other scenarios crash there without us.
		r := recordRaw(t, "--mode probe --rate 250", on(t, needs.Net9Musl, "Truth", "8")...)
		r.well(t, 0, "TRUTH DONE\n")
		c.recorded(t, r)
		for _, s := range r.samples {
			for i := range s.Frames {
				if frames++; s.Frames[i].Trust.Doubtful() {
					doubtful++
				}
			}
		}
	}
	if t.Logf("%d of %d frames are doubtful", doubtful, frames); doubtful*100 > frames {
		t.Error("more than 1 % of the frames are doubtful")
	}
	c.verdict(t)
	clear(c.table)
	c.attached(t, on(t, needs.Net9Musl, "Truth", "12"))
	c.few(t, 0, 0)
}

// stack shows such a process too.
func TestMuslStack(t *testing.T) {
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

package e2e

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// truths are recordings of the truth program and the requirements for their stacks. At least 99 of 100 are
// whole, and they agree with the threads' own records.
var truths = []struct {
	name, runtime, flags string
	program              string // its arguments
	least                int    // samples, of several recordings if one has fewer
	first, last          uint64 // scenarios that must occur
	says                 string // parts of the summary, separated by bars
	counter              string // counter that must not be 0; "": none
	doubtful             int    // percentage of frames that may be doubtful
}{
	{"suspended", needs.Net9, "--mode snapshot --rate 100", "20", 10000, 1, 21, "biased to safe points", "", 100},
	// The runtime publishes no description of its structures. Its tables prove the layout that is known for
	// its release.
	{".NET 8", needs.Net8, "--rate 100", "6", 0, 1, 7, ".NET 8.0.6|from outside|never suspended", "", 100},
	{".NET 8 suspended", needs.Net8, "--rate 100 --mode snapshot", "6", 0, 1, 7, ".NET 8.0.6|snapshot|biased to safe points", "", 100},
	// musl's libc has no unwind data; this CLR publishes no description, and its own file contains the
	// precompiled code. Its other scenarios crash without us too.
	{"musl", needs.Net9Musl, "--mode probe --rate 250", "8", 1000, 1, 21, "", "", 1},
	// The runtime has replaced return addresses by its own, to stop a thread when its method returns. They
	// are corrected by the data of the Thread that were copied with the stack.
	{"hijacked", needs.Net9, "--mode probe --rate 1000", "5 hijack", 100, 61, 63, "", "returns", 100},
	{"hijacked 10", needs.Net10, "--mode probe --rate 1000", "5 hijack", 100, 61, 63, "", "returns", 100},
}

func TestTruth(t *testing.T) {
	for _, row := range truths {
		t.Run(row.name, func(t *testing.T) {
			c := newChecker(t)
			c.want, c.first, c.last = row.least, row.first, row.last
			frames, doubtful, met := 0, 0, int64(0)
			missing := func() bool { return c.total < c.want || row.counter != "" && met == 0 }
			for runs := 0; runs == 0 || missing() && runs < maxRuns; runs++ {
				r := recordRaw(t, row.flags, on(t, row.runtime, "Truth", strings.Fields(row.program)...)...)
				r.well(t, 0, "TRUTH DONE\n")
				c.recorded(t, r)
				met += r.Counters[row.counter]
				for _, s := range r.samples {
					for i := range s.Frames {
						if frames++; s.Frames[i].Trust.Doubtful() {
							doubtful++
						}
					}
				}
				for part := range strings.SplitSeq(row.says, "|") {
					if !strings.Contains(r.stderr, part) {
						t.Errorf("the summary does not say %q:\n%s", part, r.stderr)
					}
				}
			}
			c.verdict(t)
			t.Logf("%d of %d frames are doubtful; %s: %d", doubtful, frames, row.counter, met)
			if doubtful*100 > frames*row.doubtful || row.counter != "" && met == 0 {
				t.Errorf("%d of %d frames are doubtful, or no %q was met", doubtful, frames, row.counter)
			}
		})
	}
}

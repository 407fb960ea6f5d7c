package e2e

import (
	"fmt"
	"testing"
)

// Each of 5,000 sleeping threads has a stack in the recording, or is counted as one without.
func TestManyThreads(t *testing.T) {
	const threads = 5000
	p := start(t, app(t, "Many", fmt.Sprint(threads))...)
	until(t, "the program has started its threads, or ended", func() bool { return p.out.String() != "" || p.gone() })
	if p.out.String() != "ready\n" {
		t.Skipf("SKIPPED-CHECK: the program cannot start %d threads here", threads)
	}
	r := record(t, "--duration 10s --pid "+p.id)
	if r.code != 0 {
		t.Fatalf("code %d\n%s", r.code, r.stderr)
	}
	s := r.Figures
	without := int(s.Counters["probe_unsampled"])
	t.Logf("%d samples, %d complete, of %d threads; %d threads without a sample, %d slots short", s.Samples, s.Complete, s.Threads, without, s.Counters["probe_no_slot"])
	if s.Threads+without < threads || s.Threads < threads/10 {
		t.Errorf("%d threads with a sample and %d without, of %d", s.Threads, without, threads)
	}
	r.whole(t, 1, 990)
}

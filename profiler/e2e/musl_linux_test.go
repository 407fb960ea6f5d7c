package e2e

import (
	"fmt"
	"testing"
	"time"
)

// muslApp is a command line of the truth program on a CLR for musl.
func muslApp(t *testing.T, args ...string) []string {
	t.Helper()
	libs := need(t, "out", "samples", "musl")
	return append([]string{"/usr/bin/env", "LD_LIBRARY_PATH=" + libs, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", need(t, "out", "samples", "TruthMusl")}, args...)
}

// The one probe in a process of musl, whose libc has no unwind data, on a CLR that
// publishes no descriptor and brings precompiled code along in its own file: stacks
// are what the threads say of themselves, from the start and attached.
func TestMusl(t *testing.T) {
	c, table := newChecker(t), map[uint64]*tally{}
	c.want = 1000
	total, frames, doubtful := 0, 0, 0
	for runs := 0; runs < 4 && total < c.want; runs++ {
		samples, rd, r := recordProbe(t, 3*time.Minute, "250", muslApp(t, "8")...) // its other scenarios crash there without us
		if r.code != 0 || r.stdout != "TRUTH DONE\n" {
			t.Fatalf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
		}
		c.methods = rd.Names()
		c.compare(t, table, samples)
		total += len(samples)
		for _, s := range samples {
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
	c.verdict(t, table)
	clear(table)
	samples, rd := recordAttached(t, 5*time.Second, muslApp(t, "12")...)
	c.methods = rd.Names()
	c.compare(t, table, samples)
	checked := 0
	for _, row := range table {
		checked += row.checked
	}
	if t.Logf("attached: %d samples, %d compared, %d wrong", len(samples), checked, c.bad); checked < 40 {
		t.Error("too few")
	}
}

// stack shows such a process too.
func TestMuslStack(t *testing.T) {
	cmd, _ := attached(t, muslApp(t, "20")...)
	s := stacks(t, fmt.Sprint(cmd.Process.Pid))
	whole, managed := 0, 0
	for _, th := range s.Threads {
		if th.Complete {
			whole++
		}
		for _, f := range th.Frames {
			if f.Kind == "managed" {
				managed++
				break
			}
		}
	}
	t.Logf("%d threads, %d whole, %d with managed frames, %v", len(s.Threads), whole, managed, s.Problems)
	if !s.Runtime || managed < 20 || whole < len(s.Threads)-1 {
		t.Error("not whole")
	}
}

package e2e

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

var (
	simpleTries = flag.Int("simple-tries", 0, "how often TestNeverNothing looks at each program, by stack and by record each")
	simpleFirst = flag.Duration("simple-first", 100*time.Millisecond, "by when after attaching record must have a sample")
)

// For the simplest programs each of many tries gives a complete stack, and a recording has its first sample
// soon.
func TestNeverNothing(t *testing.T) {
	if *simpleTries == 0 {
		t.Skip("SKIPPED-CHECK: many tries at the simplest programs are not wanted: make never-nothing")
	}
	for _, p := range simplePrograms {
		for _, kind := range p.kinds {
			t.Run(p.runtime+"/"+kind, func(t *testing.T) {
				program := start(t, append(needs.Simple(t, p.runtime, kind), "600000")...)
				mainThread(t, program, kind)
				tryAgain(t, program.id, kind)
			})
		}
	}
}

func tryAgain(t *testing.T, pid, kind string) {
	bad := 0
	for i := range *simpleTries {
		for what, try := range map[string]func(t *testing.T, pid, kind string) error{"stack": stackShows, "record": recordShows} {
			if err := try(t, pid, kind); err != nil {
				bad++
				t.Errorf("try %d, %s: %v", i+1, what, err)
			}
		}
	}
	t.Logf("%d tries of stack and of record, %d without a complete stack", *simpleTries, bad)
}

// stackShows asks for the stack of the main thread once.
func stackShows(t *testing.T, pid, kind string) error {
	s := stacks(t, pid)
	i := slices.IndexFunc(s.Threads, func(th shownThread) bool { return fmt.Sprint(th.TID) == pid })
	if i < 0 {
		return fmt.Errorf("there is no main thread, problems %v", s.Problems)
	}
	if th := s.Threads[i]; !th.Complete || !shows(th.names(), kind) {
		return fmt.Errorf("gap %q at %s, %v, problems %v", th.Gap, th.GapAt, th.names(), s.Problems)
	}
	return nil
}

// recordShows attaches for the longest time that the first sample may need. On a busy machine the main thread
// may not run in that time: then other threads have samples.
func recordShows(t *testing.T, pid, kind string) error {
	p := record(t, "--pid "+pid+" --duration "+simpleFirst.String())
	seen := int64(0)
	for i, s := range p.Stacks {
		if fmt.Sprint(p.Threads[s.Thread].ID) != pid || s.Count == 0 {
			continue
		}
		if names := p.stackNames(i); !s.Complete || !shows(names, kind) {
			return fmt.Errorf("gap %q, %v", s.Gap, names)
		}
		seen += s.Count
	}
	if p.code != 0 || p.Samples == 0 || p.Lost > 0 {
		return fmt.Errorf("exit code %d, %d samples, %d of the main thread, %d lost\n%s", p.code, p.Samples, seen, p.Lost, p.stderr)
	}
	return nil
}

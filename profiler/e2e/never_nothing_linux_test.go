package e2e

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var (
	simpleTries = flag.Int("simple-tries", 0, "how often TestNeverNothing looks at each program, by stack and by record each")
	simpleFirst = flag.Duration("simple-first", 100*time.Millisecond, "by when after attaching record must have a sample")
)

// The simplest programs have a complete stack at each of many tries, and a recording of
// them has its first sample soon.
func TestNeverNothing(t *testing.T) {
	if *simpleTries == 0 {
		t.Skip("SKIPPED-CHECK: many tries at the simplest programs are not wanted: make never-nothing")
	}
	need(t, "out", "bin", "libseedwalk_probe.so")
	for _, p := range simplePrograms {
		for _, kind := range p.kinds {
			t.Run(p.runtime+"/"+kind, func(t *testing.T) {
				pid := started(t, needs.Simple(t, p.runtime, kind))
				mainThread(t, pid, leafOf[kind])
				tryAgain(t, pid, simpleFrames(kind))
			})
		}
	}
}

// simpleFrames are frames that the main thread shows, leaf first. The stack of a fiber
// begins in the fiber.
func simpleFrames(kind string) []string {
	if kind == needs.Fiber || kind == needs.Loop {
		return []string{leafOf[kind]}
	}
	return []string{leafOf[kind], "Simple.Main"}
}

func tryAgain(t *testing.T, pid string, frames []string) {
	bad := 0
	for i := range *simpleTries {
		for what, try := range map[string]func(*testing.T, string, []string) error{"stack": stackShows, "record": recordShows} {
			if err := try(t, pid, frames); err != nil {
				bad++
				t.Errorf("try %d, %s: %v", i+1, what, err)
			}
		}
	}
	t.Logf("%d tries of stack and of record, %d without a complete stack", *simpleTries, bad)
}

// showsFrames says whether names has each frame, in this order.
func showsFrames(names, frames []string) bool {
	for _, name := range names {
		if len(frames) > 0 && strings.Contains(name, frames[0]) {
			frames = frames[1:]
		}
	}
	return len(frames) == 0
}

// stackShows asks for the stack of the main thread once.
func stackShows(t *testing.T, pid string, frames []string) error {
	s := stacks(t, pid)
	i := slices.IndexFunc(s.Threads, func(th shownThread) bool { return fmt.Sprint(th.TID) == pid })
	if i < 0 {
		return fmt.Errorf("there is no main thread, problems %v", s.Problems)
	}
	var names []string
	for _, f := range s.Threads[i].Frames {
		names = append(names, f.Name)
	}
	if th := s.Threads[i]; !th.Complete || !showsFrames(names, frames) {
		return fmt.Errorf("gap %q at %s, %v, problems %v", th.Gap, th.GapAt, names, s.Problems)
	}
	return nil
}

// recordShows attaches for as long as the first sample may take. On a busy machine the main
// thread may not run in that time: then other threads have samples.
func recordShows(t *testing.T, pid string, frames []string) error {
	out := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, limitOfCommand, nil, tool(t), "record", "--pid", pid, "--duration", simpleFirst.String(), "--output", out)
	if r.code != 0 {
		return fmt.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	p, seen := readJSONProfile(t, out), 0
	for _, s := range p.Stacks {
		if fmt.Sprint(p.Threads[s.Thread].ID) != pid || s.Count == 0 {
			continue
		}
		var names []string
		for _, f := range s.Frames {
			names = append(names, p.Frames[f].Name)
		}
		if !s.Complete || !showsFrames(names, frames) {
			return fmt.Errorf("gap %q, %v", s.Gap, names)
		}
		seen += s.Count
	}
	if p.Stats.Samples == 0 || p.Stats.Lost > 0 {
		return fmt.Errorf("%d samples, %d of the main thread, %d lost\n%s", p.Stats.Samples, seen, p.Stats.Lost, r.stderr)
	}
	return nil
}

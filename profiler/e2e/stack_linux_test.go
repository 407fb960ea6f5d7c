package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// shown is what stack --json shows.
type shown struct {
	Runtime  bool
	Threads  []shownThread
	Problems []string
}

type shownThread struct {
	TID      int
	Complete bool
	Gap      string
	GapAt    string `json:"gap_at"`
	Frames   []struct{ Kind, Name, Module, IP, SP string }
}

func stacks(t *testing.T, args ...string) (s shown) {
	t.Helper()
	seedwalkJSON(t, &s, "stack", args...)
	return s
}

// whole counts the complete threads.
func (s *shown) whole(t *testing.T) (n int) {
	for i := range s.Threads {
		if th := &s.Threads[i]; th.Complete {
			n++
		} else {
			t.Logf("thread %d: %s at %s after %v", th.TID, th.Gap, th.GapAt, th.Frames)
		}
	}
	t.Logf("%d threads, %d whole, problems %v", len(s.Threads), n, s.Problems)
	return n
}

// names are a thread's functions, leaf first.
func (th *shownThread) names() (out []string) {
	for _, f := range th.Frames {
		out = append(out, f.Name)
	}
	return out
}

// managed are a thread's methods whose names have a prefix.
func (th *shownThread) managed(prefix string) (out []string) {
	for _, f := range th.Frames {
		if f.Kind == "managed" && strings.HasPrefix(f.Name, prefix) {
			out = append(out, f.Name)
		}
	}
	return out
}

// entries are the first methods of Truth.cs's threads.
var entries = []string{"T.Run", "T.Main"}

// A .NET program that is stopped at any moment: whole stacks with names.
func TestStackOfStoppedProgram(t *testing.T) {
	p := attached(t, app(t, "Truth", "120")...)
	p.freezeWithoutSignals()
	l := stacks(t, p.id)
	whole, managed := l.whole(t), 0
	for i := range l.Threads {
		names := l.Threads[i].managed("")
		if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(entries, n) }) {
			managed++
		}
		if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "method 0x") || n == "" }); i >= 0 {
			t.Errorf("a method without a name in %v", names)
		}
	}
	if !l.Runtime || managed < 15 || len(l.Threads)-whole > 1 {
		t.Errorf("runtime %v, %d threads with methods of the program, %d of %d whole", l.Runtime, managed, whole, len(l.Threads))
	}
}

// Each kind of dump has, on each thread, the frames of the frozen process. createdump of 9.0.5 knows what
// stacks of its own runtime need. Of other runtimes it does not: dumps without all memory lack the runtime's
// data, and what is shown of a stack must be right, up to a gap with its reason.
func TestStackOfDumps(t *testing.T) {
	for _, runtime := range []string{needs.Net9, needs.Net10, needs.Net8, needs.Net9Musl} {
		t.Run(runtime, func(t *testing.T) {
			t.Setenv("MALLOC_ARENA_MAX", "1") // dumps have what glibc has reserved, 64 MB per thread
			p := attached(t, on(t, runtime, "Truth", "120")...)
			p.freezeWithoutSignals()
			l := stacks(t, p.id)
			for _, kind := range []string{"gcore", "full", "withheap", "normal", "triage"} {
				t.Run(kind, func(t *testing.T) {
					all := kind == "gcore" || kind == "full"
					sameInCore(t, l, coreOf(t, p.id, kind), all || runtime == needs.Net9, all)
				})
			}
		})
	}
}

// sameInCore compares the stacks of a core with those of the live process. Unless they are whole, a stack may
// end early. Unless all memory is there, a function may lack its name: few of them, if stacks are whole.
func sameInCore(t *testing.T, l shown, core string, whole, all bool) {
	t.Helper()
	c := stacks(t, "--core", core)
	if whole && len(c.Problems) != 0 || len(c.Threads) != len(l.Threads) {
		t.Errorf("the core: %d threads of %d, %v", len(c.Threads), len(l.Threads), c.Problems)
	}
	equal, frames, nameless := 0, 0, 0
	for _, th := range c.Threads {
		i := slices.IndexFunc(l.Threads, func(o shownThread) bool { return o.TID == th.TID })
		if i < 0 {
			t.Errorf("thread %d is not in the process", th.TID)
			continue
		}
		live := &l.Threads[i]
		if len(live.Frames) == len(th.Frames) && live.Gap == th.Gap {
			equal++
		} else if whole || th.Gap == "" || len(th.Frames) > len(live.Frames) {
			t.Errorf("thread %d: %d frames of %d and %q at %s in the core: %v", th.TID, len(th.Frames), len(live.Frames), th.Gap, th.GapAt, th.Frames[:min(2, len(th.Frames))])
			continue
		}
		for k, f := range th.Frames {
			o := live.Frames[k]
			if frames++; !all && f.Name == "" && o.Name != "" {
				nameless, f.Name = nameless+1, o.Name
			}
			if f.IP != o.IP || f.SP != o.SP || (f.Name != o.Name || f.Kind != o.Kind) && (all || k < len(th.Frames)-1) {
				t.Errorf("thread %d frame %d: %v live, %v in the core", th.TID, k, o, f)
			}
		}
	}
	t.Logf("%d threads, %d equal; %d frames, %d without a name", len(c.Threads), equal, frames, nameless)
	if equal == 0 || whole && nameless*100 > frames {
		t.Error("too few")
	}
}

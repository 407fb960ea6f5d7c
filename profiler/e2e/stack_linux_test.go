package e2e

import (
	"slices"
	"strings"
	"testing"
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

// A .NET program that is stopped at any moment: whole stacks with names, and the same from its core.
func TestStackOfStoppedProgram(t *testing.T) {
	t.Setenv("MALLOC_ARENA_MAX", "1") // gcore writes what glibc has reserved, 64 MB per thread
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
	for _, kind := range []string{"gcore", "full", "withheap", "triage"} {
		t.Run(kind, func(t *testing.T) { sameInCore(t, l, coreOf(t, p.id, kind), kind == "gcore") })
	}
}

// sameInCore compares the stacks of a core with those of the live process. A core of createdump does not
// name every library, nor which of its pages are code: stacks through such a library end there. It may also
// lack the memory that names a method.
func sameInCore(t *testing.T, l shown, core string, whole bool) {
	t.Helper()
	c := stacks(t, "--core", core)
	if len(c.Problems) != 0 || len(c.Threads) != len(l.Threads) {
		t.Errorf("the core: %d threads, %v", len(c.Threads), c.Problems)
	}
	cut, frames, nameless := 0, 0, 0
	for _, th := range c.Threads {
		i := slices.IndexFunc(l.Threads, func(o shownThread) bool { return o.TID == th.TID })
		if i >= 0 && !whole && !th.Complete && len(th.Frames) <= len(l.Threads[i].Frames) {
			cut++ // the frames that are there are compared
		} else if i < 0 || len(l.Threads[i].Frames) != len(th.Frames) || l.Threads[i].Gap != th.Gap {
			t.Errorf("thread %d: %d frames and %q at %s in the core: %v", th.TID, len(th.Frames), th.Gap, th.GapAt, th.Frames[:min(2, len(th.Frames))])
			continue
		}
		for k, f := range th.Frames {
			o := l.Threads[i].Frames[k]
			if frames++; !whole && f.Name == "" && o.Name != "" {
				nameless, f.Name = nameless+1, o.Name
			}
			if f.IP != o.IP || f.SP != o.SP || (f.Name != o.Name || f.Kind != o.Kind) && (whole || k < len(th.Frames)-1) {
				t.Errorf("thread %d frame %d: %v live, %v in the core", th.TID, k, o, f)
			}
		}
	}
	t.Logf("%d threads, %d cut off in the core; %d frames, %d without a name", len(c.Threads), cut, frames, nameless)
	if cut*2 > len(c.Threads) || nameless*20 > frames {
		t.Error("too many")
	}
}

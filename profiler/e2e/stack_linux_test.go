package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
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
	r := run(t, 2*time.Minute, nil, append([]string{tool(t), "stack", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
	}
	return s
}

// entries are where threads of Truth.cs begin.
var entries = []string{"T.Run", "T.Main"}

// A .NET program that is stopped in the middle of everything: whole stacks with
// names, and the same from its core.
func TestStackOfStoppedProgram(t *testing.T) {
	t.Setenv("MALLOC_ARENA_MAX", "1") // gcore writes what glibc has reserved, 64 MB a thread
	cmd, _ := attached(t, app(t, "Truth", "120")...)
	pid := cmd.Process.Pid
	syscall.Kill(pid, syscall.SIGSTOP)
	defer cmd.Process.Kill()
	l := stacks(t, fmt.Sprint(pid))
	managed, whole := 0, 0
	for _, th := range l.Threads {
		names := []string{}
		for _, f := range th.Frames {
			if f.Kind == "managed" {
				names = append(names, f.Name)
			}
		}
		if th.Complete {
			whole++
		} else {
			t.Logf("thread %d: %s at %s after %v", th.TID, th.Gap, th.GapAt, th.Frames)
		}
		if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(entries, n) }) {
			managed++
		}
		if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "method 0x") || n == "" }); i >= 0 {
			t.Errorf("thread %d: a method without a name in %v", th.TID, names)
		}
	}
	t.Logf("%d threads, %d whole, %d with the program's methods, problems %v", len(l.Threads), whole, managed, l.Problems)
	if !l.Runtime || managed < 15 || len(l.Threads)-whole > 1 {
		t.Errorf("runtime %v, %d threads with methods of the program, %d of %d whole", l.Runtime, managed, whole, len(l.Threads))
	}
	dir := tempdir.New(t)
	for _, c := range []struct{ name, core, skip string }{
		{"gcore", "core." + fmt.Sprint(pid), "no gcore (Debian package gdb)"}, {"full", "dump-full", "the runtime brings no createdump"},
		{"withheap", "dump-withheap", "the runtime brings no createdump"}, {"triage", "dump-triage", "the runtime brings no createdump"},
	} {
		t.Run(c.name, func(t *testing.T) {
			argv := []string{filepath.Join(runtime9(t), "createdump"), "--" + c.name, "-f", filepath.Join(dir, c.core), fmt.Sprint(pid)}
			if c.name == "gcore" {
				argv = []string{"gcore", "-o", filepath.Join(dir, "core"), fmt.Sprint(pid)}
			}
			path, err := exec.LookPath(argv[0])
			if err != nil {
				t.Skip("SKIPPED-CHECK: " + c.skip)
			}
			tempdir.Room(t, 2000)
			if out, err := exec.Command(path, argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			core := filepath.Join(dir, c.core)
			defer os.Remove(core) // half a gigabyte
			sameInCore(t, l, core, c.name == "gcore")
		})
	}
}

// sameInCore compares the stacks of a core with those that were live. A core of
// createdump does not name every library and does not say which of its pages are code:
// stacks through such a library end there.
func sameInCore(t *testing.T, l shown, core string, whole bool) {
	t.Helper()
	c := stacks(t, "--core", core)
	if len(c.Problems) != 0 || len(c.Threads) != len(l.Threads) {
		t.Errorf("the core: %d threads, %v", len(c.Threads), c.Problems)
	}
	cut := 0
	for _, th := range c.Threads {
		i := slices.IndexFunc(l.Threads, func(o shownThread) bool { return o.TID == th.TID })
		if i >= 0 && !whole && !th.Complete && len(th.Frames) <= len(l.Threads[i].Frames) {
			cut++ // what there is is compared
		} else if i < 0 || len(l.Threads[i].Frames) != len(th.Frames) || l.Threads[i].Gap != th.Gap {
			t.Errorf("thread %d: %d frames and %q at %s in the core: %v", th.TID, len(th.Frames), th.Gap, th.GapAt, th.Frames[:min(2, len(th.Frames))])
			continue
		}
		for k, f := range th.Frames {
			if o := l.Threads[i].Frames[k]; f.IP != o.IP || f.SP != o.SP || (f.Name != o.Name || f.Kind != o.Kind) && (whole || k < len(th.Frames)-1) {
				t.Errorf("thread %d frame %d: %v live, %v in the core", th.TID, k, o, f)
			}
		}
	}
	if t.Logf("%d threads, %d cut off in the core", len(c.Threads), cut); cut*2 > len(c.Threads) {
		t.Error("too many")
	}
}

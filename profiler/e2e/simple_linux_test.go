package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// simplePrograms are the programs whose stacks show next to nothing that was compiled at run
// time, on every runtime that is read from outside.
var simplePrograms = []struct {
	runtime string
	kinds   []string
}{
	{needs.Net8, []string{needs.Loop, needs.Sleep, needs.Native, needs.Fiber}},
	{needs.Net9, []string{needs.Loop, needs.Sleep, needs.Native, needs.Fiber}},
	{needs.Net9Musl, []string{needs.Loop, needs.Sleep, needs.Native}},
	{needs.Net10, []string{needs.Loop, needs.Sleep, needs.Native, needs.Fiber}},
}

// leafOf is a function that the main thread of a simple program is seen in.
var leafOf = map[string]string{needs.Loop: "Simple.Main", needs.Sleep: "Thread.Sleep", needs.Native: "compute", needs.Fiber: "compute"}

func TestSimplePrograms(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	for _, p := range simplePrograms {
		for _, kind := range p.kinds {
			t.Run(p.runtime+"/"+kind, func(t *testing.T) {
				argv := needs.Simple(t, p.runtime, kind)
				t.Run("stack", func(t *testing.T) { testSimpleStack(t, kind, argv) })
				t.Run("record", func(t *testing.T) { testSimpleRecord(t, kind, argv) })
				t.Run("attach", func(t *testing.T) { testSimpleAttach(t, kind, argv) })
			})
		}
	}
}

// threadView is a thread in the JSON of seedwalk stack.
type threadView struct {
	TID      int
	Complete bool
	Gap      string
	Frames   []struct{ Name string }
}

func (v *threadView) has(name string) bool {
	return slices.ContainsFunc(v.Frames, func(f struct{ Name string }) bool { return strings.Contains(f.Name, name) })
}

// mainThread asks for the stack of the main thread until it shows a function.
func mainThread(t *testing.T, pid, name string) (v threadView) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var out struct{ Threads []threadView }
		r := run(t, time.Minute, nil, tool(t), "stack", "--json", "--thread", pid, pid)
		if json.Unmarshal([]byte(r.stdout), &out) != nil || len(out.Threads) != 1 {
			continue // env has not become the program yet
		}
		if v = out.Threads[0]; v.has(name) {
			return v
		}
	}
	t.Fatalf("the main thread never came to %s: %+v", name, v)
	return v
}

func testSimpleStack(t *testing.T, kind string, argv []string) {
	v := mainThread(t, started(t, argv), leafOf[kind])
	if !v.Complete || kind != needs.Fiber && !v.has("Simple.Main") {
		t.Errorf("the main thread is not whole: %+v", v)
	}
}

func testSimpleRecord(t *testing.T, kind string, argv []string) {
	testSimpleProfile(t, kind, append(append([]string{"--"}, argv...), "1500"))
}

func testSimpleAttach(t *testing.T, kind string, argv []string) {
	pid := started(t, argv)
	mainThread(t, pid, leafOf[kind])
	testSimpleProfile(t, kind, []string{"--duration", "1s", "--pid", pid})
}

// testSimpleProfile records: each stack is whole, and one is that of Main.
func testSimpleProfile(t *testing.T, kind string, args []string) {
	out := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, 2*time.Minute, nil, append([]string{tool(t), "record", "--output", out}, args...)...)
	text, err := os.ReadFile(out)
	var profile struct {
		Frames []struct{ Name string }
		Stacks []struct {
			Frames   []int
			Complete bool
			Gap      string
		}
	}
	if r.code != 0 || err != nil || json.Unmarshal(text, &profile) != nil {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
	}
	seen := false
	for i := range profile.Stacks {
		v := threadView{Complete: profile.Stacks[i].Complete, Gap: profile.Stacks[i].Gap}
		for _, f := range profile.Stacks[i].Frames {
			v.Frames = append(v.Frames, profile.Frames[f])
		}
		if !v.Complete {
			t.Errorf("a stack is not whole: %+v", v)
		}
		seen = seen || v.has(leafOf[kind]) && (kind == needs.Fiber || v.has("Simple.Main"))
	}
	if !seen {
		t.Errorf("no stack of Main among %d\n%s", len(profile.Stacks), r.stderr)
	}
}

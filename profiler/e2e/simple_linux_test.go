package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// simplePrograms are programs whose stacks contain almost no code compiled at run time, on every runtime that
// is read from outside.
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
var leafOf = map[string]string{needs.Loop: "Simple.Main", needs.Sleep: "Thread.Sleep",
	needs.Native: "compute", needs.Fiber: "compute"}

func TestSimplePrograms(t *testing.T) {
	for _, p := range simplePrograms {
		for _, kind := range p.kinds {
			t.Run(p.runtime+"/"+kind, func(t *testing.T) {
				t.Parallel()
				argv := needs.Simple(t, p.runtime, kind)
				t.Run("stack", func(t *testing.T) { testSimpleStack(t, kind, argv) })
				t.Run("record", func(t *testing.T) {
					testSimpleProfile(t, kind,
						record(t, "", append(argv, "1500")...))
				})
				t.Run("attach", func(t *testing.T) { testSimpleAttach(t, kind, argv) })
			})
		}
	}
}

// shows reports whether a list of functions, leaf first, is that of the main thread in a program of this
// kind.
func shows(names []string, kind string) bool {
	frames := []string{leafOf[kind], "Simple.Main"}
	if kind == needs.Fiber || kind == needs.Loop { // the stack of a fiber begins in the fiber
		frames = frames[:1]
	}
	for _, name := range names {
		if len(frames) > 0 && strings.Contains(name, frames[0]) {
			frames = frames[1:]
		}
	}
	return len(frames) == 0
}

// mainThread repeats stack until the main thread shows what the program does.
func mainThread(t *testing.T, p *process, kind string) (th shownThread) {
	t.Helper()
	until(t, "the main thread comes to "+leafOf[kind], func() bool {
		var s shown
		r := seedwalk(t, "stack", "--json", "--thread", p.id, p.id)
		if json.Unmarshal([]byte(r.stdout), &s) != nil || len(s.Threads) != 1 {
			return false // env has not become the program yet
		}
		th = s.Threads[0]
		return shows(th.names(), kind)
	})
	return th
}

func testSimpleStack(t *testing.T, kind string, argv []string) {
	th := mainThread(t, start(t, append(argv, "600000")...), kind)
	expect.True(t, th.Complete, "the main thread is not whole: %+v", th)
}

func testSimpleAttach(t *testing.T, kind string, argv []string) {
	p := start(t, append(argv, "600000")...)
	mainThread(t, p, kind)
	testSimpleProfile(t, kind, record(t, "--duration 1s --pid "+p.id))
}

// testSimpleProfile checks a recording: each stack is whole, and one is that of Main.
func testSimpleProfile(t *testing.T, kind string, r *recording) {
	t.Helper()
	seen := false
	for i := range r.Stacks {
		names := r.stackNames(i)
		expect.True(t, r.Stacks[i].Complete, "a stack is not whole: %s, %v", r.Stacks[i].Gap, names)
		seen = seen || shows(names, kind)
	}
	expect.True(t, seen && r.code == 0,
		"exit code %d, or no stack of Main among %d\n%s", r.code, len(r.Stacks), r.stderr)
}

// Attaching to a process that uses musl works, and stack shows it too.
func TestMusl(t *testing.T) {
	c := newChecker(t)
	c.attached(t, on(t, needs.Net9Musl, "Truth", "12"))
	c.few(t, 0, 0)
	s := stacks(t, attached(t, on(t, needs.Net9Musl, "Truth", "20")...).id)
	whole, managed := s.whole(t), 0
	for i := range s.Threads {
		if len(s.Threads[i].managed("")) > 0 {
			managed++
		}
	}
	expect.Figures(t, s.Runtime && managed >= 20 && whole >= len(s.Threads)-1,
		"%d threads with managed frames", managed)
}

// Each of 5,000 sleeping threads has a stack in the recording, or is counted as one without.
func TestManyThreads(t *testing.T) {
	const threads = 5000
	p := start(t, app(t, "Many", fmt.Sprint(threads))...)
	until(t, "the program has started its threads, or ended",
		func() bool { return p.out.String() != "" || p.gone() })
	if p.out.String() != "ready\n" {
		t.Skipf("SKIPPED-CHECK: the program cannot start %d threads here", threads)
	}
	r := record(t, "--duration 10s --pid "+p.id)
	r.ok(t)
	s := r.Figures
	without := int(s.Counters["probe_unsampled"])
	expect.Figures(t, s.Threads+without >= threads && s.Threads >= threads/10,
		"%d samples, %d complete, of %d threads; %d threads without a sample, %d slots short", s.Samples,
		s.Complete, s.Threads, without, s.Counters["probe_no_slot"])
	r.whole(t, 1, 990)
}

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
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
				t.Run("stack", func(t *testing.T) {
					th := mainThread(t, start(t, append(argv, "600000")...), kind)
					expect.True(t, th.Complete, "the main thread is not whole: %+v", th)
				})
				t.Run("record", func(t *testing.T) {
					simpleProfile(t, kind, record(t, "", append(argv, "1500")...))
				})
				t.Run("attach", func(t *testing.T) {
					p := start(t, append(argv, "600000")...)
					mainThread(t, p, kind)
					simpleProfile(t, kind, record(t, "--duration 1s --pid "+p.id))
				})
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

// simpleProfile checks a recording: each stack is whole, and one is that of Main. The last sample may
// have no managed frames: the process ended, and the runtime's tables could not be read any more.
func simpleProfile(t *testing.T, kind string, r *recording) {
	t.Helper()
	seen, last := false, 1
	for i := range r.Stacks {
		names, s := r.stackNames(i), &r.Stacks[i]
		if s.Gap == merge.GapUnproven.String() && int(s.Count) <= last {
			last -= int(s.Count)
			continue
		}
		expect.True(t, s.Complete, "a stack is not whole: %s, %v", s.Gap, names)
		seen = seen || shows(names, kind)
	}
	expect.True(t, seen && r.code == 0,
		"exit code %d, or no stack of Main among %d\n%s", r.code, len(r.Stacks), r.stderr)
}

// Attaching to a process that uses musl works, and stack shows it too.
func TestMusl(t *testing.T) {
	c := newChecker(t)
	c.attached(t, on(t, needs.Net9Musl, "Truth", endless))
	c.few(t, 0, 0)
	s := stacks(t, attached(t, on(t, needs.Net9Musl, "Truth", endless)...).id)
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
	r := record(t, "--duration 6s --pid "+p.id)
	r.ok(t)
	s := r.Figures
	without := int(s.Counters["probe_unsampled"])
	expect.Figures(t, s.Threads+without >= threads && s.Threads >= threads/10,
		"%d samples, %d complete, of %d threads; %d threads without a sample, %d slots short", s.Samples,
		s.Complete, s.Threads, without, s.Counters["probe_no_slot"])
	r.whole(t, 1, 990)
}

// Short-lived threads: if each lives 5 ms, most of their time is in the profile, and the rest is stated with
// its cause. The sum is the clock of the process. Each method has its share, even if a thread ends before it
// has its own event.
func TestShortThreads(t *testing.T) {
	for i, c := range []struct {
		name  string
		least float64 // of the methods' time, in the profile
	}{
		{"kids-50", shortLeast}, {"kids-3", 0},
	} {
		for _, runtime := range both {
			if permanent() && !turn(i, runtime) {
				continue
			}
			t.Run(c.name+"/"+runtime, func(t *testing.T) {
				s := setting{scenario{c.name, true, true, 1}, runtime, "1000", "idle"}
				m := s.record(t, "auto", false)
				row := biasRow{setting: s, runs: []measurement{m}}
				for row.samples() < shortSamples && len(row.runs) < mostRuns {
					row.runs = append(row.runs, s.record(t, "auto", false))
				}
				shown := row.judgeTotal(t)
				truth, seen := 0.0, 0.0
				for _, name := range m.truth.methods() {
					truth, seen = truth+m.truth.method[name], seen+m.seen.method[name]
				}
				expect.Figures(t, seen >= c.least*truth || m.seen.clock != clockPerf,
					"clock %s: %.1f %% of the short threads' time is in their methods, %.1f %% of the process's in the profile, not sampled: %v",
					m.seen.clock, 100*seen/truth, 100*shown, m.seen.notSampled)
				v := judgeShare(row.runs, "KidsA", biasLimit, biasErrorsOnce)
				expect.Figures(t, v.ok() || m.seen.clock != clockPerf,
					"KidsA has %.1f %% of the time, the profile says %.1f %% by %.0f samples, limit %.1f",
					100*v.truth, 100*v.mean, v.samples, 100*v.limit)
			})
		}
	}
}

// shortLeast is the part of the time of threads that use 5 ms which must be located.
const shortLeast = 0.8

// shortSamples are enough to distinguish a method's share from 0.
const shortSamples = 400

// A program that ends at once has samples, and none is discarded: at least one per 10 ms of CPU time.
func TestShortProgram(t *testing.T) {
	for _, runtime := range both {
		t.Run(runtime, func(t *testing.T) {
			p := record(t, "", on(t, runtime, "Exact", "hello", "0")...)
			truth, err := parseExact(p.stdout)
			must.True(t, err == nil && p.code == 0, "%d, %v\n%s", p.code, err, p.stderr)
			seen, samples := p.times(nil), 0.0
			for _, s := range p.Stacks {
				samples += s.CPUCount
			}
			expect.Figures(t, samples >= math.Floor(truth.process/10e6) && p.Lost == 0,
				"%.0f ms of CPU time: %.0f CPU samples, %d of all kinds, %d lost, %.0f ms accounted for, %.0f ms in the profile, not sampled %v, notes %v",
				truth.process/1e6, samples, p.Samples, p.Lost, seen.stated/1e6, seen.shown/1e6,
				seen.notSampled, p.Notes)
			if seen.stated < 0.99*truth.process-1e6 || seen.stated > truth.process*(1+*biasTotal)+notWatched {
				t.Errorf("the process used %.0f ms, the profile accounts for %.0f ms",
					truth.process/1e6, seen.stated/1e6)
			}
		})
	}
}

// The outputs of a recording are written even if no thread of the process receives a signal, for example for
// want of a processor. The handlers are removed from the process when its threads run.
func TestOutputsDoNotWaitForThreads(t *testing.T) {
	target := attached(t, app(t, "Truth", "120")...)
	before := settled(t, target.pid)
	file := filepath.Join(tempdir.New(t), "out.folded")
	p := start(t, tool(t), "record", "--pid", target.id, "--duration", "2s", "--quiet", "--output", file)
	until(t, "the probe is there", func() bool { return systemStateOf(t, target.pid).ours > 0 })
	time.Sleep(time.Second) // any moment works, before or after the first sample
	target.freeze()
	until(t, "the output is written", func() bool { _, err := os.Stat(file); return err == nil })
	time.Sleep(time.Second)
	must.True(t, !p.gone(),
		"the tool wrote its output last, and has left what it put into the process: %v", p.err)
	target.Process.Signal(syscall.SIGCONT)
	p.wait()
	expect.True(t, p.err == nil, "%v", p.err)
	now := systemStateOf(t, target.pid)
	expect.True(t, now.caught == before.caught && now.timers == 0, "afterwards %+v, before %+v", now, before)
}

var (
	simpleTries = flag.Int("simple-tries", 0,
		"how often TestNeverNothing looks at each program, by stack and by record each")
	simpleFirst = flag.Duration("simple-first", 100*time.Millisecond,
		"by when after attaching record must have a sample")
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
		for what, try := range map[string]func(t *testing.T, pid, kind string) error{"stack": stackShows,
			"record": recordShows} {
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
		return fmt.Errorf("exit code %d, %d samples, %d of the main thread, %d lost\n%s", p.code,
			p.Samples, seen, p.Lost, p.stderr)
	}
	return nil
}

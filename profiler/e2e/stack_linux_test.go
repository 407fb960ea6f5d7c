package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// shown is what stack --json shows.
type shown struct {
	Runtime   bool
	Threads   []shownThread
	Deadlocks [][]uint64
	Problems  []string
}

type shownThread struct {
	TID      uint64
	Name     string
	Complete bool
	Gap      string
	GapAt    string `json:"gap_at"`
	Lacks    string
	Copy     *struct{ Tag uint64 }
	Frames   []shownFrame
	WaitsFor *shownWait `json:"waits_for"`
	Callers  [][]string `json:"async_callers"`
	Awaits   [][]string
}

// shownWait is a wait for a lock.
type shownWait struct {
	Kind, At string
	Owner    uint64
}

type shownFrame struct {
	Kind, Name, Module, IP, SP string
	Doubtful                   bool
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
		i := slices.IndexFunc(names,
			func(n string) bool { return strings.HasPrefix(n, "method 0x") || n == "" })
		expect.True(t, i < 0, "a method without a name in %v", names)
	}
	expect.True(t, l.Runtime && managed >= 15 && len(l.Threads)-whole <= 1,
		"runtime %v, %d threads with methods of the program, %d of %d whole", l.Runtime, managed, whole,
		len(l.Threads))
}

var allDumps = flag.Bool("all-dumps", false, "TestStackOfDumps tries every kind of dump of every runtime")

// Dumps have, on each thread, the frames of the frozen process. createdump of 9.0.5 knows nearly all that
// stacks of its own runtime need. Of other runtimes it does not: dumps without all memory lack the runtime's
// data or pages of code. What is shown of a stack must be right, up to a gap that names the missing memory.
func TestStackOfDumps(t *testing.T) {
	for _, runtime := range []string{needs.Net9, needs.Net10, needs.Net8, needs.Net9Musl} {
		t.Run(runtime, func(t *testing.T) {
			t.Setenv("MALLOC_ARENA_MAX", "1") // dumps have what glibc has reserved, 64 MB per thread
			p := attached(t, on(t, runtime, "Truth", "120")...)
			p.freezeWithoutSignals()
			l := stacks(t, p.id)
			kinds := []string{"full", "withheap"}
			if *allDumps || runtime == needs.Net9 {
				kinds = append(kinds, "gcore", "normal", "triage")
			}
			for _, kind := range kinds {
				t.Run(kind, func(t *testing.T) {
					all := kind == "gcore" || kind == "full"
					equal, doubtful := sameInCore(t, l, coreOf(t, p.id, kind), all ||
						runtime == needs.Net9 && kind == "withheap", all)
					if kind == "withheap" && equal < len(l.Threads) && doubtful == 0 {
						t.Error("no frame was found by a frame pointer, as methods without unwind data have")
					}
					least := len(l.Threads) / 2
					if runtime == needs.Net9Musl {
						least = len(l.Threads) / 5 // 7 to 31 of 31 were seen
					}
					expect.True(t, kind != "withheap" || equal >= least, "%d stacks are whole", equal)
				})
			}
		})
	}
}

// sameInCore compares the stacks of a core with those of the live process. If whole is false, a stack may
// end early. If all is false, a function may have no name; if whole is true, that may be at most one frame
// in 100. sameInCore returns how many stacks are as long as the live ones, and how many frames are doubtful
// only in the core.
func sameInCore(t *testing.T, l shown, core string, whole, all bool) (equal, doubtful int) {
	t.Helper()
	c := stacks(t, "--core", core)
	if whole && len(c.Problems) != 0 || len(c.Threads) != len(l.Threads) {
		t.Errorf("the core: %d threads of %d, %v", len(c.Threads), len(l.Threads), c.Problems)
	}
	frames, nameless := 0, 0
	lacks := lacking(t, core, &c)
	for _, th := range c.Threads {
		i := slices.IndexFunc(l.Threads, func(o shownThread) bool { return o.TID == th.TID })
		if i < 0 {
			t.Errorf("thread %d is not in the process", th.TID)
			continue
		}
		live := &l.Threads[i]
		if len(live.Frames) == len(th.Frames) && live.Gap == th.Gap {
			equal++
		} else if whole || !lacks(&th) || len(th.Frames) > len(live.Frames) {
			t.Errorf("thread %d: %d frames of %d and %q at %s in the core: %v; live: %v", th.TID,
				len(th.Frames), len(live.Frames), th.Gap, th.GapAt, th.Frames[:min(2, len(th.Frames))],
				live.Frames[:min(3, len(live.Frames))])
			continue
		}
		for k, f := range th.Frames {
			o := live.Frames[k]
			if frames++; f.Doubtful && !o.Doubtful {
				doubtful++
			}
			switch {
			case all, f.Name == o.Name:
			case f.Name == "":
				nameless, f.Name = nameless+1, o.Name
				if f.Kind == "managed" && o.Kind == "stub" {
					f.Kind = o.Kind // without its description, a stub looks like a method
				}
			case unbound(f.Name) == unbound(o.Name): // the core lacks what names type arguments
				f.Name = o.Name
			}
			if f.IP != o.IP || f.SP != o.SP ||
				(f.Name != o.Name || f.Kind != o.Kind) && (all || k < len(th.Frames)-1) {
				t.Errorf("thread %d frame %d: %v live, %v in the core", th.TID, k, o, f)
			}
		}
	}
	expect.Figures(t, equal != 0 && (!whole || nameless*100 <= frames),
		"%d threads, %d equal; %d frames, %d without a name, %d doubtful", len(c.Threads), equal, frames,
		nameless, doubtful)
	return equal, doubtful
}

// unbound returns a method's name without the type arguments after its own name and that of its type.
func unbound(name string) string {
	head, parameters, _ := strings.Cut(name, "(")
	return typeArguments.ReplaceAllString(head, "") + "(" + parameters
}

var typeArguments = regexp.MustCompile(`<.*>`)

// lacking returns a check of one stack: does it end early because the core lacks the memory that it names?
// The core's only problem must then say which kind of dump has all memory.
func lacking(t *testing.T, core string, c *shown) func(*shownThread) bool {
	f := must.Get(dump.Open(core))(t)
	absent := func(text string) bool {
		var at uint64
		_, err := fmt.Sscan(text, &at)
		return err == nil && !f.ReadAt(make([]byte, 1), at)
	}
	unreadable := regexp.MustCompile(` at (0x[0-9a-f]+): unreadable`)
	return func(th *shownThread) bool {
		if len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "DOTNET_DbgMiniDumpType=4") {
			return false
		}
		at := unreadable.FindStringSubmatch(c.Problems[0])
		return th.Gap == "not-in-core" && absent(th.Lacks) ||
			th.Gap == "runtime-not-readable" && at != nil && absent(at[1])
	}
}

// ended are the program's methods below an uncaught exception, leaf first.
var ended = []string{"Ending.Inner", "Ending.Inner", "Ending.Inner", "Ending.Inner", "Ending.Outer (lambda)",
	"Ending.Middle", "Ending.Outer"}

// ending are a thread's methods of the program's own.
func ending(th *shownThread) []string { return th.managed("Ending.") }

// A program that an exception is ending, in its own last handler: the handler is above the methods that have
// thrown.
func TestStackOfCrashing(t *testing.T) {
	p, _ := waiting(t, "handling", app(t, "Ending", "handled")...)
	l := stacks(t, p.id)
	want := append([]string{"Ending.Handler"}, ended...)
	i := slices.IndexFunc(l.Threads, func(th shownThread) bool { return slices.Equal(ending(&th), want) })
	expect.True(t, i >= 0 && l.Threads[i].Complete && len(l.Problems) == 0,
		"no whole thread with %q: %+v, %v", want, l.Threads, l.Problems)
}

// A program that only collects, with all of its threads stopped most of the time: whole stacks, and that of
// the collecting thread reaches into the collector.
func TestStackOfCollecting(t *testing.T) {
	p, _ := waiting(t, "collecting", app(t, "Ending", "collecting")...)
	threads, whole, inside, workers := 0, 0, 0, 0
	const looks = 12
	for range looks {
		l := stacks(t, p.id)
		threads, whole = threads+len(l.Threads), whole+l.whole(t)
		for i := range l.Threads {
			th := &l.Threads[i]
			switch m := ending(th); {
			case slices.Equal(m, []string{"Ending.Work"}):
				workers++
			case slices.Equal(m, []string{"Ending.Collecting", "Ending.Main"}):
				if k := slices.IndexFunc(th.Frames, func(f shownFrame) bool {
					return strings.HasPrefix(f.Name, "System.GC.Collect(")
				}); k > 4 {
					inside++ // with frames of the collector above it
				}
			case len(m) > 0:
				t.Errorf("thread %d: %q", th.TID, m)
			}
		}
	}
	expect.Figures(t, inside >= looks/2 && workers >= 3*looks-6 && threads-whole <= 1,
		"%d looks: %d threads, %d whole, %d of the collector at work, %d of workers", looks, threads, whole,
		inside, workers)
}

// crashed runs the program Ending, which crashes in the way that mode names, and returns the core that the
// runtime itself has written of it. kind is the value of DOTNET_DbgMiniDumpType.
func crashed(t *testing.T, mode, kind string) (core string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(runtime9(t), "createdump")); err != nil {
		t.Skip("SKIPPED-CHECK: the runtime brings no createdump")
	}
	tempdir.Room(t, 2000)
	core = filepath.Join(tempdir.New(t), "core")
	r := run(t, 2*time.Minute, []string{"DOTNET_DbgEnableMiniDump=1", "DOTNET_DbgMiniDumpType=" + kind,
		"DOTNET_DbgMiniDumpName=" + core}, app(t, "Ending", mode)...)
	if _, err := os.Stat(core); err != nil {
		t.Skipf("SKIPPED-CHECK: createdump has written no core: %s", r.stdout+r.stderr)
	}
	return core
}

// The core of a program that an exception has ended. The default kind lacks the data about methods: the tool
// prints that and what to do, and native frames are there.
func TestStackOfMinidump(t *testing.T) {
	for name, kind := range map[string]string{"full": "4", "heap": "2"} {
		t.Run(name, func(t *testing.T) {
			l := stacks(t, "--core", crashed(t, "unhandled", kind))
			whole := slices.ContainsFunc(l.Threads,
				func(th shownThread) bool { return th.Complete && slices.Equal(ending(&th), ended) })
			t.Logf("%d threads, problems %v", len(l.Threads), l.Problems)
			switch {
			case name == "full" && (!whole || len(l.Problems) > 0 || !l.Runtime):
				t.Errorf("no whole thread with %q: %+v", ended, l.Threads)
			case name == "heap" && !whole &&
				(len(l.Problems) != 1 || !strings.Contains(l.Problems[0], "DOTNET_DbgMiniDumpType=4") ||
					len(l.Threads) < 5):
				t.Errorf("%v, %+v", l.Problems, l.Threads)
			}
		})
	}
}

// A core has the message of Environment.FailFast. Other ends of a program have none.
func TestStackOfFailFast(t *testing.T) {
	for mode, want := range map[string]string{"failfast": "the state is bad: failfast", "unhandled": ""} {
		var got struct {
			Crash struct {
				Signal   string
				FailFast string `json:"fail_fast"`
			}
		}
		seedwalkJSON(t, &got, "stack", "--core", crashed(t, mode, "2"))
		expect.Equal(t, got.Crash.Signal, "SIGABRT", "%s", mode)
		expect.Equal(t, got.Crash.FailFast, want, "%s", mode)
	}
}

// waitFor is a wait in the deadlock of Waits.cs: the kind of lock, and its owner.
type waitFor struct{ kind, owner string }

// Every wait for a lock in a deadlocked program has its owner, and threads that wait for each other are
// marked. Threads that wait for anything else have neither. The same from a core.
func TestStackLocks(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		p, _ := waiting(t, "deadlocked", on(t, runtime, "Waits", "deadlock")...)
		judgeLocks(t, stacks(t, p.id), runtime == needs.Net9) // 10 has no System.Threading.Lock here
		if runtime != needs.Net9 {                            // one core is enough
			return
		}
		p.freeze()
		judgeCore(t, stacks(t, "--core", coreOf(t, p.id, "gcore")), stacks(t, p.id))
	})
}

// The owners of monitors in a deadlocked program of .NET 8, and the verdict of hang.
func TestNet8Locks(t *testing.T) {
	of, _ := waiting(t, "deadlocked", on(t, needs.Net8, "Truth", "deadlock")...)
	h := hungAs(t, of.id, "deadlock", "") // its threads have reached their locks by then
	expect.Equal(t, h.kind(), "deadlock", "hang says %+v", h.Verdicts)
	p, owners, waiting := stacks(t, of.id), map[uint64]int{}, 0
	for _, th := range p.Threads {
		if th.WaitsFor != nil && th.WaitsFor.Kind == "monitor" {
			waiting++
			owners[th.WaitsFor.Owner]++
		}
	}
	expect.True(t, waiting == 3 && len(owners) == 2 && owners[0] == 0 && len(p.Deadlocks) == 1 &&
		len(p.Deadlocks[0]) == 2,
		"%d threads wait for monitors of %v, deadlocks %v", waiting, owners, p.Deadlocks)
}

// judgeLocks compares the waits with the names of the threads.
func judgeLocks(t *testing.T, p shown, slim bool) {
	t.Helper()
	names, got := map[uint64]string{}, map[string]waitFor{}
	for _, th := range p.Threads {
		names[th.TID] = th.Name
	}
	waits := []waitFor{}
	for _, th := range p.Threads {
		switch {
		case th.WaitsFor == nil:
		case th.Name == "waits":
			waits = append(waits, waitFor{th.WaitsFor.Kind, names[th.WaitsFor.Owner]})
		default:
			got[th.Name] = waitFor{th.WaitsFor.Kind, names[th.WaitsFor.Owner]}
		}
	}
	want := map[string]waitFor{
		"managed-1": {"monitor", "managed-2"}, "managed-2": {"monitor", "managed-1"},
		"native-1": {"pthread mutex", "native-2"}, "native-2": {"pthread mutex", "native-1"},
		"mixed-1": {"pthread mutex", "mixed-2"}, "mixed-2": {"monitor", "mixed-1"},
		"left": {"monitor", "holder"},
	}
	if slim {
		want["slim-waits"] = waitFor{"System.Threading.Lock", "slim-holder"}
	}
	for name, w := range want {
		expect.Equal(t, got[name], w, name)
	}
	if len(got) != len(want) || !slices.Equal(waits, slices.Repeat([]waitFor{{"monitor", "holder"}}, 3)) {
		t.Errorf("waits of %v, and %v", got, waits)
	}
	var rings []string
	for _, ring := range p.Deadlocks {
		var of []string
		for _, tid := range ring {
			of = append(of, names[tid])
		}
		slices.Sort(of)
		rings = append(rings, strings.Join(of, " "))
	}
	slices.Sort(rings)
	expect.Slices(t, rings, []string{"managed-1 managed-2", "mixed-1 mixed-2", "native-1 native-2"},
		"deadlocks")
}

// judgeCore compares the waits in a core, which has no names of threads.
func judgeCore(t *testing.T, core, live shown) {
	t.Helper()
	expect.True(t, len(core.Threads) == len(live.Threads),
		"%d threads in the core, %d live", len(core.Threads), len(live.Threads))
	expect.True(t, len(live.Deadlocks) == 3 && fmt.Sprint(core.Deadlocks) == fmt.Sprint(live.Deadlocks),
		"deadlocks in the core %v, live %v", core.Deadlocks, live.Deadlocks)
	for _, th := range core.Threads {
		i := slices.IndexFunc(live.Threads, func(o shownThread) bool { return o.TID == th.TID })
		if i < 0 || (th.WaitsFor == nil) != (live.Threads[i].WaitsFor == nil) ||
			th.WaitsFor != nil && *th.WaitsFor != *live.Threads[i].WaitsFor {
			t.Errorf("thread %d: %+v in the core, %+v live", th.TID, th.WaitsFor, live.Threads[i].WaitsFor)
		}
	}
}

package e2e

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var tasksEach = flag.Int("tasks-each", 150, "how many chains of each kind wait in TestTasks")

// pendingTasks is what tasks --json shows.
type pendingTasks struct {
	Pending, Chains, Unconfirmed, Changed int
	Objects                               int    `json:"heap_objects"`
	Bytes                                 uint64 `json:"heap_bytes"`
	Lost                                  uint64 `json:"heap_bytes_without_objects"`
	Groups                                []struct {
		Count   int
		Chain   []string
		State   string
		Blocks  bool `json:"blocks_threads"`
		Threads []uint32
	}
	Problems []string
}

// counts are the chains as the program prints them. Transient work is left out.
func (p *pendingTasks) counts() map[string]int {
	out := map[string]int{}
	for _, g := range p.Groups {
		chain := strings.Join(g.Chain, " <- ")
		if g.Blocks {
			chain += " <- blocked thread"
		}
		if !strings.Contains(chain, "App.Passing") {
			out[chain] += g.Count
		}
	}
	return out
}

func tasksOf(t *testing.T, args ...string) *pendingTasks {
	t.Helper()
	p := &pendingTasks{}
	began := time.Now()
	if r := seedwalkJSON(t, p, "tasks", args...); r.code != 0 && !p.collecting() {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	t.Logf("%v: %d pending in %d objects, %d MB; %d bytes without objects, %d unconfirmed, %d changed",
		time.Since(began).Round(time.Millisecond), p.Pending, p.Objects, p.Bytes>>20,
		p.Lost, p.Unconfirmed, p.Changed)
	return p
}

// Every pending chain of a program that knows its own is found once, and no other: while the program is idle,
// while its other threads allocate and collect, and in a core.
func TestTasks(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		for _, mode := range []string{"still", "churn"} {
			t.Run(mode, func(t *testing.T) {
				p, said := waiting(t, "ready", on(t, runtime, "Tasks", fmt.Sprint(*tasksEach), mode)...)
				judgeTasks(t, p, chainsOf(said))
			})
		}
	})
}

// .NET 8, which publishes nothing about its structures.
func TestTasksOfNet8(t *testing.T) {
	for _, mode := range []string{"still", "churn"} {
		t.Run(mode, func(t *testing.T) {
			p, said := waiting(t, "ready", on(t, needs.Net8, "Tasks", fmt.Sprint(*tasksEach), mode)...)
			for range 3 {
				tasksOf(t, p.id).judge(t, chainsOf(said))
			}
		})
	}
}

// The same for programs of a current compiler, optimized and not, and for the other collectors: with a heap
// per processor, and with segments instead of regions.
func TestTasksOfPrograms(t *testing.T) {
	need(t, "out", "samples", "csc", "Csc.exe")
	need(t, ".cache", "dotnet-9.0.5", "package", "dist", "libclrgc.so")
	for _, c := range []struct{ env, program, mode string }{
		{"A=", "Awaits", ""}, {"A=", "debug/Awaits", ""}, {"DOTNET_gcServer=1", "Tasks", "churn"},
		{"DOTNET_GCName=libclrgc.so", "Tasks", "churn"},
	} {
		t.Run(c.env+c.program, func(t *testing.T) {
			argv := append([]string{"/usr/bin/env", c.env},
				app(t, c.program, fmt.Sprint(*tasksEach), c.mode)...)
			if c.mode == "" {
				argv = argv[:len(argv)-1]
			}
			p, said := waiting(t, "ready", argv...)
			tasksOf(t, p.id).judge(t, chainsOf(said))
		})
	}
}

// While the heap is read, each loop of the program begins to await another delay, which the reading of the
// heap lacks. Right after a collection, memory that a thread has just got may hold no objects yet. The tool
// then says that chains may be missing, and ends with 1.
func TestTasksOfBusy(t *testing.T) {
	need(t, "out", "samples", "Healthy.exe")
	p, _ := waiting(t, "ready", app(t, "Healthy", "delays")...)
	const loops, readings = 50, 10
	found, lacking := 0, 0
	for range readings {
		var pending pendingTasks
		r := seedwalkJSON(t, &pending, "tasks", p.id)
		if pending.Lost > 0 {
			lacking++
		}
		expect.True(t, r.code == 0 || pending.Lost > 0 || pending.collecting(), "exit code %d\n%s", r.code,
			r.stderr)
		found += pending.counts()["Task.Delay <- Healthy.Tasks (async lambda) <- Task.Run"]
		time.Sleep(100 * time.Millisecond)
	}
	expect.True(t, found > readings*loops*3/4 && lacking <= readings/3, "%d of %d, %d readings lack objects",
		found, readings*loops, lacking)
}

// A dump with the heap has the same chains as the process. For a dump without it, the tool prints that the
// heap is missing.
func TestTasksOfDumps(t *testing.T) {
	need(t, "out", "samples", "csc", "Csc.exe")
	p, said := waiting(t, "ready", app(t, "Awaits", "30")...)
	for kind, code := range map[string]int{"withheap": 0, "full": 0, "normal": 1, "triage": 3} {
		t.Run(kind, func(t *testing.T) {
			core := coreOf(t, p.id, kind)
			if code == 0 {
				tasksOf(t, "--core", core).judge(t, chainsOf(said))
			} else {
				r := seedwalk(t, "tasks", "--core", core)
				r.ends(t, code, r.stderr, "createdump --withheap")
			}
		})
	}
}

// A thread that runs an async method shows which methods await it. A thread that blocks on a task shows what
// the task waits for.
func TestStackAsync(t *testing.T) {
	need(t, "out", "samples", "csc", "Csc.exe")
	for _, build := range []string{"Awaits", "debug/Awaits"} {
		t.Run(build, func(t *testing.T) {
			p, _ := waiting(t, "ready", app(t, build, "1", "spin")...)
			for range 3 {
				asyncStacks(t, p.id)
			}
		})
	}
}

func asyncStacks(t *testing.T, pid string) {
	var s shown
	seedwalkJSON(t, &s, "stack", "--async", pid).ok(t)
	got := map[string]int{}
	for _, th := range s.Threads {
		for _, c := range th.Callers {
			got["by "+strings.Join(c, " <- ")]++
		}
		for _, c := range th.Awaits {
			got["for "+strings.Join(c, " <- ")]++
		}
	}
	want := map[string]int{"by App.Middle <- App.Outer <- App.Request": 2,
		"for Task<int> <- App.Pooled <- App.PooledTwice <- App.OfPooled": 1}
	expect.Equal(t, cmp.Diff(want, got), "", "-want +got")
}

// chainsOf reads the chains that a program prints.
func chainsOf(said []string) map[string]int {
	want := map[string]int{}
	for _, line := range said {
		var n int
		fmt.Sscan(line, &n)
		_, chain, _ := strings.Cut(line, " ")
		want[chain] += n
	}
	return want
}

func judgeTasks(t *testing.T, p *process, want map[string]int) {
	for range 3 {
		tasksOf(t, p.id).judge(t, want)
	}
	one := "Task<int> <- App.Net <- App.Db <- App.Handle"
	filtered := tasksOf(t, "--method", "App.Handle", "--type", "Task<int>", p.id)
	n := filtered.counts()
	expect.True(t, n[one] == want[one] && len(n) == 3, "--method App.Handle: %v", n)
	for _, g := range filtered.Groups {
		if g.Blocks && len(g.Threads) != 3 {
			t.Errorf("blocked: %v", g.Threads)
		}
	}
	// A core written during a collection lacks chains; this one is written at another moment.
	const stops = 20
	for n := 0; n == 0 || n < stops && tasksOf(t, p.id).collecting(); n++ {
		p.Process.Signal(syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
		p.freeze()
	}
	tasksOf(t, "--core", coreOf(t, p.id, "gcore")).judge(t, want)
}

// judge compares with the program's own list. Chains may be missing only while a collection moves objects.
func (p *pendingTasks) judge(t *testing.T, want map[string]int) {
	t.Helper()
	found := p.counts()
	for chain, n := range want {
		if p.collecting() && found[chain] <= n {
			found[chain] = n
		}
	}
	diff := cmp.Diff(want, found)
	expect.True(t, diff == "", "%v\n-want +got:\n%s", p.Problems, diff)
}

func (p *pendingTasks) collecting() bool {
	other := func(problem string) bool { return !strings.Contains(problem, "collection") }
	return len(p.Problems) > 0 && !slices.ContainsFunc(p.Problems, other)
}

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	cpus "runtime"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

var (
	healthyEvery = flag.Int("healthy-every", 4,
		"TestHangHealthyModes judges every Nth program; with 1, TestHang also runs each mode on both runtimes")
	healthyLooks = flag.Int("healthy-looks", 1, "how often TestHangHealthyModes judges a program")
)

// hung is what hang --json shows.
type hung struct {
	Verdicts []struct {
		Kind, Summary string
		Hang          bool
		Evidence      []string
	}
	Threads []struct {
		Name     string
		WaitsFor string `json:"waits_for"`
	}
}

func (h *hung) kind() string {
	if len(h.Verdicts) == 0 {
		return ""
	}
	return h.Verdicts[0].Kind
}

// hangOf runs hang; exit code 1 means that something hangs.
func hangOf(t *testing.T, args ...string) (h hung) {
	t.Helper()
	r := seedwalkJSON(t, &h, "hang", args...)
	must.True(t, h.kind() != "", "exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	want := map[bool]int{false: 0, true: 1}[h.Verdicts[0].Hang]
	expect.True(t, r.code == want, "exit code %d, want %d", r.code, want)
	return h
}

// Programs that hang on purpose are named, and programs that wait or work are not accused.
func TestHang(t *testing.T) {
	modes := []struct {
		mode, kind, says string
	}{
		{"two-locks", "deadlock", `which thread`},
		{"joins", "deadlock", "waits for the end of thread"},
		{"join-lock", "deadlock", "waits for the end of thread"},
		{"join-holder", "deadlock", "waits for the end of thread"},
		{"join-limit", "deadlock", "until a wait with a time limit ends"},
		{"limit", "deadlock", "2 threads wait for each other"},
		{"task-lock", "deadlock", "runs Task at 0x"},
		{"async-lock", "deadlock", "runs Hang.Run at 0x"},
		{"all-lock", "deadlock", "runs Hang.Run at 0x"},
		{"any-lock", "held-lock", "while it waits for a task itself. true"},
		{"own-task", "deadlock", "waits for a task that it runs itself"},
		{"lazy", "deadlock", "runs Task<int> at 0x"},
		{"type-join", "deadlock", "static constructor of Joining at"},
		{"type-task", "deadlock", "static constructor of Tasking at"},
		{"types", "deadlock", "4 threads wait for each other"},
		{"type-lock", "deadlock", "static constructor of Locking at"},
		{"mutexes", "deadlock", "System.Threading.Mutex at"},
		{"named-mutexes", "deadlock", `System.Threading.Mutex "`},
		{"mutex-lock", "deadlock", "System.Threading.Mutex at"},
		{"mutex-limit", "deadlock", "until a wait with a time limit ends"},
		{"mutex-any", "held-lock", "while it waits for an event or a mutex itself"},
		{"mutex", "deadlock", "3 threads wait for each other"},
		{"abandoned", "abandoned", " held when it ended"},
		{"abandoned-first", "abandoned", "which a thread held when it ended"},
		{"abandoned-collected", "abandoned", "which a thread held when it ended"},
		{"writer", "deadlock", "reader-writer lock at"},
		{"upgrade", "held-lock", "while it waits for a reader-writer lock"},
		{"held", "held-lock", "3 threads wait behind a lock"},
		{"token", "held-lock", "That wait has a time limit"},
		{"token-for-ever", "held-lock", "while it waits for a task itself. true"},
		{"socket", "held-lock", "while it waits for input or output"},
		{"collect", "collection", `"native"`},
		{"allocate", "collection", `"native"`},
		{"starve", "starvation", "queued behind them in the same pool"},
		{"starve-event", "starvation", "1 work item is in its queue"},
		{"lost", "waiting", "1 for a task"},
		{"all", "waiting", "; Task<int> <- Hang.After"},
		{"circle", "deadlock", "Hang.Await (3 times) (waits in a circle)"},
		{"circle-any", "waiting", "Task.WhenAny <- Hang.Await (2 times) <- Task.WhenAny"},
		{"pulse", "waiting", "1 for a monitor's pulse"},
		{"semaphore", "waiting", "1 for a semaphore"},
		{"semaphore-twice", "waiting", "1 for a semaphore"},
		{"semaphores", "waiting", "2 for a semaphore"},
		{"semaphore-await", "waiting", "SemaphoreSlim.WaitAsync <- Hang.Twice"},
		{"idle", "waiting", "1 for time to pass"},
		{"busy", "nothing", "CPU time"},
	}
	workers := fmt.Sprintf("%x", max(4, cpus.NumCPU())) // of the thread pool; the runtime reads hexadecimal
	for i, m := range modes {
		for _, runtime := range both {
			if *healthyEvery > 1 && !turn(i, runtime) {
				continue
			}
			t.Run(runtime+"/"+m.mode, func(t *testing.T) {
				t.Parallel()
				bounded := []string{"/usr/bin/env", "DOTNET_ThreadPool_ForceMinWorkerThreads=" + workers,
					"DOTNET_ThreadPool_ForceMaxWorkerThreads=" + workers}
				p, _ := waiting(t, "ready", append(bounded, on(t, runtime, "Hang", m.mode)...)...)
				removeMutexes(t, p)
				h := hungAs(t, p.id, m.kind, m.says)
				if text := fmt.Sprint(h.Verdicts); h.kind() != m.kind || !strings.Contains(text, m.says) {
					t.Errorf("want %s with %q:\n%s", m.kind, m.says, text)
				}
				if m.mode == "types" || m.mode == "mutexes" {
					core := hangOf(t, "--core", coreOf(t, p.id, "gcore"))
					expect.Equal(t, core.kind(), m.kind, "a core: %v", core.Verdicts)
				}
				if m.mode == "mutex" {
					hangOfCore(t, p)
				}
			})
		}
	}
}

// Locks of the core library have owners too, and a circle may have locks of several kinds.
func TestHangInLocks(t *testing.T) {
	need(t, "out", "samples", "Stuck.exe")
	t.Run("lock-of-ended", func(t *testing.T) {
		p, _ := waiting(t, "ready", app(t, "Stuck", "lock-of-ended")...)
		h := hungAs(t, p.id, "abandoned", "2. They never")
		expect.Equal(t, h.kind(), "abandoned", "%v", h.Verdicts)
	})
	for mode, says := range map[string]string{
		"locks": "System.Threading.Lock at", "writers": "reader-writer lock at",
		"reader-of-writer": "reader-writer lock at",
		"upgraders":        "reader-writer lock at", "mixed": "monitor at",
		"lock-and-writer": "System.Threading.Lock at",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p, _ := waiting(t, "ready", app(t, "Stuck", mode)...)
			h := hungAs(t, p.id, "deadlock", says)
			text := fmt.Sprint(h.Verdicts[0])
			expect.True(t, h.kind() == "deadlock" && strings.Contains(text, says) &&
				strings.Contains(text, "2 threads wait for each other"), "%v", h.Verdicts)
		})
	}
}

// In a core that was written outside of a container, threads have other numbers than in the program. So the
// owners of locks are unknown: they have not ended.
func TestHangOfContainer(t *testing.T) {
	need(t, "out", "samples", "Stuck.exe")
	pid := contained(t, app(t, "Stuck", "locks")...)
	hungAs(t, fmt.Sprint(pid), "deadlock", "System.Threading.Lock at")
	h := hangOf(t, "--core", coreOf(t, fmt.Sprint(pid), "gcore"))
	expect.True(t, h.kind() == "nothing" && strings.Contains(h.Verdicts[0].Summary, "are not known"),
		"%v", h.Verdicts)
}

// hungAs repeats the command until it finds the hang: the program has just started and may be slow on a
// loaded machine.
func hungAs(t *testing.T, pid, kind, says string) (h hung) {
	for range 15 {
		if h = hangOf(t, pid); h.kind() == kind && strings.Contains(fmt.Sprint(h.Verdicts), says) {
			break
		}
	}
	return h
}

// hangOfCore does the same for a core, for the process at a debugger's prompt, and for the stopped process.
func hangOfCore(t *testing.T, p *process) {
	debugger := start(t, "gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-p", p.id,
		"-ex", "shell echo ready; exec sleep 20")
	debugger.until("ready")
	if h := hangOf(t, p.id); h.kind() != "stopped" || !strings.Contains(h.Verdicts[0].Summary, "debugger") {
		t.Errorf("a process at a debugger's prompt: %+v", h.Verdicts)
	}
	debugger.Process.Kill()
	debugger.Process.Wait()
	p.freeze()
	h := hangOf(t, p.id)
	expect.True(t, h.kind() == "stopped" && len(h.Verdicts) == 2, "a stopped process: %+v", h.Verdicts)
	h = hangOf(t, "--core", coreOf(t, p.id, "gcore"))
	expect.True(t, h.kind() == "deadlock", "a core: %+v", h.Verdicts)
}

// More than 50 small healthy programs, which wait and work in different ways: none is accused.
func TestHangHealthyModes(t *testing.T) {
	need(t, "out", "samples", "Healthy.exe")
	list := run(t, time.Minute, nil, app(t, "Healthy")...)
	modes := strings.Fields(list.stdout)
	must.True(t, len(modes) >= 50, "exit code %d, modes %v\n%s", list.code, modes, list.stderr)
	for i, mode := range modes {
		if i%*healthyEvery != 0 {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p, _ := waiting(t, "ready", app(t, "Healthy", mode)...)
			removeMutexes(t, p)
			notAccused(t, p, *healthyLooks)
		})
	}
}

// removeMutexes removes the files of a program's mutexes at the test's end. Their names end with its PID.
func removeMutexes(t *testing.T, p *process) {
	t.Cleanup(func() {
		files, _ := filepath.Glob("/tmp/.dotnet/shm/*/*" + p.id)
		for _, f := range files {
			os.Remove(f)
		}
	})
}

// Healthy programs that work, wait for input, or queue for locks are not accused.
func TestHangHealthy(t *testing.T) {
	for name, argv := range map[string][]string{
		"demo": app(t, "Demo", "30"), "many": app(t, "Many", "30"), "survive": app(t, "Survive", "30"),
		"ended": app(t, "Ended", "30"), "kestrel": app(t, "Web", "30"),
		"server": {need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp"), "server", "start"},
		"cat":    {"cat"}, "sleep": {"sleep", "30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, argv...)
			time.Sleep(time.Second)
			notAccused(t, p, 3)
		})
	}
}

// notAccused examines a process several times, and fails the test if it is reported to hang.
func notAccused(t *testing.T, p *process, looks int) {
	t.Helper()
	for range looks {
		h := hangOf(t, "--wait", "500ms", p.id)
		expect.True(t, !h.Verdicts[0].Hang, "accused: %+v", h.Verdicts)
	}
}

package e2e

import (
	"bufio"
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

// lockedThread is what stack --json shows of a thread that waits.
type lockedThread struct {
	TID      uint32
	Name     string
	WaitsFor *struct {
		Kind, At string
		Owner    uint32
	} `json:"waits_for"`
}

type lockedProcess struct {
	Threads   []lockedThread
	Deadlocks [][]uint32
}

// waitFor is who waits for what of whom in the deadlock of Waits.cs.
type waitFor struct{ kind, owner string }

// Every wait for a lock in a deadlocked program, with its owner, and who waits for
// each other; of threads that wait for something else, nothing. The same from a core.
func TestStackLocks(t *testing.T) {
	for _, c := range []struct {
		name string
		argv []string
		slim bool // there is a System.Threading.Lock
	}{
		{"net9", app(t, "Waits", "deadlock"), true},
		{"net10", []string{need(t, "out", "samples", "Waits10"), "deadlock"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid := deadlocked(t, c.argv)
			judgeLocks(t, locksOf(t, fmt.Sprint(pid)), c.slim)
			gcore, err := exec.LookPath("gcore")
			if err != nil {
				t.Skip("SKIPPED-CHECK: no gcore (Debian package gdb): owners are not looked for in a core")
			}
			if c.name != "net9" { // one core is enough
				return
			}
			tempdir.Room(t, 2000)
			syscall.Kill(pid, syscall.SIGSTOP)
			core := filepath.Join(tempdir.New(t), "core")
			if out, err := exec.Command(gcore, "-o", core, fmt.Sprint(pid)).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			judgeCore(t, locksOf(t, "--core", fmt.Sprintf("%s.%d", core, pid)), locksOf(t, fmt.Sprint(pid)))
		})
	}
}

// The owners of monitors in a deadlocked program of .NET 8, and the verdict of hang.
func TestNet8Locks(t *testing.T) {
	pid := deadlocked(t, []string{need(t, "out", "samples", "Truth8"), "deadlock"})
	h := hungAs(t, pid, "deadlock") // its threads have reached their locks then
	if h.kind() != "deadlock" {
		t.Errorf("hang says %+v", h.Verdicts)
	}
	p, owners, waiting := locksOf(t, fmt.Sprint(pid)), map[uint32]int{}, 0
	for _, th := range p.Threads {
		if th.WaitsFor != nil && th.WaitsFor.Kind == "monitor" {
			waiting++
			owners[th.WaitsFor.Owner]++
		}
	}
	if waiting != 3 || len(owners) != 2 || owners[0] != 0 || len(p.Deadlocks) != 1 || len(p.Deadlocks[0]) != 2 {
		t.Errorf("%d threads wait for monitors of %v, deadlocks %v", waiting, owners, p.Deadlocks)
	}
}

// deadlocked starts the program and waits until it is.
func deadlocked(t *testing.T, argv []string) int { return hanging(t, argv, "deadlocked") }

// hanging starts a program and waits until it writes a line.
func hanging(t *testing.T, argv []string, line string) int {
	t.Helper()
	pid, _ := runningUntil(t, argv, line)
	return pid
}

// runningUntil starts a program, and returns once it has said a line, with what it said before.
func runningUntil(t *testing.T, argv []string, line string) (pid int, said []string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "MALLOC_ARENA_MAX=1", "LD_LIBRARY_PATH="+filepath.Dir(need(t, "out", "samples", "libwaits.so")))
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == line {
			return cmd.Process.Pid, said
		}
		said = append(said, lines.Text())
	}
	t.Fatal("the program has ended")
	return 0, nil
}

func locksOf(t *testing.T, args ...string) (p lockedProcess) {
	t.Helper()
	r := run(t, 2*time.Minute, nil, append([]string{tool(t), "stack", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
	}
	return p
}

// judgeLocks compares the waits with what the names of the threads say.
func judgeLocks(t *testing.T, p lockedProcess, slim bool) {
	t.Helper()
	names, got := map[uint32]string{}, map[string]waitFor{}
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
		"mixed-1": {"pthread mutex", "mixed-2"}, "mixed-2": {"monitor", "mixed-1"}, "left": {"monitor", "holder"},
	}
	if slim {
		want["slim-waits"] = waitFor{"System.Threading.Lock", "slim-holder"}
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %q, want %q", name, got[name], w)
		}
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
	if !slices.Equal(rings, []string{"managed-1 managed-2", "mixed-1 mixed-2", "native-1 native-2"}) {
		t.Errorf("deadlocks %q", rings)
	}
}

// judgeCore compares the waits in a core, which has no names of threads.
func judgeCore(t *testing.T, core, live lockedProcess) {
	t.Helper()
	if len(live.Deadlocks) != 3 || fmt.Sprint(core.Deadlocks) != fmt.Sprint(live.Deadlocks) {
		t.Errorf("deadlocks in the core %v, live %v", core.Deadlocks, live.Deadlocks)
	}
	for _, th := range core.Threads {
		i := slices.IndexFunc(live.Threads, func(o lockedThread) bool { return o.TID == th.TID })
		if i < 0 || (th.WaitsFor == nil) != (live.Threads[i].WaitsFor == nil) || th.WaitsFor != nil && *th.WaitsFor != *live.Threads[i].WaitsFor {
			t.Errorf("thread %d: %+v in the core, %+v live", th.TID, th.WaitsFor, live.Threads[i].WaitsFor)
		}
	}
}

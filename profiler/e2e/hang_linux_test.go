package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var (
	healthyEvery = flag.Int("healthy-every", 4, "TestHangHealthyModes judges one of so many programs")
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

// hangOf asks for the verdict; code 1 says that something hangs.
func hangOf(t *testing.T, args ...string) (h hung) {
	t.Helper()
	r := run(t, 2*time.Minute, nil, append([]string{tool(t), "hang", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &h); err != nil || h.kind() == "" {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if want := map[bool]int{false: 0, true: 1}[h.Verdicts[0].Hang]; r.code != want {
		t.Errorf("exit code %d, want %d", r.code, want)
	}
	return h
}

// Programs that hang on purpose are named, and programs that wait or work are not accused.
func TestHang(t *testing.T) {
	modes := []struct {
		mode, kind, says string
		only9            bool
	}{
		{"two-locks", "deadlock", `which thread`, false},
		{"mutex", "deadlock", "3 threads wait for each other", false},
		{"upgrade", "held-lock", "while it waits for a reader-writer lock", false},
		{"held", "held-lock", "3 threads wait behind a lock", false},
		{"collect", "collection", `"native"`, false},
		{"starve", "starvation", "queued behind them in the same pool", true},
		{"lost", "nothing", "waits for a task", false},
		{"semaphore", "nothing", "waits for a semaphore", false},
		{"idle", "nothing", "waits for time to pass", false},
		{"busy", "nothing", "processor time", false},
	}
	for _, runtime := range []string{"net9", "net10"} {
		for _, m := range modes {
			if runtime == "net10" && m.only9 {
				continue
			}
			t.Run(runtime+"/"+m.mode, func(t *testing.T) {
				argv := app(t, "Hang", m.mode)
				if runtime == "net10" {
					argv = []string{need(t, "out", "samples", "Hang10"), m.mode}
				}
				pid := hanging(t, argv, "ready")
				h := hungAs(t, pid, m.kind)
				if text := fmt.Sprint(h.Verdicts); h.kind() != m.kind || !strings.Contains(text, m.says) {
					t.Errorf("want %s with %q:\n%s", m.kind, m.says, text)
				}
				if runtime == "net9" && m.mode == "mutex" {
					hangOfCore(t, pid)
				}
			})
		}
	}
}

// Locks of the core library have owners too, and a circle may have locks of several kinds.
func TestHangInLocks(t *testing.T) {
	need(t, "out", "samples", "Stuck.exe")
	for mode, says := range map[string]string{
		"locks": "System.Threading.Lock at", "writers": "reader-writer lock at", "reader-of-writer": "reader-writer lock at",
		"upgraders": "reader-writer lock at", "mixed": "monitor at", "lock-and-writer": "System.Threading.Lock at",
	} {
		t.Run(mode, func(t *testing.T) {
			pid := hanging(t, app(t, "Stuck", mode), "ready")
			h := hungAs(t, pid, "deadlock")
			if text := fmt.Sprint(h.Verdicts[0]); h.kind() != "deadlock" || !strings.Contains(text, says) || !strings.Contains(text, "2 threads wait for each other") {
				t.Errorf("%v", h.Verdicts)
			}
		})
	}
}

// hungAs asks until the program hangs as it will: it has just started, and a loaded machine
// may take its time.
func hungAs(t *testing.T, pid int, kind string) (h hung) {
	for range 5 {
		if h = hangOf(t, fmt.Sprint(pid)); h.kind() == kind {
			break
		}
	}
	return h
}

// hangOfCore asks the same of a core, and of the stopped process.
func hangOfCore(t *testing.T, pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if h := hangOf(t, fmt.Sprint(pid)); h.kind() != "stopped" || len(h.Verdicts) != 2 {
		t.Errorf("a stopped process: %+v", h.Verdicts)
	}
	gcore, err := exec.LookPath("gcore")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gcore (Debian package gdb): no core is judged")
	}
	tempdir.Room(t, 2000)
	core := filepath.Join(tempdir.New(t), "core")
	if out, err := exec.Command(gcore, "-o", core, fmt.Sprint(pid)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if h := hangOf(t, "--core", fmt.Sprintf("%s.%d", core, pid)); h.kind() != "deadlock" {
		t.Errorf("a core: %+v", h.Verdicts)
	}
}

// Of 51 small programs that wait and work in every way that healthy ones do, none is accused.
func TestHangHealthyModes(t *testing.T) {
	need(t, "out", "samples", "Healthy.exe")
	list := run(t, time.Minute, []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"}, app(t, "Healthy")...)
	modes := strings.Fields(list.stdout)
	if len(modes) < 50 {
		t.Fatalf("exit code %d, modes %v\n%s", list.code, modes, list.stderr)
	}
	for i, mode := range modes {
		if i%*healthyEvery != 0 {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pid := hanging(t, app(t, "Healthy", mode), "ready")
			for range *healthyLooks {
				if h := hangOf(t, "--wait", "500ms", fmt.Sprint(pid)); h.Verdicts[0].Hang {
					t.Errorf("accused: %+v", h.Verdicts)
				}
			}
		})
	}
}

// Programs that work, wait for input, or queue for locks as they should are not accused.
func TestHangHealthy(t *testing.T) {
	for name, argv := range map[string][]string{
		"demo": app(t, "Demo", "30"), "many": app(t, "Many", "30"), "survive": app(t, "Survive", "30"), "ended": app(t, "Ended", "30"),
		"server": {need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp"), "server", "start"},
		"cat":    {"cat"}, "sleep": {"sleep", "30"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(argv[0], argv[1:]...)
			in, _ := cmd.StdinPipe()
			cmd.Env = append(os.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "LD_LIBRARY_PATH="+filepath.Dir(need(t, "out", "samples", "libwaits.so")))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
			time.Sleep(time.Second)
			for range 3 {
				if h := hangOf(t, "--wait", "300ms", fmt.Sprint(cmd.Process.Pid)); h.Verdicts[0].Hang {
					t.Errorf("accused: %+v", h.Verdicts)
				}
			}
		})
	}
}

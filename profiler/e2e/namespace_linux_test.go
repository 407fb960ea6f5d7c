package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// contained starts a program in a pid and a mount namespace of its own, with a /tmp of
// its own, and returns its number here.
func contained(t *testing.T, argv ...string) int {
	t.Helper()
	const script = `mount -t tmpfs none /tmp && exec "$@"`
	cmd := exec.Command("unshare", append([]string{"--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"}, argv...)...)
	cmd.Stderr = os.Stderr
	if os.Geteuid() != 0 || cmd.Err != nil || exec.Command("unshare", "--pid", "--mount", "--fork", "--mount-proc", "sh", "-c", script, "sh", "true").Run() != nil {
		t.Skip("SKIPPED-CHECK: no namespaces can be made here (they need root and unshare)")
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 300 {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			if s, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/tmp/dotnet-diagnostic-*-socket", pid)); len(s) > 0 {
				return pid
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the program has opened no diagnostics port")
	return 0
}

// A process in a container: its files and its numbers are others, and it is recorded
// and looked at from here all the same. Nothing of ours stays in its /tmp.
func TestOtherNamespaces(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	pid := contained(t, app(t, "Truth", "120")...)
	before := settled(t, pid)
	file := filepath.Join(tempdir.New(t), "out.folded")
	for range 2 {
		r := run(t, time.Minute, nil, tool(t), "record", "--pid", fmt.Sprint(pid), "--duration", "2s", "--json", "--output", file)
		var sum struct {
			Stats struct {
				Samples, Complete int64
				Counters          map[string]int64
			}
		}
		if err := json.Unmarshal([]byte(r.stderr[max(0, strings.IndexByte(r.stderr, '{')):]), &sum); err != nil || r.code != 0 {
			t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
		}
		s := &sum.Stats
		t.Logf("%d samples, %d complete, %d by timers of %d threads", s.Samples, s.Complete, s.Counters["timed"], s.Counters["armed"])
		if s.Samples < 100 || s.Complete*1000 < s.Samples*leastWhole || s.Counters["timed"] == 0 {
			t.Errorf("%+v", s)
		}
		if text := string(readFile(t, file)); !strings.Contains(text, "T.Run") {
			t.Error("no method of the program's is named")
		}
		if now := systemStateOf(t, pid); now.caught != before.caught || now.descriptors != before.descriptors || now.timers != 0 {
			t.Errorf("afterwards %+v, before %+v", now, before)
		}
	}
	if left, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/tmp/seedwalk*", pid)); len(left) > 0 {
		t.Errorf("left in its /tmp: %v", left)
	}
	l := stacks(t, fmt.Sprint(pid))
	whole := 0
	for _, th := range l.Threads {
		if th.Complete {
			whole++
		}
	}
	if t.Logf("stack: %d threads, %d whole", len(l.Threads), whole); !l.Runtime || len(l.Threads) < 15 || len(l.Threads)-whole > 1 {
		t.Errorf("runtime %v, problems %v", l.Runtime, l.Problems)
	}
}

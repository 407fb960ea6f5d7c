package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var killsAnywhere = flag.Int("killsanywhere", 4, "how often the tool is killed at any moment of an attachment or of stack PID")

// The tool is killed at any moment: while it attaches, samples, detaches, or has a thread of the program
// stopped. No thread stays stopped or traced, and the program works to its end as without us.
func TestKilledAnywhere(t *testing.T) {
	p := attached(t, app(t, "Truth", fmt.Sprint(12+2**killsAnywhere))...)
	pid, file := p.pid, filepath.Join(tempdir.New(t), "out.json")
	before := settled(t, pid)
	ended := map[string]int{}
	for i := range *killsAnywhere {
		what, limit := "record", 1500*time.Millisecond
		args := []string{"record", "--pid", fmt.Sprint(pid), "--duration", "500ms", "--quiet", "--output", file}
		if i%2 == 1 {
			what, limit, args = "stack", 700*time.Millisecond, []string{"stack", fmt.Sprint(pid)}
		}
		tool := start(t, append([]string{tool(t)}, args...)...)
		if i%4 == 3 { // while it has a thread stopped, if that can be observed
			for begin := time.Now(); len(standing(t, pid)) == 0 && time.Since(begin) < 3*time.Second; {
			}
			what += " with a thread stopped"
		} else {
			time.Sleep(rand.N(limit))
		}
		tool.Process.Kill()
		if tool.wait() == 0 {
			what += " ended first"
		}
		ended[what]++
		until(t, fmt.Sprintf("kill %d (%s): no thread stands", i, what), func() bool { return len(standing(t, pid)) == 0 })
	}
	t.Logf("killed %v", ended)
	// The next recording repairs what the killed ones have left.
	if r := record(t, "--duration 500ms --quiet --pid "+p.id); r.code != 0 {
		t.Errorf("a recording after all: exit code %d, %s", r.code, r.stderr)
	}
	clean(t, pid, before)
	p.truthDone()
}

// standing lists the threads of a process that are stopped or traced.
func standing(t *testing.T, pid int) (out []string) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if len(tasks) == 0 {
		t.Fatal("the program is gone")
	}
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		s := string(b)
		if len(s) > 0 && (strings.Contains(s, "\nState:\tT") || strings.Contains(s, "\nState:\tt") || !strings.Contains(s, "\nTracerPid:\t0\n")) {
			out = append(out, f)
		}
	}
	return out
}

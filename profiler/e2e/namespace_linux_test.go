package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/needs"
)

// ownTemp is the beginning of a script that gives a mount namespace its own /tmp. The checkout, its first
// argument, stays where it is, even below /tmp.
const ownTemp = `mount --bind "$1" /mnt && mount -t tmpfs none /tmp && mkdir -p "$1" && mount --move /mnt "$1" && cd "$1/profiler/e2e" && shift`

// contained starts a program in its own pid and mount namespaces, with its own /tmp, and returns its number
// here.
func contained(t *testing.T, argv ...string) int {
	t.Helper()
	unshare := []string{"unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c", ownTemp + ` && exec "$@"`, "sh", needs.Root(t)}
	if os.Geteuid() != 0 || exec.Command(unshare[0], append(unshare[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: no namespaces can be made here (they need root and unshare)")
	}
	return child(t, start(t, append(unshare, argv...)...), func(pid int) bool {
		s, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/tmp/dotnet-diagnostic-*-socket", pid))
		return len(s) > 0
	})
}

// child waits until a process has a child that is ready, and returns its number.
func child(t *testing.T, p *process, ready func(pid int) bool) (pid int) {
	t.Helper()
	until(t, "the program is ready", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, p.pid))
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil && ready(pid)
	})
	return pid
}

// A process in a container has other files and process numbers. It is recorded and examined from here
// nevertheless, and nothing of ours stays in its /tmp.
func TestOtherNamespaces(t *testing.T) {
	pid := contained(t, app(t, "Truth", "120")...)
	before := settled(t, pid)
	for range 2 {
		r := record(t, fmt.Sprint("--duration 2s --pid ", pid))
		r.whole(t, 100, leastWhole)
		if r.code != 0 || r.Counters["timed"] == 0 || !r.has("T.Run") {
			t.Errorf("exit code %d, %d by timers, or no method of the program's is named\n%s", r.code, r.Counters["timed"], r.stderr)
		}
		clean(t, pid, before)
	}
	if left, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/tmp/seedwalk*", pid)); len(left) > 0 {
		t.Errorf("left in its /tmp: %v", left)
	}
	l := stacks(t, fmt.Sprint(pid))
	if whole := l.whole(t); !l.Runtime || len(l.Threads) < 15 || len(l.Threads)-whole > 1 {
		t.Errorf("runtime %v, %d of %d whole, problems %v", l.Runtime, whole, len(l.Threads), l.Problems)
	}
}

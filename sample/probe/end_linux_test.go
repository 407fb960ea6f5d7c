package probe

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// caughtBy returns the signals for which a process has handlers.
func caughtBy(t *testing.T, pid int) string {
	t.Helper()
	b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	return regexp.MustCompile(`SigCgt:\s*(\S+)`).FindStringSubmatch(string(b))[1]
}

// The end of a recording does not depend on one thread: the first thread that takes a signal restores the
// handlers, whether or not it was asked.
func TestEndByAnyThread(t *testing.T) {
	t.Parallel()
	r := startRuntime(t)
	defer close(r.f.beating())
	for r.lines.Scan() && !strings.HasPrefix(r.lines.Text(), "delivered") {
	}
	pid := r.cmd.Process.Pid
	legacy, _ := r.f.Signals()
	held := caughtBy(t, pid)
	if legacy != int(unix.SIGURG) || r.f.Left() {
		t.Fatalf("signal %d, left %v", legacy, r.f.Left())
	}
	unix.Kill(pid, unix.SIGURG) // not from the tool: no effect
	for begin := time.Now(); r.f.Stats().Strangers == 0 && time.Since(begin) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if r.f.Left() || caughtBy(t, pid) != held {
		t.Error("a stranger's signal ends the recording")
	}
	r.f.End()
	unix.Kill(pid, unix.SIGURG)
	for begin := time.Now(); !r.f.Left() && time.Since(begin) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if now := caughtBy(t, pid); !r.f.Left() || now == held {
		t.Errorf("left %v, handlers %s, %s while recording", r.f.Left(), now, held)
	}
}

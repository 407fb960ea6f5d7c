package blocked

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// A process in a PID namespace of its own calls its threads by other numbers.
func TestWhereInNamespace(t *testing.T) {
	needs.Command(t, "unshare", "pgrep")
	cmd := exec.Command("unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo ready; exec sleep 60")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Skipf("SKIPPED-CHECK: no PID namespace: %q %v", line, err)
	}
	child := must.Get(exec.Command("pgrep", "-P", strconv.Itoa(cmd.Process.Pid)).Output())(t)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(child))))(t)
	w := &Watch{pid: pid, numbers: live.NumbersOf(pid)}
	end := time.Now().Add(10 * time.Second)
	for _, _, ok := w.where(1); !ok; _, _, ok = w.where(1) {
		must.True(t, time.Now().Before(end), "thread 1 of process %d was not found", pid)
		time.Sleep(10 * time.Millisecond)
	}
	_, _, ok := w.where(uint64(pid))
	expect.True(t, !ok, "our number of the thread is taken for the process's own")
}

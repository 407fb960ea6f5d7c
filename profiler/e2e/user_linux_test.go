package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// asNobody is the command line that runs a program as another user.
func asNobody(t *testing.T, argv ...string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root records the processes of others")
	}
	needs.Command(t, "setpriv")
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "TMPDIR"}
	for _, file := range argv[:3] { // the host, the runtime, the program
		if exec.Command(nobody[0], append(nobody[1:], "test", "-r", file)...).Run() != nil {
			t.Skipf("SKIPPED-CHECK: user 65534 may not read %s", file)
		}
	}
	return append(nobody, argv...)
}

// Root records a process of another user, though its own temporary folder is closed to that
// user; in the process's namespaces too.
func TestRootRecordsOthers(t *testing.T) {
	argv := asNobody(t, app(t, "Truth", "120")...)
	t.Run("here", func(t *testing.T) {
		cmd := exec.Command(argv[0], argv[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		awaitPort(t, cmd.Process.Pid, "/tmp")
		recordOther(t, cmd.Process.Pid)
	})
	t.Run("container", func(t *testing.T) {
		pid := contained(t, argv...)
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) }) // a change of user ends the kernel's promise to end it with unshare
		recordOther(t, pid)
	})
}

// awaitPort waits for a process's diagnostics port in a folder.
func awaitPort(t *testing.T, pid int, folder string) {
	t.Helper()
	for range 300 {
		if s, _ := filepath.Glob(fmt.Sprintf("%s/dotnet-diagnostic-%d-*-socket", folder, pid)); len(s) > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the program has opened no diagnostics port")
}

func recordOther(t *testing.T, pid int) {
	closed := filepath.Join(tempdir.New(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"TMPDIR=" + closed}
	for range 2 { // the second recording finds the probe of the first
		file := filepath.Join(closed, "out.folded")
		r := run(t, time.Minute, env, tool(t), "record", "--pid", fmt.Sprint(pid), "--duration", "2s", "--json", "--output", file)
		var sum struct {
			Stats struct{ Samples, Complete int64 }
		}
		if err := json.Unmarshal([]byte(r.stderr[max(0, strings.IndexByte(r.stderr, '{')):]), &sum); err != nil || r.code != 0 {
			t.Fatalf("exit code %d, %v\n%s", r.code, err, r.stderr)
		}
		if t.Logf("%+v", sum.Stats); sum.Stats.Samples == 0 {
			t.Error(r.stderr)
		}
		if !strings.Contains(readFile(t, file), "T.Run") {
			t.Error("no method of the program's is named")
		}
	}
	if r := run(t, time.Minute, env, tool(t), "stack", fmt.Sprint(pid)); r.code != 0 || !strings.Contains(r.stdout, "T.Run") {
		t.Errorf("stack: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(t, time.Minute, env, tool(t), "doctor", "--pid", fmt.Sprint(pid)); r.code != 0 || !strings.Contains(r.stdout, "Everything works with this process.") {
		t.Errorf("doctor: exit code %d\n%s", r.code, r.stdout)
	}
}

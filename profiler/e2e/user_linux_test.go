package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

// Root records a process of another user, whose files cannot be in root's own temporary folder; in the
// process's namespaces too.
func TestRootRecordsOthers(t *testing.T) {
	argv := asNobody(t, app(t, "Truth", "120")...)
	t.Run("here", func(t *testing.T) {
		p := start(t, argv...)
		until(t, "it opens its diagnostics port", func() bool {
			s, _ := filepath.Glob("/tmp/dotnet-diagnostic-" + p.id + "-*-socket")
			return len(s) > 0
		})
		recordOther(t, p.id)
	})
	t.Run("container", func(t *testing.T) {
		pid := contained(t, argv...)
		// a change of user cancels the kernel's promise to end it together with unshare
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
		recordOther(t, fmt.Sprint(pid))
	})
}

func recordOther(t *testing.T, pid string) {
	closed := filepath.Join(tempdir.New(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", closed)
	for range 2 { // the second recording finds the probe of the first
		r := record(t, "--duration 2s --pid "+pid)
		if t.Logf("%d samples, %d complete", r.Samples, r.Complete); r.code != 0 || r.Samples == 0 || !r.has("T.Run") {
			t.Errorf("exit code %d, or no method of the program's is named\n%s", r.code, r.stderr)
		}
	}
	for command, c := range map[string]struct {
		args []string
		says string
	}{"stack": {[]string{pid}, "T.Run"}, "doctor": {[]string{"--pid", pid}, "Everything works with this process."}} {
		if r := seedwalk(t, append([]string{command}, c.args...)...); r.code != 0 || !strings.Contains(r.stdout, c.says) {
			t.Errorf("%s: exit code %d\n%s%s", command, r.code, r.stderr, r.stdout)
		}
	}
}

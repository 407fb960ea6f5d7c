//go:build amd64

package host

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Among threads that wait at a condition variable, signaled threads are distinguished from the others. All
// other threads are reported as unknown.
func TestWake(t *testing.T) {
	needs.Command(t, "gcc")
	exe := filepath.Join(tempdir.New(t), "wake")
	must.Run(t, exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", exe, "testdata/wake.c", "-lpthread"))
	out := must.Run(t, exec.Command(exe))
	if strings.HasPrefix(out, "refused") {
		t.Skip("SKIPPED-CHECK: the system does not let a process read its own memory by process_vm_readv")
	}
	const want = `before, told: not woken
before, not told: not woken
before, at a mutex: unknown
before, asleep: unknown
before, running: unknown
after, told: woken
after, not told: not woken
after, at a mutex: unknown
after, asleep: unknown
after, running: unknown
`
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

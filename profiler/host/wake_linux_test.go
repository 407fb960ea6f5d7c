//go:build amd64

package host

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Among threads that wait at a condition variable, signaled threads are distinguished from the others. All
// other threads are reported as unknown.
func TestWake(t *testing.T) {
	out := run(t, "wake")
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
	expect.Equal(t, out, want)
}

// A thread that does not answer is asked again once it has taken the first signal. The handler answers this
// process only, and leaves errno as it was. The sampler's thread has its own mask.
func TestCapture(t *testing.T) {
	const want = `an ended thread: sent, gone
a thread that blocks the signal: sent, no answer
again: not sent, no answer
unblocked: sent, captured
a full queue: sent, no answer
a thread that does not run: sent, late
later: no answer
again: not sent, no answer
another: sent, late
it runs: captured
another process's signal: no answer
a whole stack: captured
a stack that is readable in part: captured, foreign
an unreadable stack: captured, foreign
the alternate stack of a thread that ends: the one before
the same if the program has set another: the program's
the sampler blocks SIGUSR1: 1, SIGURG: 0; its starter blocks SIGUSR1: 0
`
	expect.Equal(t, run(t, "capture"), want)
}

// run returns the output of a program of testdata, which includes sources of this folder.
func run(t *testing.T, program string) string {
	t.Helper()
	needs.Command(t, "gcc")
	exe := filepath.Join(tempdir.New(t), program)
	must.Run(t, exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", exe,
		"testdata/"+program+".c", "-lpthread"))
	out := must.Run(t, exec.Command(exe))
	if strings.HasPrefix(out, "refused") {
		t.Skip("SKIPPED-CHECK: the system does not let a process read its own memory by process_vm_readv")
	}
	return out
}

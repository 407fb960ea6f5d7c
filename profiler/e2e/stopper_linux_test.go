package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// No probe can be put into a process whose diagnostics are off. Its threads are stopped one by one, and the
// stacks agree with the threads' own records. The program ends as without us.
func TestRecordOutside(t *testing.T) {
	t.Setenv("DOTNET_EnableDiagnostics", "0")
	p := attached(t, app(t, "Truth", "20")...)
	if r := seedwalk(t, "record", "--pid", p.id, "--duration", "1s", "--output", filepath.Join(t.TempDir(), "o.folded")); r.code != 125 || !strings.Contains(r.stderr, "--outside") {
		t.Errorf("without --outside: %d %s", r.code, r.stderr)
	}
	r := recordRaw(t, "--outside --duration 6s --pid "+p.id)
	if t.Log(r.stderr); r.code != 0 {
		t.Fatalf("exit code %d", r.code)
	}
	c := newChecker(t)
	c.copied = perfevent.MaxStack
	c.recorded(t, r)
	c.few(t, 0, 97)
	p.truthDone()
}

// A native program is sampled the same way.
func TestRecordOutsideNative(t *testing.T) {
	p := attached(t, "/bin/sh", "-c", "while :; do :; done")
	if r := record(t, "--outside --duration 2s --pid "+p.id); r.code != 0 || r.Samples == 0 || r.Complete != r.Samples || !r.has("__libc_start_main") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

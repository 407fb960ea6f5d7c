package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A process that no probe can be put into, for diagnostics are off: its threads are
// stopped one by one, and stacks are what they say of themselves. The program ends as
// without us.
func TestRecordOutside(t *testing.T) {
	t.Setenv("DOTNET_EnableDiagnostics", "0")
	cmd, out := attached(t, app(t, "Truth", "20")...)
	pid := fmt.Sprint(cmd.Process.Pid)
	if r := run(t, time.Minute, nil, tool(t), "record", "--pid", pid, "--duration", "1s", "--output", filepath.Join(t.TempDir(), "o.folded")); r.code != 125 || !strings.Contains(r.stderr, "--outside") {
		t.Errorf("without --outside: %d %s", r.code, r.stderr)
	}
	file := filepath.Join(tempdir.New(t), "raw")
	r := run(t, time.Minute, nil, tool(t), "record", "--pid", pid, "--outside", "--duration", "6s", "--raw", file, "--output", file+".folded")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	samples, rd := readRaw(t, file, r.stderr)
	c, table := newChecker(t), map[uint64]*tally{}
	c.methods, c.copied = rd.Names(), perfevent.MaxStack
	c.compare(t, table, samples)
	checked, whole := 0, 0
	for _, row := range table {
		checked, whole = checked+row.checked, whole+row.complete
	}
	t.Logf("%d samples, %d whole, %d compared, %d wrong\n%s", len(samples), whole, checked, c.bad, r.stderr)
	if checked < 40 || whole*100 < len(samples)*97 {
		t.Error("too few")
	}
	if err := cmd.Wait(); err != nil || out.String() != "TRUTH DONE\n" {
		t.Errorf("the program ended with %v and said %q", err, out)
	}
}

// A native program is sampled the same way.
func TestRecordOutsideNative(t *testing.T) {
	cmd, _ := attached(t, "/bin/sh", "-c", "while :; do :; done")
	file := filepath.Join(tempdir.New(t), "o.folded")
	r := run(t, time.Minute, nil, tool(t), "record", "--pid", fmt.Sprint(cmd.Process.Pid), "--outside", "--duration", "2s", "--output", file)
	if r.code != 0 || !strings.Contains(r.stderr, "complete     100.00 %") || !strings.Contains(readFile(t, file), "__libc_start_main") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

// Package e2e tests the tool, the profiler and the core together on real .NET
// runtimes: truth, soak, what goes wrong. The programs are those of
// profiler/testdata, built by scripts/samples.sh; the runtimes those of
// scripts/packages.txt.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const root = "../.."

// need is a file that `make build samples runtime` made.
var need = needs.File

func tool(t *testing.T) string { return need(t, "out", "bin", "seedwalk") }

// runtime9 is the pinned .NET 9.
var runtime9 = needs.Runtime9

// app is the command line of a sample program on .NET 9.
func app(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return append([]string{need(t, "out", "bin", "swhost"), runtime9(t), need(t, "out", "samples", name+".exe")}, args...)
}

// result is what became of a command.
type result struct {
	stdout, stderr string
	code           int // exit code; 128+n for signal n
	took           time.Duration
}

// run runs a command with a time limit, which is a failure. What hangs is looked
// at before it is ended.
func run(t *testing.T, limit time.Duration, env []string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	mark := fmt.Sprintf("%s=%d.%d", runMark, os.Getpid(), time.Now().UnixNano())
	look := func() { t.Logf("it hangs:\n%s", diagnose(mark)) }
	cmd.Env = append(append(os.Environ(), env...), mark)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { look(); return cmd.Process.Kill() }
	var out bytes.Buffer
	errs := hangWatcher{look: look}
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	r := result{stdout: out.String(), stderr: errs.String(), took: time.Since(begin)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s: no end after %v\n%s", strings.Join(argv, " "), limit, r.stderr)
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // a child of its own has its output still open, Wine's services
	case err != nil:
		t.Fatalf("%s: %v", argv[0], err)
	}
	return r
}

// record runs a command under seedwalk record with raw samples and reads them.
func record(t *testing.T, limit time.Duration, rate string, argv ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	return recordBy(t, "snapshot", limit, rate, argv...)
}

// recordBy is record on a way of taking samples.
func recordBy(t *testing.T, way string, limit time.Duration, rate string, argv ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	return recordWith(t, limit, []string{"--mode", way, "--rate", rate}, argv...)
}

// recordWith is record with flags of one's own.
func recordWith(t *testing.T, limit time.Duration, flags []string, argv ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	dir := tempdir.New(t)
	file := filepath.Join(dir, "raw")
	args := append([]string{tool(t), "record", "--raw", file, "--output", filepath.Join(dir, "out.json")}, flags...)
	r := run(t, limit, nil, append(append(args, "--"), argv...)...)
	samples, rd := readRaw(t, file, r.stderr)
	return samples, rd, r
}

// profiled makes a CLR load a profiler.
func profiled(library string, more ...string) []string {
	return append([]string{"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}", "CORECLR_PROFILER_PATH=" + library}, more...)
}

// leastWhole is what share of the stacks must be complete, in thousandths, of those
// whose threads got a processor in time.
const leastWhole = 995

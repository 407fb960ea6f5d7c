// Package e2e tests the tool, the profiler and the core together on real .NET runtimes: correct stacks, long
// runs, failures. The programs are in profiler/testdata, built by scripts/samples.sh; the runtimes are in
// scripts/packages.txt.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const root = "../.."

// need is a file that `make build samples runtime` made.
var need = needs.File

// tool is the path of the tool; the probe and the library that it loads are in the same folder.
func tool(t *testing.T) string {
	t.Helper()
	need(t, "out", "bin", "libseedwalk_probe.so")
	need(t, "out", "bin", "libseedwalk_profiler.so")
	return need(t, "out", "bin", "seedwalk")
}

// TestMain lets every runtime start without a library of cultures. Programs receive the signals that a
// terminal sends, even if nohup or a shell's background has the test ignore them.
func TestMain(m *testing.M) {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig) // a signal handled here is not ignored in a child
		}
	}
	os.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	var err error
	if libraries, err = os.MkdirTemp("", "seedwalk-libraries-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(libraries)
	os.Exit(code)
}

// libraries is the folder of the C libraries that vendors' profilers are linked with in tests. Each is built
// once.
var libraries string

// runtime9 is the pinned .NET 9.
var runtime9 = needs.Runtime9

// both are the runtimes whose structures are published. 10.0.9 crashes rarely by itself, in
// LCGMethodResolver::GetCodeInfo, if a collection meets a thread that compiles a DynamicMethod
// (dotnet/runtime issue 131267).
var both = []string{needs.Net9, needs.Net10}

// on is the command line of a sample program on a runtime.
func on(t *testing.T, runtime, name string, args ...string) []string {
	t.Helper()
	var argv []string
	switch runtime {
	case needs.Net9:
		return hosted(t, runtime9(t), need(t, "out", "samples", name+".exe"), args...)
	case needs.Net10:
		argv = []string{need(t, "out", "samples", name+"10")}
	case needs.Net8:
		argv = []string{need(t, "out", "samples", name+"8")}
	case needs.Net9Musl:
		argv = []string{"/usr/bin/env", "LD_LIBRARY_PATH=" + need(t, "out", "samples", "musl"),
			need(t, "out", "samples", name+"Musl")}
	default:
		t.Fatalf("no runtime %q", runtime)
	}
	return append(argv, args...)
}

// hosted is the command line of a program on a runtime without a host of its own.
func hosted(t *testing.T, runtime, exe string, args ...string) []string {
	t.Helper()
	return append([]string{need(t, "out", "bin", "swhost"), runtime, exe}, args...)
}

// app is the command line of a sample program on .NET 9.
func app(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return on(t, needs.Net9, name, args...)
}

// assemblies names the program's assembly on each runtime.
func assemblies(runtime, name string) string {
	if runtime == needs.Net10 {
		return "azmcp"
	}
	return name
}

// eachRuntime runs a test on both runtimes at the same time: they mostly wait.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime string)) {
	for _, runtime := range both {
		t.Run(runtime, func(t *testing.T) { t.Parallel(); test(t, runtime) })
	}
}

// turn reports whether a case is tried on a runtime if the runtimes take turns.
func turn(number int, runtime string) bool { return both[number%len(both)] == runtime }

// compiled compiles a C# program of testdata.
func compiled(t *testing.T, source string) (exe string) {
	t.Helper()
	needs.Command(t, "mcs")
	exe = filepath.Join(tempdir.New(t), strings.TrimSuffix(filepath.Base(source), ".cs")+".exe")
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-warn:1", "-out:"+exe, filepath.Join(root, source))
	return exe
}

// result is how a command ended.
type result struct {
	stdout, stderr string
	code           int // exit code; 128+n for signal n
	took           time.Duration
	command        string
}

// ok ends the test unless the command succeeded.
func (r result) ok(t *testing.T) {
	t.Helper()
	must.True(t, r.code == 0, "%s: exit code %d\n%s%s", r.command, r.code, r.stdout, r.stderr)
}

// ends fails the test unless the command ended with this exit code and its output, all of it or one stream,
// has each of the texts.
func (r result) ends(t *testing.T, code int, output string, texts ...string) {
	t.Helper()
	missing := slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(output, text) })
	expect.True(t, r.code == code && len(missing) == 0, "%s: exit code %d, want %d; it does not say %q\n%s%s",
		r.command, r.code, code, missing, r.stdout, r.stderr)
}

// run runs a command. Exceeding the time limit is a failure; the program is examined before it is ended.
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
	r := result{stdout: out.String(), stderr: errs.String(), took: time.Since(begin),
		command: strings.Join(argv, " ")}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s: no end after %v\n%s", r.command, limit, r.stderr)
	case errors.As(err, &exit):
		r.code = exitCode(exit.ProcessState)
	case errors.Is(err, exec.ErrWaitDelay): // a child, such as Wine's services, still has its output open
	case err != nil:
		t.Fatalf("%s: %v", argv[0], err)
	}
	return r
}

// exitCode returns how a program ended, in the way of a shell: 128+n for signal n.
func exitCode(ended *os.ProcessState) int {
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

// profiled are the variables that make a CLR load a profiler.
func profiled(library string, more ...string) []string {
	return append([]string{"CORECLR_ENABLE_PROFILING=1",
		"CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}",
		"CORECLR_PROFILER_PATH=" + library}, more...)
}

// leastWhole is the share of stacks, in thousandths, that must be complete, among threads that got a
// processor in time.
const leastWhole = 995

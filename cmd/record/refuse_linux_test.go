package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const notExecutable = "permission denied"

// An assembly without the program that starts it is refused. Windows and Wine start some of them.
func TestRefusedAssembly(t *testing.T) {
	opt, _ := fakeRun(t, "silent")
	assembly := filepath.Join(t.TempDir(), "app.dll")
	must.Do(t, os.WriteFile(assembly, peasm.Image{Machine: peasm.I386, Managed: true}.Bytes(), 0o755))
	opt.Command = []string{assembly, "--fast"}
	_, err := Run(opt)
	var r *options.Refusal
	must.True(t, errors.As(err, &r) && r.Code == options.ExitCannotRun, "%v", err)
	expect.Contains(t, r.Error(), "start it with dotnet (mono if it is for Mono): seedwalk record -- dotnet "+
		assembly+" --fast")
}

// /dev/full behaves like a full disk.
func TestFullDiskFallsBack(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("SKIPPED-CHECK: no /dev/full")
	}
	opt, said := fakeRun(t, "exit")
	t.Setenv("TMPDIR", tempdir.New(t))
	opt.Outputs = []options.Output{{Path: "/dev/full", Format: plain}}
	res := mustRun(t, opt)
	w := res.Written[0]
	must.True(t, w.Err != nil && strings.HasPrefix(w.Path, os.TempDir()) &&
		strings.Contains(content(t, w.Path), "x10"), "%+v", w)
	want := "cannot write /dev/full: no space left on device; the result is in " + w.Path
	expect.True(t, said.String() == want, "said %q, want %q", said, want)
	expect.Equal(t, res.ExitCode, 3, "exit code")
}

// The directory vanishes while the command runs.
func TestVanishedDirectoryFallsBack(t *testing.T) {
	dir := filepath.Join(tempdir.New(t), "gone")
	os.Mkdir(dir, 0o755)
	opt, said := fakeRun(t, "exit")
	t.Setenv("TMPDIR", tempdir.New(t))
	opt.Outputs = []options.Output{{Path: filepath.Join(dir, "a.plain"), Format: plain}}
	opt.Command = []string{"/bin/sh", "-c", "rmdir " + dir + "; exec " + os.Args[0]}
	res := mustRun(t, opt)
	expect.True(t, res.Written[0].Path != "" && strings.Contains(said.String(), "no such file") &&
		strings.HasSuffix(res.Written[0].Path, "a.plain"), "%+v, said %q", res.Written, said)
}

// A tool that may open too few files reports that, and does not start the command.
func TestFewFiles(t *testing.T) {
	var limit unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	for _, c := range []struct {
		limit uint64
		want  string
	}{{127, "seedwalk may open 127 files, and needs 128"}, {128, ""}} {
		must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: c.limit, Max: limit.Max}))
		opt, _ := fakeRun(t, "exit")
		_, err := Run(opt)
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%d files: %v", c.limit, err)
		}
	}
}

// If nothing else is known, the line names the two likely reasons, and the command that finds them.
func TestNeverConnectedIsShort(t *testing.T) {
	library := must.Get(filepath.Glob("../../sample/probe/lib/" + runtime.GOARCH + "/*.so"))(t)
	must.True(t, len(library) > 0, "no probe for %s", runtime.GOARCH)
	opt, said := fakeRun(t, "silent")
	opt.Profiler = library[0]
	mustRun(t, opt)
	expect.True(t, strings.HasSuffix(said.String(), "try `seedwalk doctor -- "+opt.Command[0]+"`") &&
		len(said.String())-len(opt.Command[0]) < 250, "said %q", said)
}

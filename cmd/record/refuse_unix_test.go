//go:build unix

package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const notExecutable = "permission denied"

func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED-CHECK: root may write anywhere")
	}
	dir := tempdir.New(t)
	os.Chmod(dir, 0o500)
	if r := checkWritable(filepath.Join(dir, "x")); r == nil || !strings.Contains(r.Error(), "permission denied") {
		t.Errorf("got %v", r)
	}
}

// /dev/full is a disk without room.
func TestFullDiskFallsBack(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("SKIPPED-CHECK: no /dev/full")
	}
	opt, said := options(t, "exit")
	t.Setenv("TMPDIR", tempdir.New(t))
	opt.Outputs = []Output{{"/dev/full", plain}}
	res := mustRun(t, opt)
	w := res.Written[0]
	if w.Err == nil || !strings.HasPrefix(w.Path, os.TempDir()) || !strings.Contains(content(t, w.Path), "x10") {
		t.Fatalf("%+v", w)
	}
	if want := "cannot write /dev/full: no space left on device; the result is in " + w.Path; said.String() != want {
		t.Errorf("said %q, want %q", said, want)
	}
	if res.ExitCode != 3 {
		t.Errorf("exit code %d", res.ExitCode)
	}
}

// The directory vanishes while the command runs.
func TestVanishedDirectoryFallsBack(t *testing.T) {
	dir := filepath.Join(tempdir.New(t), "gone")
	os.Mkdir(dir, 0o755)
	opt, said := options(t, "exit")
	t.Setenv("TMPDIR", tempdir.New(t))
	opt.Outputs = []Output{{filepath.Join(dir, "a.plain"), plain}}
	opt.Command = []string{"/bin/sh", "-c", "rmdir " + dir + "; exec " + os.Args[0]}
	res := mustRun(t, opt)
	if res.Written[0].Path == "" || !strings.Contains(said.String(), "no such file") || !strings.HasSuffix(res.Written[0].Path, "a.plain") {
		t.Errorf("%+v, said %q", res.Written, said)
	}
}

// /proc is there and takes no file (ENOENT): the advice must not be to make it.
func TestNoFileInProc(t *testing.T) {
	r := checkWritable("/proc/x.html")
	if r == nil || strings.Contains(r.Remedy, "mkdir") || !strings.Contains(r.Remedy, "--output") {
		t.Errorf("%v", r)
	}
}

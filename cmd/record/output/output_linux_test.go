package output

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// In a shared folder, others may have made a link with the name of the growing file. Its target stays
// as it is.
func TestPartialLink(t *testing.T) {
	dir := tempdir.New(t)
	others, out := filepath.Join(dir, "others"), filepath.Join(dir, "a.swrec")
	must.Do(t, os.WriteFile(others, []byte("theirs"), 0o600))
	must.Do(t, os.Symlink(others, out+partialSuffix))
	f := must.Get(openRecording(options.Output{Path: out}, nil))(t)
	f.Begin(&collect.Info{})
	w := f.Finish(&collect.Info{}, nil)
	b, err := os.ReadFile(others)
	expect.True(t, w.Err == nil && w.Path == out && err == nil && string(b) == "theirs", "%v, %q, %v, %q",
		w.Err, w.Path, err, b)
}

// Two recordings with one output: the second is refused, and the first is complete. A file that a killed tool
// has left is replaced.
func TestTwoRecordings(t *testing.T) {
	out := options.Output{Path: filepath.Join(tempdir.New(t), "a.swrec"), Format: export.RecordingFile}
	must.Do(t, os.WriteFile(out.Path+partialSuffix, []byte("left"), 0o600))
	first := must.Get(openRecording(out, nil))(t)
	for range 2 {
		_, err := OpenRecordings([]options.Output{out}, nil)
		expect.True(t, err != nil && strings.Contains(err.Error(), errBusy.Error()), "the second: %v", err)
	}
	first.Begin(&collect.Info{})
	w := first.Finish(&collect.Info{}, nil)
	b, err := os.ReadFile(out.Path)
	expect.True(t, w.Err == nil && w.Path == out.Path && err == nil && len(b) > 0 && string(b) != "left",
		"%v, %q, %v, %q", w.Err, w.Path, err, b)
	must.Get(openRecording(out, nil))(t).Drop()
	must.Get(openRecording(out, nil))(t).Drop()
}

// On a file system without locks, a second recording replaces the growing file of the first one. The first
// one then fails at its end. It must not rename the second one's file.
func TestTwoRecordingsWithoutLocks(t *testing.T) {
	out := options.Output{Path: filepath.Join(tempdir.New(t), "a.swrec")}
	first := must.Get(openRecording(out, nil))(t)
	must.Do(t, os.Remove(out.Path+partialSuffix)) // the second recording does so without locks
	second := must.Get(openRecording(out, nil))(t)
	first.Begin(&collect.Info{})
	w := first.Finish(&collect.Info{}, nil)
	expect.True(t, errors.Is(w.Err, errBusy) && w.Path == "", "the first: %v, %q", w.Err, w.Path)
	second.Begin(&collect.Info{})
	w = second.Finish(&collect.Info{}, nil)
	expect.True(t, w.Err == nil && w.Path == out.Path, "the second: %v, %q", w.Err, w.Path)
}

// If there is no descriptor for the lock, neither the file nor its descriptor is left behind.
func TestPartialWithoutDescriptors(t *testing.T) {
	out := options.Output{Path: filepath.Join(tempdir.New(t), "a.swrec")}
	must.Get(openRecording(out, nil))(t).Drop() // some descriptors are opened only the first time
	limit := unix.Rlimit{}
	must.Do(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	free := must.Get(unix.Dup(0))(t) // the lowest number, for the file
	few := unix.Rlimit{Cur: uint64(free) + 1, Max: limit.Max}
	unix.Close(free)
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	_, err := openRecording(out, nil)
	after, err2 := unix.Dup(0)
	must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	unix.Close(after)
	expect.True(t, errors.Is(err, unix.EMFILE) && err2 == nil && after == free, "%v, %v", err, err2)
	_, err = os.Lstat(out.Path + partialSuffix)
	expect.True(t, errors.Is(err, os.ErrNotExist), "left behind: %v", err)
}

func TestNoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED-CHECK: root may write anywhere")
	}
	dir := tempdir.New(t)
	os.Chmod(dir, 0o500)
	r := CheckWritable(filepath.Join(dir, "x"))
	expect.True(t, r != nil && strings.Contains(r.Error(), "permission denied"), "got %v", r)
}

// No file can be created in /proc (ENOENT): the advice must not be to make that directory.
func TestNoFileInProc(t *testing.T) {
	r := CheckWritable("/proc/x.html")
	expect.True(t, r != nil && !strings.Contains(r.Remedy, "mkdir") && strings.Contains(r.Remedy, "--output"),
		"%v", r)
}

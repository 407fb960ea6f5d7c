package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

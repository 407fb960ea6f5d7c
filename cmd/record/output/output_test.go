package output

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestWriteReplacesWhole(t *testing.T) {
	dir := tempdir.New(t)
	path, link := filepath.Join(dir, "out"), filepath.Join(dir, "link")
	os.WriteFile(path, []byte("old"), 0o640)
	if runtime.GOOS == "windows" {
		link = path // links want rights of their own there
	} else {
		os.Symlink(path, link)
	}
	read := func(path string) string { b, _ := os.ReadFile(path); return string(b) }
	f := New()
	boom := errors.New("boom")
	err := f.Write(link, func(w io.Writer) error { io.WriteString(w, "half"); return boom })
	expect.True(t, err == boom && read(path) == "old", "a failed write: %v, content %q", err, read(path))
	err = f.Write(link, func(w io.Writer) error {
		_, err := io.WriteString(w,
			"new")
		return err
	})
	expect.True(t, err == nil && read(path) == "new", "%v, content %q", err, read(path))
	left, _ := os.ReadDir(dir)
	if runtime.GOOS == "windows" {
		expect.Equal(t, len(left), 1, "files %v", left)
		return // no modes either
	}
	info, _ := os.Lstat(link)
	expect.True(t, info.Mode()&os.ModeSymlink != 0 && len(left) == 2,
		"link %v, files %v", info.Mode(), left)
	info, _ = os.Stat(path)
	expect.True(t, info.Mode().Perm() == 0o640, "mode %v", info.Mode())
}

// If the recording file was moved while it grew, the recording fails: its new place is unknown.
func TestMovedPartial(t *testing.T) {
	for name, moved := range map[string]bool{"kept": false, "moved": true} {
		out := filepath.Join(tempdir.New(t), "a.swrec")
		f := must.Get(openRecording(options.Output{Path: out}, nil))(t)
		f.Begin(&collect.Info{})
		if moved {
			if os.Rename(out+partialSuffix, out+".elsewhere") != nil {
				f.Finish(&collect.Info{}, nil) // closes the file
				t.Skip("SKIPPED-CHECK: an open file cannot be moved here")
			}
		}
		want := out
		if moved {
			want = ""
		}
		w := f.Finish(&collect.Info{}, nil)
		expect.True(t, w.Path == want && (w.Err != nil) == moved, "%s: %q, %v", name, w.Path, w.Err)
	}
}

// Recordings that began at different times flush together.
func TestFlushTogether(t *testing.T) {
	early, late := time.Unix(100, 1), time.Unix(100, int64(flushEvery)-1)
	expect.Equal(t, early.Add(untilFlush(early)), late.Add(untilFlush(late)), "moments of the flush")
	expect.Equal(t, untilFlush(time.Unix(100, 0)), flushEvery, "pause after a flush")
}

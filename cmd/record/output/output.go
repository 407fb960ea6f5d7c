// Package output writes the results of a recording.
//
// Sources: rename(2); FlushFileBuffers and MoveFileEx of Windows.
//
// Glossary. A fallback is another folder for a file that cannot be written to its place.
//
// Strategy. A file is written beside its place and renamed, so that a reader never sees half
// of it. A recording file grows while the recording runs, under a name of its own.
//
// Known gaps: a pipe or a device is written to directly, and may get a part.
package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/seedwalk/seedwalk/cmd/record/options"
)

// Files writes each output to a temporary file beside its place and renames it. It knows
// which temporary files to remove if the tool must quit.
type Files struct {
	mu   sync.Mutex
	temp map[string]bool
	own  map[string]bool // fallback files this run made, which it may replace
}

func New() *Files { return &Files{temp: map[string]bool{}, own: map[string]bool{}} }

// RemoveAll removes the temporary files of unfinished writes.
func (f *Files) RemoveAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path := range f.temp {
		os.Remove(path)
	}
}

func (f *Files) track(path string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on {
		f.temp[path] = true
	} else {
		delete(f.temp, path)
	}
}

// Write replaces path with the content that fill writes, whole or not at all. A pipe or a
// device (/dev/stdout) is written to directly.
func (f *Files) Write(path string, fill func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeDirect(path, fill)
	}
	// A rename replaces a symbolic link itself; the user means its target.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	f.track(t.Name(), true)
	defer f.track(t.Name(), false)
	defer os.Remove(t.Name()) // fails after the rename, as it should
	if err := fillFile(t, fill); err != nil {
		return err
	}
	if err := os.Chmod(t.Name(), modeFor(path)); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}

func writeDirect(path string, fill func(io.Writer) error) error {
	t, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return fillFile(t, fill)
}

func fillFile(t *os.File, fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(t, 1<<16)
	err := fill(b)
	if err == nil {
		err = b.Flush()
	}
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	return err
}

// modeFor returns the mode of the file that is replaced, or the usual mode of a new file.
func modeFor(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return newMode()
}

// probeBytes is what checkWritable writes: enough to meet a full disk.
const probeBytes = 1 << 16

// CheckWritable returns why an output could not be written at the end, nil if no obstacle is known.
func CheckWritable(path string) *options.Refusal {
	if path == "-" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return options.Refuse(path, "is a directory", "name a file in it")
	} else if err == nil && !info.Mode().IsRegular() {
		return nil
	} else if err == nil {
		if err := replaceError(path); err != nil {
			return options.Refuse(path, "cannot be replaced: "+options.Reason(err),
				"close the program that has it open, or choose another name with --output")
		}
	}
	dir := filepath.Dir(path)
	t, err := os.CreateTemp(dir, ".seedwalk-probe.*")
	if err != nil {
		return &options.Refusal{What: "cannot write: " + options.Reason(err), Where: path,
			Remedy: remedy(err, dir), Code: options.ExitRefused, Err: err}
	}
	os.Remove(t.Name()) // nothing stays if a signal ends us
	err = fillFile(t, func(w io.Writer) error { _, err := w.Write(make([]byte, probeBytes)); return err })
	os.Remove(t.Name()) // on Windows, an open file cannot be removed
	if err != nil {
		return &options.Refusal{What: "cannot write: " + options.Reason(err), Where: path,
			Remedy: remedy(err, dir), Code: options.ExitRefused, Err: err}
	}
	return nil
}

func remedy(err error, dir string) string {
	switch {
	case errors.Is(err, os.ErrNotExist) && !isDir(dir): // in /proc no file can be made, which is ENOENT too
		return "make the directory first: " + MakeFolder + dir
	case errors.Is(err, os.ErrPermission), readOnly(err):
		return "choose a directory you may write to with --output"
	case noSpace(err):
		return "free some space or choose another disk with --output"
	}
	return "choose another place with --output"
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Save writes one output. If that fails, it tries other directories, so that samples are not
// lost. Path of the result is "" if all fail.
func (f *Files) Save(o options.Output, stdout io.Writer, fill func(io.Writer) error) options.Written {
	w := options.Written{Output: o, Path: o.Path}
	if o.Path == "-" {
		if w.Err = fill(stdout); w.Err == nil {
			return w
		}
	} else if w.Err = f.Write(o.Path, fill); w.Err == nil {
		return w
	}
	for _, dir := range fallbackDirs() {
		path := filepath.Join(dir, fallbackName(o))
		if _, err := os.Lstat(path); err == nil && !f.own[path] {
			continue // never replace another program's file
		}
		if f.Write(path, fill) == nil {
			f.own[path] = true
			w.Path = path
			return w
		}
	}
	w.Path = ""
	return w
}

func fallbackName(o options.Output) string {
	base := filepath.Base(o.Path)
	if o.Path == "-" {
		base = "profile"
	}
	return fmt.Sprintf("seedwalk-%d-%s", os.Getpid(), base)
}

func fallbackDirs() []string {
	dirs := append([]string{os.TempDir()}, moreFallbackDirs...)
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home)
	}
	if wd, err := os.Getwd(); err == nil {
		dirs = append(dirs, wd)
	}
	return dirs
}

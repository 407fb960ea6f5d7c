package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// files writes outputs beside their place and renames them, and knows which
// temporary files to take away if the tool must quit in the middle.
type files struct {
	mu   sync.Mutex
	temp map[string]bool
	own  map[string]bool // fallback files this run made, which it may replace
}

func newFiles() *files { return &files{temp: map[string]bool{}, own: map[string]bool{}} }

// removeAll takes away what an unfinished write left.
func (f *files) removeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path := range f.temp {
		os.Remove(path)
	}
}

func (f *files) track(path string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on {
		f.temp[path] = true
	} else {
		delete(f.temp, path)
	}
}

// write gives path the content that fill writes, whole or not at all. What is
// there and is no regular file (a pipe, /dev/stdout) is written to directly.
func (f *files) write(path string, fill func(io.Writer) error) error {
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

// modeFor keeps the mode of a file that is replaced; a new one is readable by
// all that the umask lets, as with any other tool's output.
func modeFor(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return newMode()
}

// probeBytes is what checkWritable writes: enough to meet a full disk.
const probeBytes = 1 << 16

// checkWritable says before the start what would stop an output at the end.
func checkWritable(path string) *Refusal {
	if path == "-" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &Refusal{What: "is a directory", Where: path, Remedy: "name a file in it", Code: ExitRefused}
	} else if err == nil && !info.Mode().IsRegular() {
		return nil
	} else if err == nil {
		if err := replaceError(path); err != nil {
			return &Refusal{What: "cannot be replaced: " + reason(err), Where: path, Remedy: "close the program that has it open, or choose another name with --output", Code: ExitRefused}
		}
	}
	dir := filepath.Dir(path)
	t, err := os.CreateTemp(dir, ".seedwalk-probe.*")
	if err != nil {
		return &Refusal{What: "cannot write: " + reason(err), Where: path, Remedy: remedy(err, dir), Code: ExitRefused}
	}
	defer os.Remove(t.Name())
	err = fillFile(t, func(w io.Writer) error { _, err := w.Write(make([]byte, probeBytes)); return err })
	if err != nil {
		return &Refusal{What: "cannot write: " + reason(err), Where: path, Remedy: remedy(err, dir), Code: ExitRefused}
	}
	return nil
}

// reason is an error without the path that os puts before it, and without the
// full stop that Windows puts after it.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return strings.TrimRight(err.Error(), ".\r\n ")
}

func remedy(err error, dir string) string {
	switch {
	case errors.Is(err, os.ErrNotExist) && !isDir(dir): // in /proc no file can be made, which is ENOENT too
		return "make the directory first: " + makeFolder + dir
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

// save writes one output, and where that fails tries other directories, so
// that samples are not lost for the want of a place.
func (f *files) save(o Output, stdout io.Writer, fill func(io.Writer) error) Written {
	w := Written{Output: o, Path: o.Path}
	if o.Path == "-" {
		if w.Err = fill(stdout); w.Err == nil {
			return w
		}
	} else if w.Err = f.write(o.Path, fill); w.Err == nil {
		return w
	}
	for _, dir := range fallbackDirs() {
		path := filepath.Join(dir, fallbackName(o))
		if _, err := os.Lstat(path); err == nil && !f.own[path] {
			continue // never over what is there
		}
		if f.write(path, fill) == nil {
			f.own[path] = true
			w.Path = path
			return w
		}
	}
	w.Path = ""
	return w
}

func fallbackName(o Output) string {
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

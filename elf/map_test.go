package elf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// A mapped image is the same image as one that was read.
func TestMap(t *testing.T) {
	exe := must.Get(os.Executable())(t)
	a := must.Get(Map(exe))(t)
	b := must.Get(Open(exe))(t)
	if a.Entry() != b.Entry() || a.BuildID() != b.BuildID() || len(a.Segments()) != len(b.Segments()) {
		t.Errorf("mapped %#x %q, read %#x %q", a.Entry(), a.BuildID(), b.Entry(), b.BuildID())
	}
	x, ok1 := a.BytesAt(a.Entry(), 16)
	y, ok2 := b.BytesAt(b.Entry(), 16)
	if !ok1 || !ok2 || string(x) != string(y) {
		t.Error("the code at the entry point differs")
	}
}

func TestMapRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o644))
	for _, path := range []string{empty, dir} {
		if _, err := Map(path); err == nil {
			t.Errorf("%s was taken for an image", path)
		}
	}
	if _, err := Map(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

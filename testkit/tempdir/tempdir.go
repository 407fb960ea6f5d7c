// Package tempdir gives tests a directory of their own that can be removed under
// Wine 8 too. The removal by package testing fails there. Go asks for
// FileDispositionInformationEx, and Wine answers STATUS_NOT_IMPLEMENTED. After
// that answer, Go does not fall back to the older FileDispositionInformation.
package tempdir

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// New is testing.TB.TempDir.
func New(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "windows" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("", "seedwalk-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, dir) })
	return dir
}

// remove deletes one file after the other, what is deepest first.
func remove(t testing.TB, dir string) {
	var all []string
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		all = append(all, path)
		return nil
	})
	for _, path := range slices.Backward(all) {
		os.Chmod(path, 0o700) // what is read-only is not deleted
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

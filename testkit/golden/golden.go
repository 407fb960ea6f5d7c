// Package golden compares output with files that a person has checked.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Update reports whether the files are to be rewritten: go test -update.
var Update = flag.Bool("update", false, "write the golden files again")

// Check compares got with the file at path, and writes the file first with -update.
func Check[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *Update {
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != string(got) {
		t.Errorf("%s differs (%v); run with -update and look at the change; got:\n%s", path, err, string(got))
	}
}

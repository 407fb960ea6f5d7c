// Package golden compares output with files that a person has checked.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	if err != nil {
		t.Errorf("%v; run this test with -update, and inspect the file", err)
	} else if string(want) != string(got) {
		t.Errorf("%s differs; run this test with -update, and inspect the change\n%s", path,
			difference(string(want), string(got)))
	}
}

// shownLines and shownBytes bound the text that a message quotes.
const shownLines, shownBytes = 10, 2000

// difference describes where two texts begin to differ.
func difference(want, got string) string {
	a, b, n := strings.Split(want, "\n"), strings.Split(got, "\n"), 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return fmt.Sprintf("from line %d on, want:\n%s\ngot:\n%s", n+1, excerpt(a[n:]), excerpt(b[n:]))
}

func excerpt(lines []string) string {
	s := strings.Join(lines[:min(len(lines), shownLines)], "\n")
	return s[:min(len(s), shownBytes)]
}

// Package must ends a test at the first error or difference, in one line.
package must

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Do ends the test with err, unless it is nil.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper() // not before: it takes a lock, and loops call Do
		t.Fatal(err)
	}
}

// Get takes the results of a call, then the test: v := must.Get(f())(t). It returns v, or ends the test with
// err.
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Equal is expect.Equal, but a difference ends the test.
func Equal[T comparable](t testing.TB, got, want T, about ...any) {
	if got != want {
		t.Helper()
		t.Fatal(expect.Difference(got, want, about))
	}
}

// Slices is expect.Slices, but a difference ends the test.
func Slices[T comparable](t testing.TB, got, want []T, about ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Fatal(expect.Difference(got, want, about))
	}
}

// True is expect.True, but ends the test.
func True(t testing.TB, ok bool, format string, values ...any) {
	if !ok {
		t.Helper()
		t.Fatalf(format, values...)
	}
}

// Run runs a command and returns its output. It ends the test, with that output, if the command fails.
func Run(t testing.TB, cmd *exec.Cmd) string {
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Helper()
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

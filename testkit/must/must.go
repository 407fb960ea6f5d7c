// Package must ends a test at the first error or difference, in one line.
package must

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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

// Mappings counts the mappings of this process whose line in /proc/self/maps contains text. Linux only.
func Mappings(t testing.TB, text string) int {
	t.Helper()
	return strings.Count(string(Get(os.ReadFile("/proc/self/maps"))(t)), text)
}

// Unmap waits until the garbage collector has ended such mappings, except n.
func Unmap(t testing.TB, text string, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); Mappings(t, text) > n && time.Now().Before(end); {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	Equal(t, Mappings(t, text), n, "mappings of "+text)
}

// Package must ends a test at the first error, in one line.
package must

import "testing"

// Do ends the test with err, unless it is nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get takes the results of a call, then the test: v := must.Get(f())(t). It returns v, or ends the test with
// err.
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

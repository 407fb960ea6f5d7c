// Package cmptest shows how two values differ, including unexported fields. It uses go-cmp.
package cmptest

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Diff lists what only want has (-) and what only got has (+); "" if they are the same.
func Diff(want, got any) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
}

// Same is expect.Equal for values of any type.
func Same(t testing.TB, want, got any, about ...any) {
	if d := Diff(want, got); d != "" {
		t.Helper()
		t.Errorf("%s-want +got:\n%s", expect.Subject(about), d)
	}
}

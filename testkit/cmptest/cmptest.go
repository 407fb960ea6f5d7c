// Package cmptest shows how two values differ, for tests of packages whose types
// have fields of their own: go-cmp, which looks into all of them.
package cmptest

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
)

// Diff is what of want is not in got (-) and the other way round (+); "" if they
// are the same.
func Diff(want, got any) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
}

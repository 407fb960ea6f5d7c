// Package cmptest shows how two values differ, including unexported fields. It uses go-cmp.
package cmptest

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
)

// Diff lists what only want has (-) and what only got has (+); "" if they are the same.
func Diff(want, got any) string {
	return cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }))
}

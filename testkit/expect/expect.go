// Package expect compares a result with what a test wants. A test goes on after a difference; package must
// ends it.
package expect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Equal reports an error unless got is want. about says what was compared: nothing, one value, or a format
// and its values.
func Equal[T comparable](t testing.TB, got, want T, about ...any) {
	if got != want {
		t.Helper() // not before: it takes a lock, and loops call Equal
		t.Error(Difference(got, want, about))
	}
}

// Slices is like Equal, and compares two slices element by element.
func Slices[T comparable](t testing.TB, got, want []T, about ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Error(Difference(got, want, about))
	}
}

// True reports an error unless ok is true. The format and its values say what is wrong; go vet checks them.
func True(t testing.TB, ok bool, format string, values ...any) {
	if !ok {
		t.Helper()
		t.Errorf(format, values...)
	}
}

// Figures logs what a test has measured. It reports the same text as an error unless ok is true.
func Figures(t testing.TB, ok bool, format string, values ...any) {
	t.Helper()
	if ok {
		t.Logf(format, values...)
	} else {
		t.Errorf(format, values...)
	}
}

// Contains reports the parts that are missing in s.
func Contains(t testing.TB, s string, parts ...string) {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			t.Helper()
			t.Errorf("%q is missing in:\n%s", part, s)
		}
	}
}

// Difference is the message of a comparison that failed.
func Difference(got, want any, about []any) string {
	return fmt.Sprintf("%sgot %s, want %s", Subject(about), text(got), text(want))
}

// Subject prints what was compared, and a colon.
func Subject(about []any) string {
	switch len(about) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%+v: ", about[0])
	}
	return fmt.Sprintf(about[0].(string), about[1:]...) + ": "
}

// text prints addresses in hexadecimal too, and marks the bounds of a text of one line.
func text(v any) string {
	switch v := v.(type) {
	case uint64, uint32, uintptr:
		return fmt.Sprintf("%d (%#[1]x)", v)
	case []byte:
		return fmt.Sprintf("% x", v)
	case string:
		if strings.Contains(v, "\n") {
			return "\n" + v
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}

package cli

import (
	"testing"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"record", "doctor", "info", "replay", "sim", "help", "version"}
	for _, c := range []struct{ word, want string }{
		{"recrd", "; did you mean record?"},
		{"rekord", "; did you mean record?"},
		{"recrod", "; did you mean record?"},
		{"docter", "; did you mean doctor?"},
		{"inof", "; did you mean info?"},
		{"x", ""},
		{"attach", ""},
		{"", ""},
		{"recorddddddddddddddddddddddddddddddddddddddddddddd", ""},
	} {
		if got := DidYouMean(c.word, known); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
}

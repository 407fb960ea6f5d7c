package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// --symbols takes folders, and addresses of symbol servers. Those of the environment are taken only
// if --symbols asks for them.
func TestSymbols(t *testing.T) {
	dir := tempdir.New(t)
	t.Setenv("DEBUGINFOD_URLS", "https://a.example/ http://b.example/x")
	for _, c := range []struct {
		value, want string
		urls        []string
	}{
		{dir, "", nil},
		{dir + "," + dir, "", nil},
		{"https://example.com/symbols/", "", []string{"https://example.com/symbols"}},
		{dir + ",http://127.0.0.1:1", "", []string{"http://127.0.0.1:1"}},
		{"debuginfod", "", []string{"https://a.example", "http://b.example/x"}},
		{"ftp://example.com", "not an http or https address", nil},
		{filepath.Join(dir, "missing"), "not a readable folder", nil},
		{"", "not a readable folder", nil},
	} {
		var l SymbolList
		err := l.Set(c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.value, err, c.want)
		}
		_, urls := l.split()
		expect.True(t, slices.Equal(urls, c.urls), "%q: servers %q, want %q", c.value, urls, c.urls)
	}
	t.Setenv("DEBUGINFOD_URLS", "")
	expect.True(t, new(SymbolList).Set("debuginfod") != nil, "debuginfod without servers")
}

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
		expect.Equal(t, DidYouMean(c.word, known), c.want, "%q", c.word)
	}
}

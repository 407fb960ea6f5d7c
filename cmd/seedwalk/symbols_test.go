package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A server is never asked: --symbols takes folders only.
func TestSymbolsAreFolders(t *testing.T) {
	dir := tempdir.New(t)
	for _, c := range []struct{ value, want string }{
		{dir, ""},
		{dir + "," + dir, ""},
		{"https://example.com/symbols", "connects to no server"},
		{dir + ",http://127.0.0.1:1", "connects to no server"},
		{filepath.Join(dir, "missing"), "no folder"},
		{"", "no folder"},
	} {
		var l symbolList
		err := l.Set(c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.value, err, c.want)
		}
	}
}

package session

import (
	"testing"

	"github.com/seedwalk/seedwalk/nettrace/clrevent"
)

// TestListsOfCompiledMethods: a runtime that unloads methods may die of listing the
// compiled ones, so that the end of a session that nobody keeps does not ask for them, nor
// does what is asked for again and again.
func TestListsOfCompiledMethods(t *testing.T) {
	const jit = clrevent.KeywordJIT
	for _, c := range []struct {
		name     string
		rundown  uint64
		compiled bool
	}{
		{"the first list", listKeywords, true},
		{"asked for again", precompiledKeywords, false},
		{"the end of a session", waitConfig(1, false).Rundown, false},
		{"the end of a trace that is kept", waitConfig(1, true).Rundown, true},
	} {
		if c.rundown&jit != 0 != c.compiled || c.rundown&clrevent.KeywordNGEN == 0 {
			t.Errorf("%s: keywords %#x", c.name, c.rundown)
		}
	}
}

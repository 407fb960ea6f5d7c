package session

import (
	"reflect"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
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
		{"the end of a session", waitConfig(1, false, false).Rundown, false},
		{"the end of a trace that is kept", waitConfig(1, true, false).Rundown, true},
		{"the end of the only session", waitConfig(1, false, true).Rundown, true},
	} {
		if c.rundown&jit != 0 != c.compiled || c.rundown&clrevent.KeywordNGEN == 0 {
			t.Errorf("%s: keywords %#x", c.name, c.rundown)
		}
	}
}

// TestRequest: what is asked for, to the bit, and never the rundown provider, which lists
// nothing at a session's start, whatever its keywords say.
func TestRequest(t *testing.T) {
	for _, keep := range []bool{false, true} {
		config := waitConfig(1, keep, false)
		want := []diagnostics.Provider{{Name: "Microsoft-Windows-DotNETRuntime", Keywords: 0x40000004000, Level: 5}}
		if keep { // with the thread pool's queue
			want[0].Keywords |= 0x10000
			want = append(want, diagnostics.Provider{Name: "System.Diagnostics.Eventing.FrameworkEventSource", Keywords: 2, Level: 5})
		}
		if !reflect.DeepEqual(config.Providers, want) || config.NoStacks {
			t.Errorf("kept %v: %+v", keep, config)
		}
		p := nameConfig(!keep).Providers
		if len(p) != 1 || p[0].Name != "Microsoft-Windows-DotNETRuntime" || p[0].Level != 4 || p[0].Keywords&0x10000 != 0 == keep {
			t.Errorf("names, kept %v: %+v", keep, p)
		}
	}
}

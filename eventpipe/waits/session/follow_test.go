package session

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// ended is a trace of a wait at an address that has no name.
func ended() []byte {
	w := nettracefile.New(nettracefile.Options{})
	w.Metadata(nettracefile.Meta{ID: 1, Provider: clrevent.Runtime, Event: 301},
		nettracefile.Meta{ID: 2, Provider: clrevent.Runtime, Event: 302})
	w.Stacks(1, []uint64{0x1010})
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 5, Time: 1, Stack: 1, Payload: make([]byte, 11)},
		nettracefile.Event{Meta: 2, Seq: 2, Thread: 5, Time: 9, Payload: make([]byte, 2)})
	return w.End().Bytes()
}

// listed is a list with a method there.
func listed() []byte {
	w := nettracefile.New(nettracefile.Options{}).Metadata(nettracefile.Meta{ID: 1,
		Provider: clrevent.Rundown, Event: 144, Version: 1})
	method := make([]byte, 36)
	method[17], method[24] = 0x10, 0xff // at 0x1000, 255 bytes
	method = append(method, 'A', 0, 0, 0, 'm', 0, 0, 0, 0, 0, 0, 0)
	return w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 5, Time: 1, Payload: method}).End().Bytes()
}

// TestListedAgain: where a wait ends at a place without a name, the list of methods is
// asked for again before the wait is told; where it has a name, it is not.
func TestListedAgain(t *testing.T) {
	for _, known := range []bool{false, true} {
		a := waits.New()
		if known {
			a.ReadNames(bytes.NewReader(listed()))
		}
		var waiting []string
		lists := 0
		f := newFollower(a, func(_ *waits.Wait, frames []waits.Frame) {
			waiting = append(waiting, frames[0].Name)
		})
		f.relist = func() {
			lists++
			a.ReadNames(bytes.NewReader(listed()))
		}
		a.OnWait = f.add
		must.Do(t, a.Read(bytes.NewReader(ended())))
		f.close()
		expect.True(t, len(waiting) == 1 && waiting[0] == "A.m" && (lists == 1) != known && lists <= 1,
			"known %v: %q after %d lists", known, waiting, lists)
	}
}

// TestListsOfCompiledMethods: a runtime that unloads methods may crash while it lists the
// compiled ones. So seedwalk requests that list only once, and not at the end of a session
// whose trace is not kept.
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
		expect.True(t, c.rundown&jit != 0 == c.compiled && c.rundown&clrevent.KeywordNGEN != 0,
			"%s: keywords %#x", c.name, c.rundown)
	}
}

// TestRequest: what is asked for, to the bit, and never the rundown provider, which lists
// nothing at a session's start, whatever its keywords say.
func TestRequest(t *testing.T) {
	for _, keep := range []bool{false, true} {
		config := waitConfig(1, keep, false)
		want := []diagnostics.Provider{{Name: "Microsoft-Windows-DotNETRuntime",
			Keywords: 0x40000004000, Level: 5}}
		if keep { // with the thread pool's queue
			want[0].Keywords |= 0x10000
			want = append(want, diagnostics.Provider{Name: "System.Diagnostics.Eventing.FrameworkEventSource",
				Keywords: 2, Level: 5})
		}
		expect.True(t, reflect.DeepEqual(config.Providers, want) && !config.NoStacks,
			"kept %v: %+v", keep, config)
		p := nameConfig(!keep).Providers
		expect.True(t, len(p) == 1 && p[0].Name == "Microsoft-Windows-DotNETRuntime" && p[0].Level == 4 &&
			p[0].Keywords&0x10000 != 0 != keep, "names, kept %v: %+v", keep, p)
	}
}

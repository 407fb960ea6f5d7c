package record

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sample/probe"
)

func TestEventNames(t *testing.T) {
	const all = probe.WaitEvents | probe.LockEvents | probe.AllocEvents | probe.ExceptionEvents
	for _, c := range []struct {
		names Events
		want  wanted
		bad   bool
	}{
		{"", wanted{cpu: true, wall: true}, false}, {"cpu", wanted{cpu: true}, false}, {"wall", wanted{wall: true}, false},
		{"cpu,wall,waits,locks,alloc,exception", wanted{true, true, all}, false}, {"exception,exception", wanted{events: probe.ExceptionEvents}, false},
		{"allocs", wanted{}, true}, {"cpu,", wanted{cpu: true}, true}, {",", wanted{}, true}, {"CPU", wanted{}, true},
	} {
		got, bad := c.names.parse()
		refused := (&Options{Events: c.names, Mode: ModeProbe}).checkEvents() != nil
		if !needsLibrary && c.want.events != 0 { // as on Windows
			refused = !refused
		}
		if refused != c.bad || bad != "" && !c.bad || got != c.want && !c.bad {
			t.Errorf("%q: %+v, %q, refused %v", c.names, got, bad, refused)
		}
	}
}

// Events need the probe: without one they are refused, by their names, and samples are
// not.
func TestEventsNeedTheProbe(t *testing.T) {
	o := Options{Events: "cpu,waits", Mode: ModeSnapshot, modeWhy: "there is no probe for this system"}
	r := o.checkEvents()
	if r == nil || !strings.Contains(r.Error(), "there is no probe for this system") || !strings.Contains(r.Error(), "--events cpu,waits") || r.Code != ExitRefused {
		t.Errorf("%v", r)
	}
	o = Options{Events: "locks", Outside: true}
	if r := o.chooseMode(); r == nil || !strings.Contains(r.Error(), "nothing of seedwalk is in the process") {
		t.Errorf("%v", r)
	}
	o.Mode = ModeSnapshot
	o.Events = "cpu,wall"
	if r := o.checkEvents(); r != nil {
		t.Error(r)
	}
}

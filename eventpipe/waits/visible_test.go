package waits

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// If waits cannot be seen, their absence means nothing, and the reason is known.
func TestUnseen(t *testing.T) {
	for _, c := range []struct {
		name           string
		major          uint16
		requested      bool
		locks, handles int64
		want           string
		blind          bool
	}{
		{"a trace of others without events", 9, false, 0, 0, "this trace has no wait events: recorded without the keyword WaitHandle", true},
		{"a trace of others with locks", 9, false, 5, 0, "waits for wait handles and tasks are not in this trace: recorded", false},
		{"a trace with waits", 9, false, 0, 5, "", false},
		{"a session", 9, true, 0, 0, "", false},
		{"a session, the version unknown", 0, true, 0, 0, "", false},
		{"a session of .NET 8", 8, true, 0, 0, "waits for wait handles and tasks are not in this trace: .NET 8 reports waits for locks only", true},
		{"a session of .NET 8 with locks", 8, true, 2, 0, "waits for wait handles and tasks are not in this trace: .NET 8 reports waits for locks only", false},
		{"a trace of .NET Core 3", 4, false, 0, 0, "this trace has no wait events: .NET Core 2 or 3 reports", true},
		{"a trace of .NET 8", 8, false, 0, 0, "this trace has no wait events: .NET 8 reports", true},
	} {
		a := New()
		a.Requested, a.Names.Runtime.Version[0] = c.requested, c.major
		for range c.locks {
			a.visible.count(clrevent.ContentionStop)
		}
		for range c.handles {
			a.visible.count(clrevent.WaitStart)
		}
		if got := a.Unseen(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || a.Blind() != c.blind {
			t.Errorf("%s: %q, blind %v", c.name, got, a.Blind())
		}
	}
}

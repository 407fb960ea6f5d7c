package waits

import (
	"fmt"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// firstWithWaits is the first major version of .NET whose runtime reports waits for wait handles and tasks
// (events 301 and 302).
const firstWithWaits = 9

// frameworkMajor is the version that .NET Core 2 and 3 report.
const frameworkMajor = 4

// visible counts evidence that a kind of wait was reported.
type visible struct{ locks, handles int64 }

func (v *visible) count(kind clrevent.Kind) {
	switch kind {
	case clrevent.ContentionStart, clrevent.ContentionStop:
		v.locks++
	case clrevent.WaitStart, clrevent.WaitStop:
		v.handles++
	}
}

// Unseen returns one line about the kinds of waits that the trace cannot show, and what the user can do. It
// returns "" if no such kind is known. Call it after Finish.
func (a *Analysis) Unseen() string {
	if a.visible.handles > 0 {
		return ""
	}
	what := "waits for wait handles and tasks are not in this trace"
	if a.visible.locks == 0 && !a.Requested {
		what = "this trace has no wait events"
	}
	if major := a.Names.Runtime.Version[0]; major > 0 && major < firstWithWaits {
		name := fmt.Sprintf(".NET %d", major)
		if major == frameworkMajor {
			name = ".NET Core 2 or 3"
		}
		return fmt.Sprintf("%s: %s reports waits for locks only, .NET %d and later report all", what, name,
			firstWithWaits)
	}
	if a.Requested {
		return ""
	}
	return what + ": recorded without the keyword WaitHandle, or no thread waited; record with: seedwalk waits --pid PID --keep FILE"
}

// Blind reports whether no wait was seen and the trace cannot show any: then the absence of waits means
// nothing.
func (a *Analysis) Blind() bool { return a.visible.locks == 0 && a.Unseen() != "" }

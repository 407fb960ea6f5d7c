package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// followLine is a line of JSON for a wait that ended.
type followLine struct {
	Time     string   `json:"time,omitempty"` // of the stop, RFC 3339
	Thread   uint64   `json:"thread"`
	Name     string   `json:"thread_name,omitempty"`
	Duration int64    `json:"duration_ns"`
	Kind     string   `json:"kind"`
	State    string   `json:"state"`
	Depth    uint8    `json:"depth"`
	Idle     bool     `json:"idle,omitempty"`
	Lock     string   `json:"lock,omitempty"`
	Owner    uint64   `json:"owner,omitempty"`
	Native   []string `json:"native,omitempty"`
	Stack    []string `json:"stack"`
}

// Follower returns a function that prints a line for each ended wait, as text or JSON. Text
// omits the idle waits of the thread pool.
func Follower(w io.Writer, a *waits.Analysis, asJSON bool) func(*waits.Wait, []waits.Frame) {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return func(v *waits.Wait, frames []waits.Frame) {
			e.Encode(followLine{clock(a, v, "2006-01-02T15:04:05.000Z07:00"), v.Thread,
				a.Names.ThreadName(v.Thread), v.Nanos, v.Kind.String(), v.State.String(), v.Depth,
				waits.Idle(frames), hex(v.LockID), v.Owner, names(a.Leaves(v.Native, v.Start)),
				names(a.Whole(v.Native, frames, v.Start))})
		}
	}
	return func(v *waits.Wait, frames []waits.Frame) {
		if waits.Idle(frames) || v.Depth > 0 {
			return
		}
		line := fmt.Sprintf("%s  thread %-8d %12s  %-12s", clock(a, v, "15:04:05.000"), v.Thread,
			bound(v.State)+span(v.Nanos), v.Kind)
		if v.State == waits.Unreliable {
			line = fmt.Sprintf("%s  thread %-8d %12s  %-12s", clock(a, v, "15:04:05.000"),
				v.Thread, "unreliable", v.Kind)
		}
		if v.Owner != 0 {
			line += fmt.Sprintf("  held by %d", v.Owner)
		}
		fmt.Fprintf(w, "%s  %s\n", line, fit(where(frames), 120))
	}
}

func clock(a *waits.Analysis, v *waits.Wait, layout string) string {
	if a.Trace.Start.IsZero() {
		return fmt.Sprintf("%.3f", a.At(v.Stop).Seconds())
	}
	return a.Trace.Time(v.Stop).Local().Format(layout)
}

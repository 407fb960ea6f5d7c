package options

import (
	"io"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// With events, the profiler library is in the process, and Way says so.
func TestWayWithEvents(t *testing.T) {
	for events, want := range map[Events]string{"": "nothing of seedwalk is in the process",
		"cpu,waits": "a library in the process copies the runtime's events"} {
		o := Options{Events: events, Mode: ModeProbe}
		must.Do(t, o.Unpack(nil))
		if f, ok := o.shared.(io.Closer); ok {
			defer f.Close()
		}
		way := o.Way()
		expect.True(t, strings.Contains(way, want), "events %q: %s", events, way)
		loads := strings.Contains(strings.Join(ChildEnviron(&o, "s"), " "), "CORECLR_PROFILER=")
		expect.Equal(t, loads, events != "", "events %q: the profiler is loaded", events)
	}
}

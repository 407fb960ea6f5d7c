package options

import (
	"io"
	"strings"
	"testing"
)

// With events, the profiler library is in the process, and Way says so.
func TestWayWithEvents(t *testing.T) {
	for events, want := range map[Events]string{"": "nothing of seedwalk is in the process",
		"cpu,waits": "a library in the process copies the runtime's events"} {
		o := Options{Events: events, Mode: ModeProbe}
		if err := o.Unpack(""); err != nil {
			t.Fatal(err)
		}
		if f, ok := o.shared.(io.Closer); ok {
			defer f.Close()
		}
		if way := o.Way(); !strings.Contains(way, want) {
			t.Errorf("events %q: %s", events, way)
		}
		loads := strings.Contains(strings.Join(ChildEnviron(&o, "s"), " "), "CORECLR_PROFILER=")
		if loads != (events != "") {
			t.Errorf("events %q: the profiler is loaded: %v", events, loads)
		}
	}
}

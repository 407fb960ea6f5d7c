package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// Beside a profiler of somebody else's that has a session of its own for the same events:
// each session has them, and each is counted once.
func TestEventsBesideSession(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	need(t, "out", "bin", "libseedwalk_probe.so")
	isMain := map[string]string{"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": secondID, "CORECLR_PROFILER_PATH": second}
	isBeside := map[string]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS": "1", "CORECLR_NOTIFICATION_PROFILERS": second + "=" + secondID + ";"}
	waits9, events9 := func(t *testing.T) []string { return app(t, "Waits") }, func(t *testing.T) []string { return app(t, "Events") }
	waits10, events10 := func(t *testing.T) []string { return []string{need(t, "out", "samples", "Waits10")} }, func(t *testing.T) []string { return []string{need(t, "out", "samples", "Events10")} }
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	for _, c := range []struct {
		name    string // what the other is
		env     map[string]string
		program func(t *testing.T) []string
		judge   func(t *testing.T, program []string)
	}{
		{"net9 main waits", isMain, waits9, waitsBeside},
		{"net10 beside waits", isBeside, waits10, waitsBeside},
		{"net9 beside allocations", isBeside, events9, allocationsBeside},
		{"net10 main allocations", isMain, events10, allocationsBeside},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			t.Setenv("SECOND_EVENTS", "1")
			c.judge(t, c.program(t))
		})
	}
}

func recordBeside(t *testing.T, events string, argv []string) (*eventsFile, result) {
	t.Helper()
	dir := tempdir.New(t)
	t.Setenv("SECOND_COUNTS", filepath.Join(dir, "counts"))
	file := filepath.Join(dir, "out.json")
	r := run(t, time.Minute, nil, append([]string{tool(t), "record", "--events", events, "--wait-min", "0", "--output", file, "--"}, argv...)...)
	if r.code != 7 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	if h := readHeard(t, filepath.Join(dir, "counts")); h.events < 100 {
		t.Errorf("the other's session gave it %d events", h.events)
	}
	return readEvents(t, file), r
}

func waitsBeside(t *testing.T, program []string) {
	f, r := recordBeside(t, "waits,locks", append(program, "mutex,monitor,many"))
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) < 20 {
		t.Fatalf("%d waits in the truth, %v", len(truth), err)
	}
	f.whole(t)
	f.judge(t, truth)
}

func allocationsBeside(t *testing.T, program []string) {
	f, r := recordBeside(t, "alloc,exception", program)
	f.whole(t)
	f.allocated(t, r.stdout, "Events", "Events.Part", "Events.All", "Events.Main")
}

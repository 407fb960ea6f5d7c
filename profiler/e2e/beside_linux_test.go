package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Class ids: of the second profiler, which is any.
const secondID = "{846F5F1C-F9AE-4B07-969E-05C26BC060D8}"

// heard are what the second profiler was told by the CLR.
type heard struct{ modules, methods, threads, collections, events uint64 }

func readHeard(t *testing.T, path string) (h heard) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) != 40 {
		t.Fatalf("the second profiler was not loaded: %d bytes, %v", len(b), err)
	}
	n := binary.LittleEndian.Uint64
	return heard{n(b), n(b[8:]), n(b[16:]), n(b[24:]), n(b[32:])}
}

// Beside a profiler of somebody else's, in either role and where it came first: both
// are served, and stacks are what the threads say of themselves.
func TestBesideAnother(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	isMain := map[string]string{"CORECLR_ENABLE_PROFILING": "1", "CORECLR_PROFILER": secondID, "CORECLR_PROFILER_PATH": second}
	isBeside := map[string]string{"CORECLR_ENABLE_NOTIFICATION_PROFILERS": "1", "CORECLR_NOTIFICATION_PROFILERS": second + "=" + secondID + ";"}
	app9 := func(t *testing.T, seconds string) []string { return app(t, "Truth", seconds) }
	app10 := func(t *testing.T, seconds string) []string {
		t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
		return []string{need(t, "out", "samples", "Truth10"), seconds}
	}
	for _, c := range []struct {
		name string // what the other profiler is
		env  map[string]string
		app  func(t *testing.T, seconds string) []string
		way  string
	}{
		{"net9 main", isMain, app9, "probe"},
		{"net9 beside", isBeside, app9, "probe"},
		{"net9 main suspended", isMain, app9, "snapshot"},
		{"net10 main", isMain, app10, "probe"},
		{"net10 beside", isBeside, app10, "probe"},
		{"net9 main attached", isMain, app9, "attach"},
		{"net10 main attached", isMain, app10, "attach"},
		{"net10 beside attached", isBeside, app10, "attach"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			argv := c.app(t, map[bool]string{true: "12", false: "4"}[c.way == "attach"])
			counts := filepath.Join(tempdir.New(t), "counts")
			t.Setenv("SECOND_COUNTS", counts)
			k := newChecker(t)
			var samples []*raw.Sample
			var rd *raw.Reader
			if c.way == "attach" {
				samples, rd = recordAttached(t, 5*time.Second, argv...)
			} else {
				var r result
				if samples, rd, r = recordBy(t, c.way, time.Minute, "100", argv...); r.code != 0 || r.stdout != "TRUTH DONE\n" {
					t.Errorf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
				}
			}
			k.methods = rd.Names()
			table := map[uint64]*tally{}
			k.compare(t, table, samples)
			checked, whole := 0, 0
			for _, row := range table {
				checked, whole = checked+row.checked, whole+row.complete
			}
			h := readHeard(t, counts)
			t.Logf("%d samples, %d whole, %d compared with their threads, %d wrong; the other heard %+v", len(samples), whole, checked, k.bad, h)
			if len(samples) < 60 || whole*100 < len(samples)*95 || checked < 40 {
				t.Error("too few samples")
			}
			if h.modules < 2 || h.methods < 30 || h.threads < 20 {
				t.Errorf("the other profiler heard only %+v", h)
			}
		})
	}
}

// recordAttached starts a program, and records it for a while when it runs.
func recordAttached(t *testing.T, d time.Duration, argv ...string) ([]*raw.Sample, *raw.Reader) {
	t.Helper()
	cmd, out := attached(t, argv...)
	file := filepath.Join(tempdir.New(t), "raw")
	r := run(t, time.Minute, nil, tool(t), "record", "--pid", fmt.Sprint(cmd.Process.Pid), "--rate", "100", "--duration", d.String(), "--raw", file,
		"--output", file+".json")
	if t.Log("\n" + r.stderr); r.code != 0 {
		t.FailNow()
	}
	samples, rd := readRaw(t, file, r.stderr)
	if err := cmd.Wait(); err != nil || out.String() != "TRUTH DONE\n" {
		t.Errorf("the program ended with %v and said %q", err, out)
	}
	return samples, rd
}

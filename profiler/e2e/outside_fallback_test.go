package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

// What a CLR exports about itself: its structures, and the table for debuggers from which
// they are supposed and proven where it does not publish them.
const published, debuggers = "DotNetRuntimeContractDescriptor", "g_dacTable"

// mutedRuntime is the pinned .NET 9, but its CLR does not export these names.
func mutedRuntime(t *testing.T, names ...string) string {
	t.Helper()
	from, to := runtime9(t), tempdir.New(t)
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "libcoreclr.so" {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(from, "libcoreclr.so"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !bytes.Contains(b, []byte(name)) {
			t.Fatalf("the CLR has no %s to hide", name)
		}
		b = bytes.ReplaceAll(b, []byte(name), []byte(strings.ToLower(name)))
	}
	if err := os.WriteFile(filepath.Join(to, "libcoreclr.so"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// A runtime that cannot be sampled from outside is sampled in the old way, in the
// same recording, and the summary says so. One that says nothing of itself, but whose
// structures can be proven by what runs, is sampled by the probe.
func TestProbeFallsBack(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	need(t, "out", "bin", "libseedwalk_profiler.so")
	for _, c := range []struct {
		name, way string
		hidden    []string
		says      string
	}{
		{"nothing to prove", "snapshot", []string{published, debuggers}, "its runtime does not publish its structures"},
		{"proven", "probe", []string{published}, "never suspended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, p, b := fallback(t, c.hidden)
			if c.way == "probe" && p.Stats.Samples < 20 { // once of some twenty runs, on a busy machine: two samples
				t.Logf("only %d samples; once more", p.Stats.Samples)
				r, p, b = fallback(t, c.hidden)
			}
			s := p.Stats
			if r.code != 0 || s.Way != c.way || s.Samples < 20 || s.Complete*10 < s.Samples*9 {
				t.Errorf("code %d, %+v", r.code, s)
			}
			biased := strings.Contains(r.stderr, "biased to safe points")
			if !strings.Contains(s.WayWhy, c.says) || biased != (c.way == "snapshot") || !bytes.Contains(b, []byte("Demo.Recursion")) {
				t.Errorf("it says %q; or there are no names", s.WayWhy)
			}
		})
	}
}

// taken is what a recording says of its way.
type taken struct {
	Stats struct {
		Way               string
		WayWhy            string `json:"way_why"`
		Samples, Complete int
	}
}

// fallback records a program on a CLR that does not export some names.
func fallback(t *testing.T, hidden []string) (r result, p taken, text []byte) {
	t.Helper()
	out := filepath.Join(tempdir.New(t), "out.json")
	r = run(t, 2*time.Minute, nil, tool(t), "record", "--output", out, "--", need(t, "out", "bin", "swhost"), mutedRuntime(t, hidden...),
		need(t, "out", "samples", "Demo.exe"), "4")
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.stderr)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + r.stderr)
	return r, p, text
}

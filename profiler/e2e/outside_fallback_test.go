package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

// mutedRuntime is the pinned .NET 9, but its CLR does not publish its structures,
// as those before it, nor the table from which they are supposed where it does not.
func mutedRuntime(t *testing.T) string {
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
	for _, name := range []string{"DotNetRuntimeContractDescriptor", "g_dacTable"} {
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
// same recording, and the summary says so.
func TestProbeFallsBack(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	need(t, "out", "bin", "libseedwalk_profiler.so")
	out := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, 2*time.Minute, nil, tool(t), "record", "--output", out, "--", need(t, "out", "bin", "swhost"), mutedRuntime(t),
		need(t, "out", "samples", "Demo.exe"), "2")
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.stderr)
	}
	if r.code != 0 || !strings.Contains(r.stderr, "snapshot, since its runtime does not publish") || !bytes.Contains(b, []byte("Demo.Recursion")) {
		t.Errorf("code %d, %d bytes\n%s", r.code, len(b), r.stderr)
	}
}

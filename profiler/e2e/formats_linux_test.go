package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Each format made later from a recording, by report and by convert, is byte for byte the one that record
// wrote, though the recorded program has ended.
func TestFormatsOfRecording(t *testing.T) {
	dir := tempdir.New(t)
	names := []string{"pb.gz", "folded", "speedscope.json", "firefox.json", "trace.json", "otlp", "otlp.json", "json", "html"}
	kept := filepath.Join(dir, "kept.swrec")
	argv := []string{tool(t), "record", "--quiet", "--output", kept}
	for _, name := range names {
		argv = append(argv, "--output", filepath.Join(dir, "record."+name))
	}
	if r := run(t, time.Minute, nil, append(append(argv, "--"), app(t, "Demo", "2")...)...); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for _, name := range names {
		want := must.Get(os.ReadFile(filepath.Join(dir, "record."+name)))(t)
		for _, by := range []string{"report", "convert"} {
			out := filepath.Join(dir, by+"."+name)
			argv := []string{tool(t), by, kept, out}
			if by == "report" {
				argv = []string{tool(t), by, "--output", out, kept}
			}
			if r := run(t, time.Minute, nil, argv...); r.code != 0 {
				t.Fatalf("%s %s: %d\n%s", by, name, r.code, r.stderr)
			}
			if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s writes another %s than record: %d bytes, want %d, %v", by, name, len(got), len(want), err)
			}
		}
	}
	if r := run(t, time.Minute, nil, tool(t), "diff", kept, kept); r.code != 0 {
		t.Errorf("a recording differs from itself: %s", r.stdout)
	}
}

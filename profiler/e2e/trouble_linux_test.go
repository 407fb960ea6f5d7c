package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// fileText is the contents of a file.
func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// A starved pool, a lock convoy, and spinning threads are named in a recording, in the kept trace of waits,
// and in their time lines; each only by its own name.
func TestTrouble(t *testing.T) {
	findings := map[string]string{"starve": "thread pool starvation: ", "convoy": "lock convoy in Trouble.Hold: ", "spin": "spinning: "}
	lanes := map[string]string{"starve": `"thread pool queue"`, "convoy": `"locks"`, "spin": `"spinning"`}
	judge := func(how, mode, summary, page string) {
		for other, name := range findings {
			if strings.Contains(summary, "finding") && strings.Contains(summary, name) != (other == mode) {
				t.Errorf("%s of %s: %q\n%s", how, mode, name, summary)
			}
		}
		if !strings.Contains(summary, findings[mode]) || !strings.Contains(page, `"name":`+lanes[mode]) {
			t.Errorf("%s of %s: no %q, or no lane %s\n%s", how, mode, findings[mode], lanes[mode], summary)
		}
	}
	for mode := range findings {
		dir := tempdir.New(t)
		page, keep := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.nettrace")
		r := run(t, time.Minute, nil, append([]string{tool(t), "record", "--events", "cpu,wall,waits,locks", "--output", page, "--"}, app(t, "Trouble", mode)...)...)
		if r.code != 0 {
			t.Fatalf("record: exit code %d\n%s", r.code, r.stderr)
		}
		judge("record", mode, r.stderr, fileText(t, page))
		if mode == "spin" {
			continue // a trace of waits has no samples
		}
		run(t, time.Minute, nil, append([]string{tool(t), "waits", "--keep", keep, "--"}, app(t, "Trouble", mode)...)...)
		r = run(t, time.Minute, nil, tool(t), "report", keep)
		if c := run(t, time.Minute, nil, tool(t), "convert", keep, "--output", page); c.code != 0 || r.code != 0 {
			t.Errorf("exit codes %d and %d\n%s%s", r.code, c.code, r.stderr, c.stderr)
		}
		judge("the trace", mode, r.stdout, fileText(t, page))
	}
}

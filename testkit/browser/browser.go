// Package browser loads pages in a real browser.
package browser

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Browser is a Chromium.
type Browser struct{ path string }

// Find is the browser of this machine. Without one, or in short tests, it ends the test with a message about
// what was not done.
func Find(t testing.TB, undone string) Browser {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && !testing.Short() {
			return Browser{path}
		}
	}
	t.Skipf("SKIPPED-CHECK: %s, no chromium here (or -short)", undone)
	return Browser{}
}

// Load returns the document that a page's scripts have made, and the browser's messages. The window is 1400
// by 800 pixels unless a flag changes that.
func (b Browser) Load(t testing.TB, page []byte, hash string, flags ...string) (dom, log string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + t.TempDir(),
		"--enable-logging=stderr", "--virtual-time-budget=2000", "--window-size=1400,800"}, flags...)
	cmd := exec.CommandContext(ctx, b.path, append(args, "--dump-dom", "file://"+file+hash)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out), stderr.String()
}

// Answers compares what a script put into elements <pre class="answer"> with want, in order. names, if there
// are any, say which answer differs. The page may not write to the console.
func Answers(t testing.TB, dom, log string, names []string, want ...string) {
	t.Helper()
	for i, w := range want {
		_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
		got, _, _ := strings.Cut(dom, "</pre>")
		if got = html.UnescapeString(got); got != w {
			name := fmt.Sprintf("answer %d", i+1)
			if names != nil {
				name = names[i]
			}
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, w)
		}
	}
	if strings.Contains(log, "CONSOLE") {
		t.Errorf("the browser complains:\n%s", log)
	}
}

package export

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func browser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// TestPageInBrowser loads pages in a real browser and looks at the document
// that its scripts have made.
func TestPageInBrowser(t *testing.T) {
	path := browser()
	if path == "" || testing.Short() {
		t.Skip("SKIPPED-CHECK: the flame graph was not loaded, no chromium here (or -short)")
	}
	for name, c := range map[string]struct {
		p    *Profile
		want []string
	}{
		"demo":    {handMade(), []string{"Click a frame to zoom in.", "managed<small>53 %", "gap<small>5.0 %", ".NET TP Worker (101): 180"}},
		"hostile": {hostile(), []string{"Click a frame to zoom in.", "&lt;/script&gt;&lt;script&gt;alert(1)"}},
		"empty":   {&Profile{}, []string{"No samples in this selection."}},
	} {
		t.Run(name, func(t *testing.T) {
			dom, log := load(t, path, written(t, WriteHTML, c.p))
			for _, w := range c.want {
				if !strings.Contains(dom, w) {
					t.Errorf("the document lacks %q", w)
				}
			}
			if strings.Contains(log, "CONSOLE") {
				t.Errorf("the browser complains:\n%s", log)
			}
		})
	}
}

func load(t *testing.T, path string, page []byte) (dom, log string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", "file://"+file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return string(out), stderr.String()
}

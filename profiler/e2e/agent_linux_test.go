package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// The agent records processes as they come and go, and its profiles reach a backend that fails at first. A
// recorded process continues to run.
func TestAgent(t *testing.T) {
	var mu sync.Mutex
	requests, methods := 0, map[string]int{} // by process
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests <= 2 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		f, _, err := r.FormFile("profile")
		if err != nil {
			t.Error(err)
			return
		}
		p, err := profile.Parse(f)
		if err != nil {
			t.Error(err)
			return
		}
		for _, fn := range p.Function {
			if strings.Contains(fn.Name, "Demo.") {
				methods[r.FormValue("name")]++
			}
		}
	}))
	defer srv.Close()
	folder, port := t.TempDir(), freePorts(t)[0]
	stays, dies := start(t, app(t, "Demo", "41")...), start(t, app(t, "Demo", "42")...)
	agent := start(t, tool(t), "agent", "--command", "Demo.exe 4[123]", "--interval", "5s", "--folder", folder, "--push", srv.URL, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "100")
	time.Sleep(6 * time.Second)
	dies.Process.Kill() // in the middle of an interval
	comes := start(t, app(t, "Demo", "43")...)
	names := func() (all int) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range []*process{stays, comes} {
			for name := range methods {
				if strings.Contains(name, "pid="+c.id+",") {
					all++
				}
			}
		}
		return all
	}
	for end := time.Now().Add(25 * time.Second); names() < 2 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	link := "/targets/" + stays.id
	if list, graph := served(t, port, "/targets"), served(t, port, link); !strings.Contains(list, link) || !strings.Contains(graph, "Demo.") {
		t.Errorf("the page has no link to %s, or no flame graph there: %s", link, list)
	}
	agent.stop(syscall.SIGTERM)
	if n := names(); n != 2 {
		t.Errorf("%d of 2 processes reached the backend: %v\n%s", n, methods, agent.errs.String())
	}
	if stays.gone() {
		t.Error("the recorded process has ended")
	}
	recordings, _ := filepath.Glob(filepath.Join(folder, "*-Demo.swrec"))
	if len(recordings) < 3 {
		t.Fatalf("recordings: %v", recordings)
	}
	if r := seedwalk(t, "report", "--format", "text", "--output", "-", recordings[0]); r.code != 0 || !strings.Contains(r.stdout, "Demo.") {
		t.Errorf("report of a recording: %d\n%s%s", r.code, r.stderr, r.stdout)
	}
	parts, _ := filepath.Glob(filepath.Join(folder, "spool", "*.part*"))
	if len(parts) > 0 {
		t.Errorf("left in the spool: %v", parts)
	}
}

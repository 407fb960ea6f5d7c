package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// The agent records processes as they come and go, and its profiles reach a backend that
// fails at first. A process that was recorded runs on.
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
	folder := t.TempDir()
	var errs bytes.Buffer
	cmd := exec.Command(tool(t), "agent", "--command", "Demo.exe 4[123]", "--interval", "5s", "--folder", folder, "--push", srv.URL, "--listen", "", "--cpu", "100")
	cmd.Stderr = &errs
	stays, dies := demoProcess(t, "41"), demoProcess(t, "42")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	time.Sleep(6 * time.Second)
	dies.Process.Kill() // in the middle of an interval
	comes := demoProcess(t, "43")
	names := func() (all int) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range []*exec.Cmd{stays, comes} {
			for name := range methods {
				if strings.Contains(name, fmt.Sprintf("pid=%d,", c.Process.Pid)) {
					all++
				}
			}
		}
		return all
	}
	for end := time.Now().Add(25 * time.Second); names() < 2 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, errs.String())
	}
	if n := names(); n != 2 {
		t.Errorf("%d of 2 processes reached the backend: %v\n%s", n, methods, errs.String())
	}
	if stays.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("the recorded process has ended")
	}
	recordings, _ := filepath.Glob(filepath.Join(folder, "*-Demo.swrec"))
	if len(recordings) < 3 {
		t.Fatalf("recordings: %v", recordings)
	}
	out, err := exec.Command(tool(t), "report", "--format", "text", "--output", "-", recordings[0]).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Demo.") {
		t.Errorf("report of a recording: %v\n%s", err, out)
	}
	parts, _ := filepath.Glob(filepath.Join(folder, "spool", "*.part*"))
	if len(parts) > 0 {
		t.Errorf("left in the spool: %v", parts)
	}
}

func demoProcess(t *testing.T, seconds string) *exec.Cmd {
	argv := app(t, "Demo", seconds)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-exited })
	return cmd
}

//go:build unix

package diagnostics

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

func TestStartTime(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 195813 20 21"
	for stat, want := range map[string]string{
		"464 (dotnet)" + rest:       "195813",
		"464 (a) b (c) 1 2)" + rest: "195813",
		"464 (dotnet) S 1":          "",
		"":                          "",
	} {
		if got, ok := startTime([]byte(stat)); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q", stat, got)
		}
	}
}

// TestSocket finds sockets in a made /proc: in a container the process has
// another id and another root.
func TestSocket(t *testing.T) {
	proc := tempdir.New(t)
	dir := filepath.Join(proc, "464")
	tmp := filepath.Join(dir, "root", "my", "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "stat"), "464 (dotnet) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20")
	write(filepath.Join(dir, "status"), "Name:\tdotnet\nNSpid:\t464\t7\n")
	write(filepath.Join(dir, "environ"), "A=b\x00TMPDIR=/my/tmp\x00")
	var e *FindError
	write(filepath.Join(tmp, "dotnet-diagnostic-7-776-socket"), "") // of a process that died
	if _, err := socket(proc, 464); !errors.As(err, &e) || e.Why != NoServer {
		t.Errorf("stale socket: %v", err)
	}
	want := filepath.Join(tmp, fmt.Sprintf("dotnet-diagnostic-%d-%d-socket", 7, 777))
	write(want, "")
	if got, err := socket(proc, 464); got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := socket(proc, 465); !errors.As(err, &e) || e.Why != NoProcess {
		t.Errorf("no process: %v", err)
	}
}

func TestProcessThatIsNone(t *testing.T) {
	var e *FindError
	if _, err := Process(os.Getpid()); !errors.As(err, &e) || e.Why != NoServer {
		t.Errorf("a Go program: %v", err)
	}
	if _, err := Process(1 << 30); !errors.As(err, &e) || e.Why != NoProcess {
		t.Errorf("no such process: %v", err)
	}
}

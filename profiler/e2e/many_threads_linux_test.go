package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Of 5,000 threads that sleep each has a stack in the recording, or is counted as one that has
// none.
func TestManyThreads(t *testing.T) {
	const threads = 5000
	need(t, "out", "bin", "libseedwalk_probe.so")
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED-CHECK: the program is for x86-64")
	}
	argv := app(t, "Many", fmt.Sprint(threads))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Skipf("SKIPPED-CHECK: the program cannot start %d threads here", threads)
	}
	file := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, 5*time.Minute, nil, tool(t), "record", "--pid", fmt.Sprint(cmd.Process.Pid), "--duration", "10s", "--output", file)
	var profile struct {
		Stats struct {
			Samples, Complete int64
			Threads           int
			Counters          map[string]int64
		}
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &profile)
	}
	if err != nil || r.code != 0 {
		t.Fatalf("code %d, %v\n%s", r.code, err, r.stderr)
	}
	s := profile.Stats
	without := int(s.Counters["probe_unsampled"])
	t.Logf("%d samples, %d complete, of %d threads; %d threads without a sample, %d slots short", s.Samples, s.Complete, s.Threads, without, s.Counters["probe_no_slot"])
	if s.Threads+without < threads || s.Threads < threads/10 {
		t.Errorf("%d threads with a sample and %d without, of %d", s.Threads, without, threads)
	}
	if s.Complete*100 < s.Samples*99 {
		t.Errorf("%d of %d samples are complete\n%s", s.Complete, s.Samples, r.stderr)
	}
}

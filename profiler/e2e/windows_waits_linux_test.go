package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	eventpipe "github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// On Windows a session goes over the process's named pipe, from its very start: the
// program is a child of the command and waits at its port until the session is there.
// What was kept gives the truth as well.
func TestWindowsWaits(t *testing.T) {
	need(t, single10)
	dir := tempdir.New(t)
	keep, report := filepath.Join(dir, "run.nettrace"), filepath.Join(dir, "w.json")
	env := []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "SWHOST_LIMIT=120"}
	r := run(t, 3*time.Minute, env, wine(t, "seedwalk.exe", "waits", "--keep", windowsPath(keep), "--output", windowsPath(report), "--",
		need(t, "out", "windows", "launch.exe"), need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Waits.exe"), everyWindowsWait)...)
	t.Log(r.stderr)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) < 43 || r.code != 7 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stdout)
	}
	judgeTrace(t, keep, truth, r.stdout)
	var told struct {
		Lost  int64
		Waits []struct{ Thread uint64 }
	}
	if b, err := os.ReadFile(report); err != nil || json.Unmarshal(b, &told) != nil || len(told.Waits) < 30 {
		t.Errorf("the report has %d waits: %v", len(told.Waits), err)
	}
}

// A process that runs is watched by its number; each wait is told as it ends.
func TestWindowsWaitsPID(t *testing.T) {
	need(t, single10)
	dir := tempdir.New(t)
	number, keep := filepath.Join(dir, "pid"), filepath.Join(dir, "run.nettrace")
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	t.Setenv("SWHOST_LIMIT", "120")
	t.Setenv("SWHOST_PID", windowsPath(number))
	p := startPaused(t, wine(t, "launch.exe", need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Waits.exe"), everyWindowsWait, "pause")...)
	pid, err := os.ReadFile(number)
	if err != nil {
		t.Fatal(err)
	}
	tool := make(chan result, 1)
	go func() {
		tool <- wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), "waits", "--pid", strings.TrimSpace(string(pid)), "--duration", "20s", "--follow", "--format", "json", "--keep", windowsPath(keep))
	}()
	for range 3000 { // the tool asks for its sessions; the kept file begins when they are there
		if st, err := os.Stat(keep); err == nil && st.Size() > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	p.say("go")
	p.until("done")
	r := <-tool
	p.say("end")
	p.until("")
	output := p.out.String()
	truth, err := waittruth.Lines(&p.out)
	if err != nil || len(truth) < 43 || r.code != 0 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
	}
	judgeTrace(t, keep, truth, output)
	lines := 0
	for line := range strings.Lines(r.stdout) {
		var w struct {
			Thread   uint64
			Duration int64 `json:"duration_ns"`
		}
		if json.Unmarshal([]byte(line), &w) == nil && w.Thread != 0 && w.Duration > 0 {
			lines++
		}
	}
	if lines < 34 {
		t.Errorf("%d waits were told as they ended\n%s", lines, r.stdout)
	}
}

// isNear reports whether an address is in the program's own library, by those that it has
// written of it.
func isNear(addr, output string) bool {
	const size = 4096 // of its functions
	n, err := strconv.ParseInt(addr, 0, 64)
	for line := range strings.Lines(output) {
		noted, ok := strings.CutPrefix(strings.TrimSpace(line), "through ")
		if at, bad := strconv.ParseInt(strings.TrimPrefix(noted, "0x"), 16, 64); ok && bad == nil && err == nil && max(at-n, n-at) < size {
			return true
		}
	}
	return false
}

// judgeTrace holds a trace against what the program says of itself. Every managed
// frame has a name; where native code called managed code stands in what it has written.
func judgeTrace(t *testing.T, path string, truth []waittruth.Wait, output string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := waits.New()
	maps, err := os.Open(path + ".maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	if err := eventpipe.ReadMaps(a.Names, maps, filepath.Dir(path)); err != nil {
		t.Error(err)
	}
	if err := a.Read(bytes.NewReader(b)); err != nil {
		t.Error(err)
	}
	a.Finish()
	result := waittruth.Judge(truth, a)
	native := 0
	for _, p := range result.Problems {
		if addr, ok := strings.CutSuffix(p, " has no name"); ok && isNear(addr, output) {
			native++
			continue
		}
		t.Error(p)
	}
	if result.Unnamed > native || a.Counts.Lost > 0 {
		t.Errorf("%d of %d frames have no name, %d of them native, %d events are lost", result.Unnamed, result.Frames, native, a.Counts.Lost)
	}
	t.Logf("%d of %d waits, %d of %d frames named; %d waits in all", result.Found, len(truth), result.Frames-result.Unnamed, result.Frames, len(a.Waits))
}

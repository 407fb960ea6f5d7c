package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// waitsReport is what seedwalk waits writes as JSON.
type waitsReport struct {
	Events  struct{ Read, Lost int64 }
	Partial []string
	Total   struct{ Waits, NS int64 }
	Waits   []struct {
		Thread   uint64
		State    string
		Duration int64 `json:"duration_ns"`
		Stack    []string
	}
}

func readReport(t *testing.T, path string) (r waitsReport) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A command is watched from its very start: its exit code is the tool's, and the trace
// that was kept says the same as the report.
func TestWaitsCommand(t *testing.T) {
	dir := tempdir.New(t)
	live, again, keep := filepath.Join(dir, "live.json"), filepath.Join(dir, "again.json"), filepath.Join(dir, "run.nettrace")
	r := run(t, time.Minute, nil, append([]string{tool(t), "waits", "--keep", keep, "--output", live, "--"}, app(t, "Waits", "mutex,monitor,callback,silence")...)...)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) != 7 || r.code != 7 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
	}
	judgeTrace(t, keep, truth, r.stdout)
	if r := run(t, time.Minute, nil, tool(t), "waits", "--output", again, keep); r.code != 0 {
		t.Errorf("the kept trace: exit code %d\n%s", r.code, r.stderr)
	}
	a, b := readReport(t, live), readReport(t, again)
	if a.Total != b.Total || a.Total.Waits < 4 || len(a.Waits) != len(b.Waits) || a.Events.Lost != 0 {
		t.Errorf("live %+v, %d listed, %d events lost; from the file %+v, %d listed", a.Total, len(a.Waits), a.Events.Lost, b.Total, len(b.Waits))
	}
}

// watch runs seedwalk waits on a process; lines are what it prints.
func watch(t *testing.T, pid int, flags ...string) (cmd *exec.Cmd, lines *bufio.Scanner, said *strings.Builder) {
	t.Helper()
	cmd = exec.Command(tool(t), append([]string{"waits", "--pid", strconv.Itoa(pid)}, flags...)...)
	out, err := cmd.StdoutPipe()
	said = &strings.Builder{}
	cmd.Stderr = said
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { kill.Stop(); cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out), said
}

// begun waits until a kept trace has its first bytes: nothing that happens later is missed.
func begun(t *testing.T, keep string) {
	t.Helper()
	for range 3000 {
		if st, err := os.Stat(keep); err == nil && st.Size() > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the session does not begin")
}

// Each wait is told while the program goes on, in a line with its thread, time, kind and
// place; Ctrl-C ends the tool and not the program.
func TestWaitsFollow(t *testing.T) {
	p := startPaused(t, app(t, "Waits", "mutex,monitor", "pause")...)
	keep := filepath.Join(tempdir.New(t), "run.nettrace")
	cmd, lines, said := watch(t, p.cmd.Process.Pid, "--follow", "--min-duration", "100ms", "--keep", keep)
	begun(t, keep)
	p.say("go")
	p.until("done") // the program waits for a line; the tool is not asked to end yet
	truth, err := waittruth.Lines(&p.out)
	if err != nil || len(truth) != 3 {
		t.Fatalf("%d waits in the truth, %v", len(truth), err)
	}
	kinds := map[string]string{"mutex": " wait ", "lock": " lock ", "pulse": " monitor-wait "}
	for _, w := range truth {
		line := ""
		for !strings.Contains(line, "thread "+strconv.FormatUint(w.TID, 10)+" ") { // on a busy machine Main waits long for a thread's end
			if !lines.Scan() {
				t.Fatalf("no line for %s\n%s", w.Scenario, said)
			}
			line = lines.Text()
		}
		method := w.Frames[0]
		if !strings.Contains(line, " ms ") || !strings.Contains(line, kinds[w.Scenario]) || !strings.Contains(line, method+" < ") {
			t.Errorf("%s of thread %d in %s: %q", w.Scenario, w.TID, method, line)
		}
		if w.Scenario == "lock" && !strings.Contains(line, "held by "+strconv.Itoa(p.cmd.Process.Pid)) { // by Main's thread
			t.Errorf("who has the lock? %q", line)
		}
	}
	cmd.Process.Signal(os.Interrupt)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), "Waits.Main") {
			t.Errorf("one line more: %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), " 0 events lost") {
		t.Errorf("%v\n%s", err, said)
	}
	p.say("end")
	if p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the program ended with %v", p.cmd.ProcessState)
	}
}

// Events are lost where the tool does not come to its turn and there is little room: it
// says so, and no wait seems longer than any was by the program's own clock.
func TestWaitsLost(t *testing.T) {
	p := startPaused(t, app(t, "Waits", "turns", "pause")...)
	dir := tempdir.New(t)
	keep, report := filepath.Join(dir, "run.nettrace"), filepath.Join(dir, "w.json")
	cmd, _, said := watch(t, p.cmd.Process.Pid, "--buffer", "1", "--min-duration", "100us", "--keep", keep, "--output", report)
	begun(t, keep)
	p.say("go")
	time.Sleep(300 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(700 * time.Millisecond)
	cmd.Process.Signal(syscall.SIGCONT)
	p.until("done")
	cmd.Process.Signal(os.Interrupt)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || strings.Count(said.String(), "events were lost, first seen at offset ") != 1 {
		t.Errorf("%v\n%s", cmd.ProcessState, said)
	}
	p.say("end")
	longest := int64(0)
	for line := range strings.Lines(p.out.String()) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "longest "); ok {
			longest, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	r := readReport(t, report)
	states, most := map[string]int{}, int64(0)
	for i := range r.Waits {
		if w := &r.Waits[i]; len(w.Stack) > 2 && strings.Contains(strings.Join(w.Stack, " "), " Waits.Turns ") {
			states[w.State]++
			if w.State == "complete" {
				most = max(most, w.Duration)
			}
		}
	}
	if r.Events.Lost == 0 || len(r.Partial) == 0 || states["complete"] == 0 || longest == 0 || most > longest+slack {
		t.Errorf("%d events lost, %v, %v; the longest took %v, by the program's clock %v", r.Events.Lost, r.Partial, states, time.Duration(most), time.Duration(longest))
	}
	t.Logf("%d events lost, %v; the longest took %v, by the program's clock %v", r.Events.Lost, states, time.Duration(most), time.Duration(longest))
}

// The process dies while it is watched: exit code 1, a line that says so, and what was
// seen before.
func TestWaitsTargetDies(t *testing.T) {
	p := startPaused(t, app(t, "Waits", "mutex,open", "pause")...)
	dir := tempdir.New(t)
	keep, report := filepath.Join(dir, "run.nettrace"), filepath.Join(dir, "w.json")
	cmd, _, said := watch(t, p.cmd.Process.Pid, "--keep", keep, "--output", report)
	begun(t, keep)
	p.say("go")
	p.until("done")
	time.Sleep(500 * time.Millisecond) // the runtime writes every 100 ms
	p.cmd.Process.Kill()
	cmd.Wait()
	told := 0
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "at offset ") {
			told++
		}
	}
	r := readReport(t, report)
	states := map[string]int{}
	for i := range r.Waits {
		states[r.Waits[i].State]++
	}
	if cmd.ProcessState.ExitCode() != 1 || told != 1 || len(r.Partial) != 1 || states["complete"] == 0 || states["still-open"] == 0 {
		t.Errorf("%v, %v, partial %v\n%s", cmd.ProcessState, states, r.Partial, said)
	}
}

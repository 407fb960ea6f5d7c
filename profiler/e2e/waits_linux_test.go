package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
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
	must.Do(t, json.Unmarshal([]byte(readFile(t, path)), &r))
	return r
}

// A command is watched from its start: its exit code becomes the tool's, and the kept trace agrees with the
// report.
func TestWaitsCommand(t *testing.T) {
	dir := tempdir.New(t)
	live, again, keep := filepath.Join(dir, "live.json"), filepath.Join(dir, "again.json"),
		filepath.Join(dir, "run.nettrace")
	r := seedwalk(t, append([]string{"waits", "--keep", keep, "--output", live, "--"},
		app(t, "Waits", "mutex,monitor,callback,silence")...)...)
	truth := truthOf(t, r.stdout, 7)
	must.True(t, r.code == 7, "exit code %d\n%s", r.code, r.stderr)
	judgeTrace(t, keep, truth, r.stdout)
	r = seedwalk(t, "waits", "--output", again, keep)
	expect.True(t, r.code == 0, "the kept trace: exit code %d\n%s", r.code, r.stderr)
	a, b := readReport(t, live), readReport(t, again)
	expect.True(t, a.Total == b.Total && a.Total.Waits >= 4 && len(a.Waits) == len(b.Waits) &&
		a.Events.Lost == 0, "live %+v, %d listed, %d events lost; from the file %+v, %d listed", a.Total,
		len(a.Waits), a.Events.Lost, b.Total, len(b.Waits))
}

// watch starts a program of waits, and seedwalk waits on it with a kept trace. It returns when the trace has
// its first bytes: later events are not missed.
func watch(t *testing.T, program string, flags ...string) (p, watcher *process) {
	t.Helper()
	p, _ = waiting(t, "ready", app(t, "Waits", program, "pause")...)
	keep := filepath.Join(tempdir.New(t), "run.nettrace")
	watcher = start(t, append([]string{tool(t), "waits", "--pid", p.id, "--keep", keep}, flags...)...)
	until(t, "the session begins",
		func() bool { st, err := os.Stat(keep); return err == nil && st.Size() > 0 })
	p.say("go")
	return p, watcher
}

// Each wait is printed while the program runs, on a line with its thread, time, kind and place. Ctrl-C ends
// the tool and not the program.
func TestWaitsFollow(t *testing.T) {
	p, tool := watch(t, "mutex,monitor", "--follow", "--min-duration", "100ms")
	// The program now waits for a line, and the tool has not been asked to end.
	truth := truthOf(t, strings.Join(p.until("done"), "\n"), 3)
	kinds := map[string]string{"mutex": " wait ", "lock": " lock ", "pulse": " monitor-wait "}
	// The lines of a thread. On a busy machine Main waits long for a thread's end.
	of := func(id string) (lines []string) {
		for line := range strings.Lines(tool.out.String()) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, "thread "+id+" ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	for _, w := range truth {
		id, method := strconv.FormatUint(w.TID, 10), w.Frames[0]
		until(t, "a line for "+w.Scenario, func() bool { return len(of(id)) > 0 })
		line := of(id)[0]
		expect.True(t, strings.Contains(line, " ms ") && strings.Contains(line, kinds[w.Scenario]) &&
			strings.Contains(line, method+" < "),
			"%s of thread %d in %s: %q", w.Scenario, w.TID, method, line)
		if w.Scenario == "lock" && !strings.Contains(line, "held by "+p.id) { // by Main's thread
			t.Errorf("who has the lock? %q", line)
		}
	}
	tool.stop(os.Interrupt)
	for line := range strings.Lines(tool.out.String()) {
		isOf := func(w waittruth.Wait) bool {
			return strings.Contains(line, "thread "+strconv.FormatUint(w.TID, 10)+" ")
		}
		if i := slices.IndexFunc(truth, isOf); i >= 0 {
			truth = slices.Delete(truth, i, i+1)
		} else if !strings.Contains(line, "Waits.Main") {
			t.Errorf("one line more: %q", line)
		}
	}
	expect.Contains(t, tool.errs.String(), " 0 events lost")
	p.say("end")
	expect.Equal(t, p.wait(), 7, "exit code")
}

// Events are lost if the tool gets no processor and there is little room. The tool reports that, and no wait
// appears longer than by the program's own clock.
func TestWaitsLost(t *testing.T) {
	report := filepath.Join(tempdir.New(t), "w.json")
	p, tool := watch(t, "turns", "--buffer", "1", "--min-duration", "100us", "--output", report)
	time.Sleep(300 * time.Millisecond)
	tool.freeze()
	time.Sleep(700 * time.Millisecond)
	tool.Process.Signal(syscall.SIGCONT)
	said := p.until("done")
	tool.Process.Signal(os.Interrupt)
	if tool.wait() != 1 || strings.Count(tool.errs.String(), "events were lost, first seen at offset ") != 1 {
		t.Errorf("%v\n%s", tool.err, tool.errs.String())
	}
	p.say("end")
	longest := int64(0)
	for _, line := range said {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "longest "); ok {
			longest, _ = strconv.ParseInt(n, 10, 64)
		}
	}
	r := readReport(t, report)
	states, most := map[string]int{}, int64(0)
	for i := range r.Waits {
		if w := &r.Waits[i]; len(w.Stack) > 2 &&
			strings.Contains(strings.Join(w.Stack, " "), " Waits.Turns ") {
			states[w.State]++
			if w.State == "complete" {
				most = max(most, w.Duration)
			}
		}
	}
	expect.Figures(t, r.Events.Lost != 0 && len(r.Partial) > 0 && states["complete"] != 0 && longest != 0 &&
		most <= longest+slack,
		"%d events lost, %v, %v; the longest took %v, by the program's clock %v", r.Events.Lost, r.Partial,
		states, time.Duration(most), time.Duration(longest))
}

// The process dies while it is watched: exit code 1, a line that reports it, and the waits seen before.
func TestWaitsTargetDies(t *testing.T) {
	report := filepath.Join(tempdir.New(t), "w.json")
	p, tool := watch(t, "mutex,open", "--output", report)
	p.until("done")
	time.Sleep(500 * time.Millisecond) // the runtime writes every 100 ms
	p.Process.Kill()
	tool.wait()
	told := 0
	for line := range strings.Lines(tool.errs.String()) {
		if strings.Contains(line, "at offset ") {
			told++
		}
	}
	r := readReport(t, report)
	states := map[string]int{}
	for i := range r.Waits {
		states[r.Waits[i].State]++
	}
	expect.True(t, tool.wait() == 1 && told == 1 && len(r.Partial) == 1 && states["complete"] != 0 &&
		states["still-open"] != 0, "%v, %v, partial %v\n%s", tool.err, states, r.Partial, tool.errs.String())
}

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

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	eventpipe "github.com/seedwalk/seedwalk/eventpipe/waits/session"
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
	notes := 0
	for line := range strings.Lines(tool.errs.String()) {
		if strings.Contains(line, "at offset ") {
			notes++
		}
	}
	r := readReport(t, report)
	states := map[string]int{}
	for i := range r.Waits {
		states[r.Waits[i].State]++
	}
	expect.True(t, tool.wait() == 1 && notes == 1 && len(r.Partial) == 1 && states["complete"] != 0 &&
		states["still-open"] != 0, "%v, %v, partial %v\n%s", tool.err, states, r.Partial, tool.errs.String())
}

// On Windows a session uses the process's named pipe, from its start: the program is a child of the command
// and waits at its port until the session is there. The kept trace has the truth as well.
func TestWindowsWaits(t *testing.T) {
	need(t, single10)
	dir := tempdir.New(t)
	keep, report := filepath.Join(dir, "run.nettrace"), filepath.Join(dir, "w.json")
	r := run(t, 3*time.Minute, []string{"SWHOST_LIMIT=120"},
		wine(t, "seedwalk.exe", "waits", "--keep", windowsPath(keep), "--output", windowsPath(report), "--",
			need(t, "out", "windows", "launch.exe"), need(t, "out", "windows", "shim.dll"),
			need(t, "out", "windows", "Waits.exe"), everyWindowsWait)...)
	t.Log(r.stderr)
	truth := truthOf(t, r.stdout, 43)
	must.True(t, r.code == 7, "exit code %d\n%s", r.code, r.stdout)
	judgeTrace(t, keep, truth, r.stdout)
	got := readReport(t, report)
	expect.True(t, len(got.Waits) >= 30, "the report has only %d waits", len(got.Waits))
}

// A running process is watched by its number; each wait is printed as it ends.
func TestWindowsWaitsPID(t *testing.T) {
	need(t, single10)
	dir := tempdir.New(t)
	number, keep := filepath.Join(dir, "pid"), filepath.Join(dir, "run.nettrace")
	p := startIn(t, []string{"SWHOST_LIMIT=120", "SWHOST_PID=" + windowsPath(number)},
		wine(t, "launch.exe", need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Waits.exe"),
			everyWindowsWait, "pause")...)
	p.until("ready")
	pid := strings.TrimSpace(readFile(t, number))
	tool := start(t, program(t, need(t, "out", "windows", "seedwalk.exe"), "waits", "--pid", pid,
		"--duration", "20s", "--follow", "--format", "json", "--keep", windowsPath(keep))...)
	until(t, "the sessions are there",
		func() bool { st, err := os.Stat(keep); return err == nil && st.Size() > 0 })
	time.Sleep(500 * time.Millisecond)
	p.say("go")
	output := strings.Join(p.until("done"), "\n")
	if code := tool.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, tool.errs.String())
	}
	p.say("end")
	judgeTrace(t, keep, truthOf(t, output, 43), output)
	lines := 0
	for line := range strings.Lines(tool.out.String()) {
		var w struct {
			Thread   uint64
			Duration int64 `json:"duration_ns"`
		}
		if json.Unmarshal([]byte(line), &w) == nil && w.Thread != 0 && w.Duration > 0 {
			lines++
		}
	}
	expect.True(t, lines >= 34, "%d waits were printed as they ended\n%s", lines, tool.out.String())
}

// isNear reports whether an address is in the program's own library, according to the addresses that it
// printed.
func isNear(addr, output string) bool {
	const size = 4096 // of its functions
	n, err := strconv.ParseInt(addr, 0, 64)
	for line := range strings.Lines(output) {
		noted, ok := strings.CutPrefix(strings.TrimSpace(line), "through ")
		if at, bad := strconv.ParseInt(strings.TrimPrefix(noted, "0x"), 16, 64); ok && bad == nil &&
			err == nil && max(at-n, n-at) < size {
			return true
		}
	}
	return false
}

// judgeTrace compares a trace with the program's own list. Every managed frame has a name; the place where
// native code called managed code is in the program's output.
func judgeTrace(t *testing.T, path string, truth []waittruth.Wait, output string) {
	t.Helper()
	a := waits.New()
	maps := must.Get(os.Open(path + ".maps"))(t)
	defer maps.Close()
	expect.Equal(t, eventpipe.ReadMaps(a.Names, maps, filepath.Dir(path)), nil)
	expect.Equal(t, a.Read(strings.NewReader(readFile(t, path))), nil)
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
	expect.True(t, result.Unnamed <= native && a.Counts.Lost == 0,
		"%d of %d frames have no name, %d of them native, %d events are lost", result.Unnamed, result.Frames,
		native, a.Counts.Lost)
	t.Logf("%d of %d waits, %d of %d frames named; %d waits in all", result.Found, len(truth),
		result.Frames-result.Unnamed, result.Frames, len(a.Waits))
}

// everyWindowsWait leaves out what the trimmed framework lacks: Interrupt, and Semaphore, which an event
// replaces.
const everyWindowsWait = "mutex,events,semaphore,join,monitor,task,callback,silence,many,example"

// tickOfWine is a tick of QueryPerformanceCounter in nanoseconds; in Wine its clock is CLOCK_MONOTONIC_RAW.
const tickOfWine = 100

// fromRaw is the offset from that clock to CLOCK_MONOTONIC, the clock of the truth.
func fromRaw() int64 {
	var raw, steady unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &raw)
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &steady)
	return steady.Nano() - raw.Nano()
}

// On Windows, the library copies the stacks of the runtime's events, and the tool walks them. The recording
// has each wait of the program once, with a whole stack. The counts agree with a trace that the runtime
// itself wrote of the same run. The same recording has the program's allocations, exceptions, and samples.
func TestWindowsEvents(t *testing.T) {
	dir := tempdir.New(t)
	file, trace := filepath.Join(dir, "out.json"), filepath.Join(dir, "run.nettrace")
	need(t, single10)
	env := []string{"SWHOST_LIMIT=120", "DOTNET_EnableEventPipe=1",
		"DOTNET_EventPipeOutputPath=" + windowsPath(trace),
		"DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:40000004000:5"}
	argv := wine(t, "seedwalk.exe", "record", "--mode", "probe", "--profiler",
		need(t, "out", "windows", "seedwalk_profiler.dll"), "--events", everyEvent, "--wait-min", "0",
		"--output", windowsPath(file), "--", need(t, "out", "windows", "launch.exe"),
		need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Waits.exe"),
		everyWindowsWait+",deeper,memory")
	r := run(t, 3*time.Minute, env, argv...)
	must.True(t, r.code == 7, "exit code %d\n%s", r.code, r.stderr)
	truth := truthOf(t, r.stdout, 43)
	for i, offset := 0, uint64(fromRaw()); i < len(truth); i++ {
		truth[i].Before, truth[i].After = truth[i].Before*tickOfWine+offset, truth[i].After*tickOfWine+offset
	}
	f := readJSONProfile(t, file)
	f.wholeEvents(t)
	f.judge(t, truth)
	f.everything(t, strings.ReplaceAll(r.stdout, "\r", ""))
	t.Logf("%d waits of the truth", len(truth))
	a := waits.New()
	in := must.Get(os.Open(trace))(t)
	defer in.Close()
	expect.Equal(t, a.Read(in), nil)
	a.Finish()
	equalCounts(t, &f, a)
}

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	var told struct {
		Lost  int64
		Waits []struct{ Thread uint64 }
	}
	err := json.Unmarshal([]byte(readFile(t, report)), &told)
	expect.True(t, err == nil && len(told.Waits) >= 30, "the report has %d waits: %v", len(told.Waits), err)
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
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	must.True(t, err == nil && len(truth) >= 43 && r.code == 7,
		"%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
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

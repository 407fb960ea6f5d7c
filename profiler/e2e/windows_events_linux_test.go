package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

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

// On Windows the library copies the stacks of the runtime's events and the tool walks them. Each wait of the
// program is there once, with a whole stack, and the counts agree with a trace that the runtime itself wrote
// of the same run. The same recording has the program's allocations, exceptions, and samples.
func TestWindowsEvents(t *testing.T) {
	dir := tempdir.New(t)
	file, trace := filepath.Join(dir, "out.json"), filepath.Join(dir, "run.nettrace")
	need(t, single10)
	env := []string{"SWHOST_LIMIT=120", "DOTNET_EnableEventPipe=1",
		"DOTNET_EventPipeOutputPath=" + windowsPath(trace), "DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:40000004000:5"}
	argv := wine(t, "seedwalk.exe", "record", "--mode", "probe", "--profiler", need(t, "out", "windows", "seedwalk_profiler.dll"), "--events", everyEvent, "--wait-min", "0",
		"--output", windowsPath(file), "--", need(t, "out", "windows", "launch.exe"), need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Waits.exe"), everyWindowsWait+",deeper,memory")
	r := run(t, 3*time.Minute, env, argv...)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) < 43 || r.code != 7 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
	}
	for i, offset := 0, uint64(fromRaw()); i < len(truth); i++ {
		truth[i].Before, truth[i].After = truth[i].Before*tickOfWine+offset, truth[i].After*tickOfWine+offset
	}
	f := readJSONProfile(t, file)
	f.wholeEvents(t)
	f.judge(t, truth)
	f.everything(t, strings.ReplaceAll(r.stdout, "\r", ""))
	t.Logf("%d waits of the truth", len(truth))
	a := waits.New()
	in, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := a.Read(in); err != nil {
		t.Error(err)
	}
	a.Finish()
	equalCounts(t, &f, a)
}

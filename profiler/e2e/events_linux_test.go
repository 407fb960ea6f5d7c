package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	eventpipe "github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

const everyWait = "mutex,events,semaphore,join,monitor,task,silence,many"

// eachRuntime runs a test on every runtime that there is, with a program's command line.
// The 10 is a single file whose framework is trimmed.
func eachRuntime(t *testing.T, program string, test func(t *testing.T, argv []string)) {
	t.Run("9.0.5", func(t *testing.T) { test(t, app(t, program)) })
	t.Run("10.0.9", func(t *testing.T) {
		t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
		test(t, []string{need(t, "out", "samples", program+"10")})
	})
}

// everyEvent is all that a recording can have.
const everyEvent = "cpu,wall,waits,locks,alloc,exception"

// Each wait of a program is there once, in a recording of everything from its very start,
// and beside the waits what it allocates and throws, and samples.
func TestEventsStart(t *testing.T) { eachRuntime(t, "Waits", eventsStart) }

func eventsStart(t *testing.T, program []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	file := filepath.Join(tempdir.New(t), "out.json")
	argv := append([]string{tool(t), "record", "--events", everyEvent, "--wait-min", "0", "--output", file, "--"}, append(program, everyWait+",deeper,memory")...)
	r := run(t, time.Minute, nil, argv...)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) < 38 || r.code != 7 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
	}
	f := readEvents(t, file)
	f.whole(t)
	f.judge(t, truth)
	f.everything(t, r.stdout)
}

// The published example: an owner has a mutex for three seconds. Each wait for it is
// there once, as long as the program's own clock says, its stack goes from the thread's
// start to where it waits. A wait that does not end is there too, as far as it went.
func TestEventsExample(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	file := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, time.Minute, nil, append([]string{tool(t), "record", "--events", "wall,waits", "--output", file, "--"}, app(t, "Waits", "open,example")...)...)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) != 3 {
		t.Fatalf("%d waits in the truth, %v\n%s", len(truth), err, r.stderr)
	}
	f := readEvents(t, file)
	f.whole(t)
	f.judge(t, truth)
	near, open := 0, 0
	for i := range f.Waits {
		w := &f.Waits[i]
		names := f.names(w.Stack)
		if s := &f.Stacks[w.Stack]; s.Open && inOrder(names, []string{"Waits.WaitEvent", "Waits.RunOpen (lambda)"}) && w.NS > 3e9 {
			open++
		}
		if !inOrder(names, []string{"System.Threading.WaitHandle.WaitOneNoCheck", "Waits.Waiter", "Waits.Measure", "start_thread"}) {
			continue
		}
		for _, own := range truth {
			if own.TID == f.Threads[f.Stacks[w.Stack].Thread].ID {
				diff := time.Duration(int64(own.After-own.Before) - w.NS)
				t.Logf("%v, the program says %v more", time.Duration(w.NS), diff)
				if diff >= 0 && diff <= 10*time.Millisecond {
					near++
				}
			}
		}
	}
	// Under load a thread may stand between its own clock and ours.
	if near < 2 || open != 1 {
		t.Errorf("%d of 3 waits are as long as the program says, %d are open", near, open)
	}
}

// paused is a program that has compiled its methods and waits for a line.
type paused struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
	out   bytes.Buffer
}

func startPaused(t *testing.T, argv ...string) *paused {
	t.Helper()
	p := &paused{cmd: exec.Command(argv[0], argv[1:]...)}
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	p.cmd.Stderr = os.Stderr
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in, p.lines = in, bufio.NewScanner(out)
	kill := time.AfterFunc(2*time.Minute, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() { kill.Stop(); p.cmd.Process.Kill(); p.cmd.Wait() })
	p.until("ready")
	return p
}

func (p *paused) until(line string) {
	for p.lines.Scan() && p.lines.Text() != line {
		p.out.WriteString(p.lines.Text() + "\n")
	}
}

func (p *paused) say(line string) { io.WriteString(p.in, line+"\n") }

// attachEvents records a running process until stop is called.
func attachEvents(t *testing.T, pid int, file, events string) (stop func()) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(tool(t), "record", "--pid", strconv.Itoa(pid), "--events", events, "--wait-min", "0", "--output", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	for range 1000 {
		if systemStateOf(t, pid).ours > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(1500 * time.Millisecond) // the session is there; the truth fails if it is not
	return func() {
		cmd.Process.Signal(unix.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("record ended with %v", err)
		}
		t.Logf("%s", log.String())
	}
}

// arrived tells that something was written to it.
type arrived struct{ atomic.Bool }

func (a *arrived) Write(b []byte) (int, error) {
	a.Store(true)
	return len(b), nil
}

// kindKey is what two recordings of one run are compared by.
type kindKey struct {
	thread uint64
	lock   bool
}

// equalCounts holds the recording's counts against an external trace's: of the waits
// that begin and end in the trace, by thread and kind.
func equalCounts(t *testing.T, f *eventsFile, a *waits.Analysis) {
	t.Helper()
	mine, theirs := map[kindKey]int{}, map[kindKey]int{}
	first, last := a.Trace.Time(a.First).UnixNano(), a.Trace.Time(a.Last).UnixNano()
	inside := 0
	for i := range a.Waits {
		w := &a.Waits[i]
		if w.State == waits.Complete && w.Depth == 0 {
			theirs[kindKey{w.Thread, w.Kind == waits.Lock}]++
		}
	}
	for i := range f.Waits {
		w := &f.Waits[i]
		s := &f.Stacks[w.Stack]
		if start := w.Start.UnixNano(); s.Open || start < first || start+w.NS > last {
			continue
		}
		mine[kindKey{f.Threads[s.Thread].ID, s.Event == "lock"}]++
		inside++
	}
	for k, n := range theirs {
		if mine[k] != n {
			t.Errorf("thread %d, lock %v: %d in the process, %d in the trace", k.thread, k.lock, mine[k], n)
		}
	}
	if len(mine) != len(theirs) || inside < 36 {
		t.Errorf("%d threads and kinds in the process, %d in the trace; %d waits", len(mine), len(theirs), inside)
	}
	t.Logf("%d waits of %d threads and kinds, as many as in the trace", inside, len(mine))
}

// All methods were compiled before we come, and a trace is taken from outside at the
// same time: the truth holds, and both count the same. Then the process is recorded
// once more.
func TestEventsAttach(t *testing.T) { eachRuntime(t, "Waits", eventsAttach) }

func eventsAttach(t *testing.T, program []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	p := startPaused(t, append(program, everyWait, "pause")...)
	pid := p.cmd.Process.Pid
	file := filepath.Join(tempdir.New(t), "out.json")
	before := systemStateOf(t, pid)
	stop := attachEvents(t, pid, file, "waits,locks")
	client, err := diagnostics.Process(pid)
	if err != nil {
		t.Fatal(err)
	}
	a := waits.New()
	ctx, end := context.WithCancel(context.Background())
	traced := make(chan error, 1)
	var begun arrived
	go func() { traced <- eventpipe.Run(ctx, client, a, eventpipe.Options{Keep: &begun}) }()
	for range 2000 {
		if begun.Load() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	p.say("go")
	p.until("done")
	end()
	if err := <-traced; err != nil {
		t.Error(err)
	}
	a.Finish()
	stop()
	truth, err := waittruth.Lines(&p.out)
	if err != nil || len(truth) < 38 {
		t.Fatalf("%d waits in the truth, %v", len(truth), err)
	}
	f := readEvents(t, file)
	f.whole(t)
	f.judge(t, truth)
	equalCounts(t, f, a)

	attachEvents(t, pid, file, "waits")()
	if again := readEvents(t, file); len(again.Stats.Events) != 1 {
		t.Errorf("the second time there is %+v", again.Stats)
	}
	if now := systemStateOf(t, pid); now.caught != before.caught || now.descriptors != before.descriptors || threadsNamed(pid) != "" {
		t.Errorf("it leaves %+v, before it there was %+v; %s", now, before, threadsNamed(pid))
	}
	p.say("end")
	if p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the program ended with %v", p.cmd.ProcessState)
	}
}

// threadsNamed are the threads of a process that are the probe's.
func threadsNamed(pid int) string {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	out := ""
	for _, k := range tasks {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/comm", pid, k.Name())); strings.TrimSpace(string(b)) == "seedwalk" {
			out += k.Name() + " "
		}
	}
	return out
}

// Allocations weigh what the program allocates, by type and place, and each exception
// is there with its type and its message.
func TestEventsAllocations(t *testing.T) { eachRuntime(t, "Events", eventsAllocations) }

func eventsAllocations(t *testing.T, program []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	file := filepath.Join(tempdir.New(t), "out.json")
	argv := append([]string{tool(t), "record", "--events", "alloc,exception", "--output", file, "--"}, program...)
	r := run(t, time.Minute, nil, argv...)
	if r.code != 7 {
		t.Fatalf("exit code %d\n%s", r.code, r.stderr)
	}
	f := readEvents(t, file)
	f.whole(t)
	f.allocated(t, r.stdout, "Events", "Events.Part", "Events.All", "Events.Main")
	// One event or the other: where .NET 10's samples are on, no tick comes.
	ticks, sampled := f.Stats.Counters["event_alloc_ticks"], f.Stats.Counters["event_alloc_sampled"]
	if nine := len(program) > 1; ticks+sampled < 500 || nine != (ticks > 0) || nine != (sampled == 0) {
		t.Errorf("%d ticks, %d samples", ticks, sampled)
	}
}

// The tool is killed in the middle of a recording of events, and the process recorded
// again at once, with events and without: no event comes twice, and the program, whose
// work is checked by itself, does not notice.
func TestEventsKilledAgain(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	self := need(t, "out", "samples", "Soak.exe")
	cmd := exec.Command(app(t, "Soak")[0], append(app(t, "Soak", "22")[1:], self)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	time.Sleep(3 * time.Second)
	dir := tempdir.New(t)
	pid := strconv.Itoa(cmd.Process.Pid)
	first := exec.Command(tool(t), "record", "--pid", pid, "--quiet", "--events", "waits,locks,exception", "--output", filepath.Join(dir, "first.json"))
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	first.Process.Kill()
	first.Wait()
	for i, events := range []string{"cpu", "cpu,waits,locks", "locks"} {
		file := filepath.Join(dir, fmt.Sprint(i, ".json"))
		r := run(t, time.Minute, nil, tool(t), "record", "--pid", pid, "--duration", "2s", "--quiet", "--wait-min", "0", "--events", events, "--output", file)
		if r.code != 0 {
			t.Fatalf("recording %d: exit code %d\n%s", i, r.code, r.stderr)
		}
		f := readEvents(t, file)
		c := f.Stats.Counters
		if events != "cpu" && (c["event_locks"] == 0 || c["event_early"] > 2*int64(len(f.Threads)) || c["event_inner"] > c["event_locks"]) {
			t.Errorf("recording %d: %+v", i, c)
		}
		t.Logf("recording %d: %d samples, %d waits, %d locks, %d early", i, f.Stats.Samples, c["event_waits"], c["event_locks"], c["event_early"])
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 42 || !strings.Contains(out.String(), "wrong results: 0") {
		t.Errorf("the program ended with %v: %s", err, out.String())
	}
}

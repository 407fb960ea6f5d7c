package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/diagnostics"
	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
	"github.com/seedwalk/seedwalk/internal/testkit/waittruth"
	"github.com/seedwalk/seedwalk/waits"
	eventpipe "github.com/seedwalk/seedwalk/waits/session"
)

const everyWait = "mutex,events,semaphore,join,monitor,task,silence,many"

// eventsFile is what a recording of events says.
type eventsFile struct {
	Stats struct {
		Samples, Complete int64
		Counters          map[string]int64
		Notes             []string
		Events            []struct {
			Event                            string
			Seen, Count, Complete, Sum, Open int64
		}
	}
	Threads []struct{ ID uint64 }
	Frames  []struct{ Name, Class string }
	Stacks  []struct {
		Thread, Owner        int
		Frames               []int
		Count, Sum           int64
		Complete, Open       bool
		Event, Type, Message string
		Gap                  string
	}
	Waits []struct {
		Stack int
		Start time.Time
		NS    int64
	}
}

func readEvents(t *testing.T, path string) *eventsFile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &eventsFile{}
	if err := json.Unmarshal(b, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// names are a stack's functions, leaf first.
func (f *eventsFile) names(stack int) (out []string) {
	for _, i := range f.Stacks[stack].Frames {
		out = append(out, f.Frames[i].Name)
	}
	return out
}

// whole: every stack ends at its thread's base, every managed frame has a name,
// nothing was lost.
func (f *eventsFile) whole(t *testing.T) {
	t.Helper()
	managed, events := 0, 0
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if s.Event == "" {
			continue
		}
		events += int(s.Count)
		if !s.Complete && !s.Open {
			t.Errorf("%d %s stacks are not complete: %s: %v", s.Count, s.Event, s.Gap, f.names(i))
		}
		for _, k := range s.Frames {
			if f.Frames[k].Class != "managed" {
				continue
			}
			managed++
			if n := f.Frames[k].Name; strings.HasPrefix(n, "method") || strings.HasPrefix(n, "managed code") {
				t.Errorf("a managed frame is called %q", n)
			}
		}
	}
	c := f.Stats.Counters
	for _, key := range []string{"crowded", "unwalked", "otherwise", "malformed"} {
		if n := c["event_"+key]; n != 0 {
			t.Errorf("%d events %s", n, key)
		}
	}
	f.cut(t)
	// On a busy machine the tool may come too late for some of many.
	if n := c["event_missed"]; n*10 > n+int64(events) || n > 0 && c["event_allocs"]+c["event_exceptions"] == 0 {
		t.Errorf("%d events of %d are lost", n, n+int64(events))
	}
	if c["event_delivery"] < 2 || managed == 0 {
		t.Errorf("%d frames of delivery, %d managed frames", c["event_delivery"], managed)
	}
	t.Logf("%d events, %d managed frames in distinct stacks; %+v", events, managed, c)
}

// cut: what delivers events is on no stack. It is the same for all, so that else events
// of different kinds would have the same function on top.
func (f *eventsFile) cut(t *testing.T) {
	t.Helper()
	of := map[string]string{}
	for i := range f.Stacks {
		s := &f.Stacks[i]
		if s.Event == "" || s.Open || len(s.Frames) == 0 {
			continue
		}
		kind, leaf := strings.TrimPrefix(s.Event, "monitor-"), f.Frames[s.Frames[0]].Name
		if other, ok := of[leaf]; ok && other != kind {
			t.Errorf("%s is on top of a %s and of a %s", leaf, kind, other)
		}
		of[leaf] = kind
	}
}

// toWorld is the offset from the program's clock to that of the recording.
func toWorld() int64 {
	var m unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	return time.Now().UnixNano() - m.Nano()
}

// eventOf is a truth's kind as a recording calls it.
func eventOf(expect string) []string {
	if strings.HasPrefix(expect, "Contention") {
		return []string{"lock"}
	}
	return []string{"wait", "monitor-wait"}
}

// slack between two clocks.
const slack = int64(time.Millisecond)

// judge holds a recording against what the program says of itself: each of its waits
// is there exactly once, of its kind, within its bounds and with its frames, and
// nothing where it did not wait.
func (f *eventsFile) judge(t *testing.T, truth []waittruth.Wait) {
	t.Helper()
	offset := toWorld()
	for _, w := range truth {
		found, nanos := 0, int64(0)
		for i := range f.Waits {
			g := &f.Waits[i]
			s := &f.Stacks[g.Stack]
			start := g.Start.UnixNano() - offset
			if f.Threads[s.Thread].ID != w.TID || s.Open || start < int64(w.Before)-slack || start+g.NS > int64(w.After)+slack {
				continue
			}
			if w.Expect == "none" || slices.Contains(eventOf(w.Expect), s.Event) && inOrder(f.names(g.Stack), w.Frames) {
				found++
				nanos += g.NS
			}
		}
		want := 1
		if w.Expect == "none" {
			want = 0
		}
		// Under load a thread may come late to what it waits for: by its own clock then.
		if own := min(w.Min*1e6, 0.9*float64(w.After-w.Before)); found != want || want > 0 && float64(nanos) < own {
			t.Errorf("%s of thread %d: %d waits of %.1f ms together, want %d of at least %.0f", w.Scenario, w.TID, found, float64(nanos)/1e6, want, own/1e6)
		}
	}
	f.sums(t)
}

// sums: no thread waits twice at a time.
func (f *eventsFile) sums(t *testing.T) {
	t.Helper()
	until := map[int]time.Time{}
	for i := range f.Waits {
		w := &f.Waits[i]
		thread := f.Stacks[w.Stack].Thread
		if w.Start.Add(time.Duration(slack)).Before(until[thread]) {
			t.Errorf("thread %d waits twice at %v", f.Threads[thread].ID, w.Start)
		}
		until[thread] = w.Start.Add(time.Duration(w.NS))
	}
}

// inOrder: want stands in names, in order, others between.
func inOrder(names, want []string) bool {
	for _, n := range names {
		if len(want) > 0 && (n == want[0] || strings.HasPrefix(n, want[0]+"<") || strings.HasPrefix(n, want[0]+"[")) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// eachRuntime runs a test on every runtime that there is, with a program's command line.
// The 10 is a single file whose framework is trimmed.
func eachRuntime(t *testing.T, program string, test func(t *testing.T, argv []string)) {
	t.Run("9.0.5", func(t *testing.T) { test(t, app(t, program)) })
	t.Run("10.0.9", func(t *testing.T) {
		t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
		test(t, []string{need(t, "out", "samples", program+"10")})
	})
}

// Each wait of a program is there once, in a recording from its very start.
func TestEventsStart(t *testing.T) { eachRuntime(t, "Waits", eventsStart) }

func eventsStart(t *testing.T, program []string) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	file := filepath.Join(tempdir.New(t), "out.json")
	argv := append([]string{tool(t), "record", "--events", "cpu,wall,waits,locks", "--wait-min", "0", "--output", file, "--"}, append(program, everyWait)...)
	r := run(t, time.Minute, nil, argv...)
	truth, err := waittruth.Lines(strings.NewReader(r.stdout))
	if err != nil || len(truth) < 38 || r.code != 7 {
		t.Fatalf("%d waits in the truth, %v, exit code %d\n%s", len(truth), err, r.code, r.stderr)
	}
	f := readEvents(t, file)
	f.whole(t)
	f.judge(t, truth)
	if f.Stats.Samples == 0 {
		t.Error("there are no samples beside the events")
	}
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
	if len(mine) != len(theirs) || inside < 38 {
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
	f.allocated(t, r.stdout)
	// One event or the other: where .NET 10's samples are on, no tick comes.
	ticks, sampled := f.Stats.Counters["event_alloc_ticks"], f.Stats.Counters["event_alloc_sampled"]
	if nine := len(program) > 1; ticks+sampled < 500 || nine != (ticks > 0) || nine != (sampled == 0) {
		t.Errorf("%d ticks, %d samples", ticks, sampled)
	}
}

// allocated holds a recording against what Events.cs says it has done.
func (f *eventsFile) allocated(t *testing.T, truth string) {
	t.Helper()
	// The runtime writes nested types without the one they stand in.
	types := map[string]string{"AllocateArrays": "System.Byte[]", "AllocateNodes": "Node", "AllocateLarge": "System.Double[]"}
	thrown := map[string][2]string{"Fault": {"Fault", "even"}, "InvalidOperationException": {"System.InvalidOperationException", "odd"}}
	for line := range strings.Lines(truth) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		want, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		got := int64(0)
		for i := range f.Stacks {
			s := &f.Stacks[i]
			switch x, exception := thrown[name]; {
			case exception && s.Event == "exception" && s.Type == x[0] && s.Message == x[1] && inOrder(f.names(i), []string{"Events.Throw", "Events.Exceptions"}):
				got += s.Count
			case !exception && s.Event == "allocation" && s.Type == types[name] && inOrder(f.names(i), []string{"Events." + name, "Events.Part", "Events.All", "Events.Main"}):
				got += s.Sum
			}
		}
		_, exact := thrown[name]
		if lost := f.Stats.Counters["event_missed"]; exact && lost > 0 && got < want {
			t.Logf("%s: %d events are lost", name, lost)
			got = min(want, got+lost)
		}
		t.Logf("%s: %d, the program says %d", name, got, want)
		if exact && got != want || !exact && (got < want*7/10 || got > want*13/10) {
			t.Errorf("%s: %d, the program says %d", name, got, want)
		}
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

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	eventpipe "github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

const everyWait = "mutex,events,semaphore,join,monitor,task,silence,many"

// everyEvent is all that a recording can have.
const everyEvent = "cpu,wall,waits,locks,alloc,exception"

// A recording of all events from the start of a program has each of the program's waits once. It also has
// the program's allocations, exceptions, and samples.
func TestEventsStart(t *testing.T) { eachRuntime(t, eventsStart) }

func eventsStart(t *testing.T, runtime string) {
	r := record(t, "--wait-min 0 --events "+everyEvent,
		on(t, runtime, "Waits", everyWait+",deeper,memory")...)
	truth := r.truth(t, 38)
	r.wholeEvents(t)
	r.judge(t, truth)
	r.everything(t, r.stdout)
}

// truth is the list that the program printed of its waits.
func (r *recording) truth(t *testing.T, least int) []waittruth.Wait {
	t.Helper()
	must.True(t, r.code == 7, "exit code %d\n%s", r.code, r.stderr)
	return truthOf(t, r.stdout, least)
}

func truthOf(t *testing.T, said string, least int) []waittruth.Wait {
	t.Helper()
	truth, err := waittruth.Lines(strings.NewReader(said))
	must.True(t, err == nil && len(truth) >= least,
		"%d waits in the truth, want %d, %v", len(truth), least, err)
	return truth
}

// The published example: an owner has a mutex for three seconds. Each wait for it is there once, with the
// duration of the program's own clock and a stack from the thread's start to the wait. A wait that does not
// end is there too, up to the end of the recording.
func TestEventsExample(t *testing.T) {
	r := record(t, "--events wall,waits", app(t, "Waits", "open,example")...)
	f, truth := r.jsonProfile, truthOf(t, r.stdout, 3)
	f.wholeEvents(t)
	f.judge(t, truth)
	near, open := 0, 0
	for i := range f.Waits {
		w := &f.Waits[i]
		names := f.stackNames(w.Stack)
		if s := &f.Stacks[w.Stack]; s.Open &&
			inOrder(names, []string{"Waits.WaitEvent", "Waits.RunOpen (lambda)"}) && w.NS > 3e9 {
			open++
		}
		if !inOrder(names, []string{"System.Threading.WaitHandle.WaitOneNoCheck", "Waits.Waiter",
			"Waits.Measure", "start_thread"}) {
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
	// Under load a thread may be interrupted between its own clock and ours.
	expect.True(t, near >= 2 && open == 1,
		"%d of 3 waits are as long as the program says, %d are open", near, open)
}

// attachEvents records a running process until stop is called.
func attachEvents(t *testing.T, p *process, file, events string) (stop func()) {
	t.Helper()
	tool := start(t, tool(t), "record", "--pid", p.id, "--events", events,
		"--wait-min", "0", "--output", file)
	until(t, "the probe is there", func() bool { return systemStateOf(t, p.pid).ours > 0 })
	time.Sleep(1500 * time.Millisecond) // the session is there; the truth fails if not
	return func() { tool.stop(unix.SIGINT) }
}

// arrived records that something was written to it.
type arrived struct{ atomic.Bool }

func (a *arrived) Write(b []byte) (int, error) {
	a.Store(true)
	return len(b), nil
}

// kindKey is the key by which two recordings of one run are compared.
type kindKey struct {
	thread uint64
	lock   bool
}

// equalCounts compares the recording's counts with an external trace's: of the waits that begin and end
// within the trace, by thread and kind.
func equalCounts(t *testing.T, f *jsonProfile, a *waits.Analysis) {
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
		start := w.Start.UnixNano()
		if s.Event == "exception" || s.Open || start < first || start+w.NS > last {
			continue
		}
		mine[kindKey{f.Threads[s.Thread].ID, s.Event == "lock"}]++
		inside++
	}
	for k, n := range theirs {
		expect.True(t, mine[k] == n,
			"thread %d, lock %v: %d in the process, %d in the trace", k.thread, k.lock, mine[k], n)
	}
	expect.Figures(t, len(mine) == len(theirs) && inside >= 36,
		"%d threads and kinds in the process, %d in the trace; %d waits", len(mine), len(theirs), inside)
}

// All methods were compiled before we attach, and a trace is taken from outside at the same time: each wait
// of the truth is found, and both have the same counts. Then the process is recorded once more.
func TestEventsAttach(t *testing.T) { eachRuntime(t, eventsAttach) }

func eventsAttach(t *testing.T, runtime string) {
	p, _ := waiting(t, "ready", on(t, runtime, "Waits", everyWait, "pause")...)
	pid := p.pid
	file := filepath.Join(tempdir.New(t), "out.json")
	before := systemStateOf(t, pid)
	stop := attachEvents(t, p, file, "waits,locks")
	client := must.Get(diagnostics.Process(pid))(t)
	a := waits.New()
	ctx, end := context.WithCancel(context.Background())
	traced := make(chan error, 1)
	var begun arrived
	go func() { traced <- eventpipe.Run(ctx, client, a, eventpipe.Options{Keep: &begun}) }()
	until(t, "the trace begins", begun.Load)
	time.Sleep(500 * time.Millisecond)
	p.say("go")
	said := p.until("done")
	end()
	expect.Equal(t, <-traced, nil)
	a.Finish()
	stop()
	f := readJSONProfile(t, file)
	f.wholeEvents(t)
	f.judge(t, truthOf(t, strings.Join(said, "\n"), 38))
	equalCounts(t, &f, a)

	attachEvents(t, p, file, "waits")()
	again := readJSONProfile(t, file)
	expect.True(t, len(again.Recording.Events) == 3 && again.Recording.Events[0].Event == "wait",
		"the second time there is %+v", again.Figures)
	now := systemStateOf(t, pid)
	expect.True(t, now.caught == before.caught && now.descriptors == before.descriptors &&
		threadsNamed(pid) == "", "it leaves %+v, before it there was %+v; %s", now, before, threadsNamed(pid))
	p.say("end")
	expect.Equal(t, p.wait(), 7, "exit code")
}

// threadsNamed are the names of a process's threads that belong to the probe.
func threadsNamed(pid int) string {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	out := ""
	for _, k := range tasks {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/comm", pid,
			k.Name())); strings.TrimSpace(string(b)) == "seedwalk" {
			out += k.Name() + " "
		}
	}
	return out
}

// Allocations have the program's weights, by type and place, and each exception is there with its type and
// message.
func TestEventsAllocations(t *testing.T) { eachRuntime(t, eventsAllocations) }

func eventsAllocations(t *testing.T, runtime string) {
	f := record(t, "--events alloc,exception", on(t, runtime, "Events")...)
	must.True(t, f.code == 7, "exit code %d\n%s", f.code, f.stderr)
	f.wholeEvents(t)
	f.allocated(t, f.stdout, "Events", "Events.Part", "Events.All", "Events.Main")
	// Only one of the two events: where .NET 10's samples are on, there is no tick.
	ticks, sampled := f.Counters["event_alloc_ticks"], f.Counters["event_alloc_sampled"]
	if nine := runtime == needs.Net9; ticks+sampled < 500 || nine != (ticks > 0) || nine != (sampled == 0) {
		t.Errorf("%d ticks, %d samples", ticks, sampled)
	}
}

// The tool is killed in the middle of a recording of events, and the process is recorded again at once, with
// events and without. No event appears twice, and the program, which checks its own work, works as without
// us.
func TestEventsKilledAgain(t *testing.T) {
	p := start(t, app(t, "Soak", "22", need(t, "out", "samples", "Soak.exe"))...)
	time.Sleep(3 * time.Second)
	first := start(t, tool(t), "record", "--pid", p.id, "--quiet", "--events", "waits,locks,exception",
		"--output", filepath.Join(tempdir.New(t), "first.json"))
	time.Sleep(3 * time.Second)
	first.Process.Kill()
	first.wait()
	for i, events := range []string{"cpu", "cpu,waits,locks", "locks"} {
		f := record(t, "--duration 2s --quiet --wait-min 0 --pid "+p.id+" --events "+events)
		f.ok(t)
		c := f.Counters
		if events != "cpu" && (c["event_locks"] == 0 || c["event_early"] > 2*int64(len(f.Threads)) ||
			c["event_inner"] > c["event_locks"]) {
			t.Errorf("recording %d: %+v", i, c)
		}
		t.Logf("recording %d: %d samples, %d waits, %d locks, %d early", i, f.Samples, c["event_waits"],
			c["event_locks"], c["event_early"])
	}
	expect.True(t, p.wait() == 42 && strings.Contains(p.out.String(), "wrong results: 0"),
		"the program ended with %v: %s", p.err, p.out.String())
}

// Another vendor's profiler has its own session for the same events: each session receives them, and each
// event is counted once.
func TestEventsBesideSession(t *testing.T) {
	second := need(t, "out", "samples", "libsecond.so")
	isMain, isBeside := secondAs(second)
	for _, c := range []struct {
		name    string // what the other is
		env     map[string]string
		runtime string
		judge   func(t *testing.T, runtime string)
	}{
		{"net9 main waits", isMain, needs.Net9, waitsBeside},
		{"net10 beside waits", isBeside, needs.Net10, waitsBeside},
		{"net9 beside allocations", isBeside, needs.Net9, allocationsBeside},
		{"net10 main allocations", isMain, needs.Net10, allocationsBeside},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			t.Setenv("SECOND_EVENTS", "1")
			c.judge(t, c.runtime)
		})
	}
}

func recordBeside(t *testing.T, events string, argv []string) *recording {
	t.Helper()
	counts := filepath.Join(tempdir.New(t), "counts")
	t.Setenv("SECOND_COUNTS", counts)
	r := record(t, "--wait-min 0 --events "+events, argv...)
	if h := readHeard(t, counts); r.code != 7 || h.events < 100 {
		t.Errorf("exit code %d; the other's session gave it %d events\n%s", r.code, h.events, r.stderr)
	}
	r.wholeEvents(t)
	return r
}

func waitsBeside(t *testing.T, runtime string) {
	r := recordBeside(t, "waits,locks", on(t, runtime, "Waits", "mutex,monitor,many"))
	r.judge(t, r.truth(t, 20))
}

func allocationsBeside(t *testing.T, runtime string) {
	r := recordBeside(t, "alloc,exception", on(t, runtime, "Events"))
	r.allocated(t, r.stdout, "Events", "Events.Part", "Events.All", "Events.Main")
}

package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// stretchRun is how long the program of TestAgentStretches runs.
const stretchRun = 45 * time.Second

// Threads that switch often have perf events for a twentieth of the time only. Each method still has its
// share, and the process its CPU time.
func TestAgentStretches(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root may sample the kernel everywhere")
	}
	folder := t.TempDir()
	target := start(t, app(t, "Exact", "delay10", fmt.Sprint(stretchRun.Seconds()))...)
	port := freePorts(t)[0]
	agent := start(t, tool(t), "agent", "--pid", target.id, "--rate", "49", "--interval", "15s", "--folder",
		folder, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "100")
	watched := watchEvents(t, agent.pid, target.pid, stretchRun-3*time.Second)
	if text := metricsOf(t, port); !strings.Contains(text, "\nseedwalk_agent_targets_in_stretches 1\n") {
		t.Errorf("no process is counted as sampled in stretches: %s", text)
	}
	must.Equal(t, target.wait(), 0, "exit code", target.errs.String())
	agent.stop(syscall.SIGTERM)
	truth := must.Get(parseExact(target.out.String()))(t)
	var runs []measurement
	compared := 0
	recordings := must.Get(filepath.Glob(filepath.Join(folder, "*.swrec")))(t)
	must.True(t, len(recordings) > 1, "%d recordings", len(recordings))
	for _, path := range recordings[1:] { // stretches begin in the first one
		out := filepath.Join(t.TempDir(), "out.json")
		must.Run(t, exec.Command(tool(t), "convert", path, "-o", out))
		p := readJSONProfile(t, out)
		began := must.Get(time.Parse(time.RFC3339Nano, p.Start))(t)
		m := measurement{truth: truth, seen: p.times(truth.methods())}
		expect.True(t, p.Counters["clock_stretches"] == 1,
			"%s does not say that it was made in stretches", path)
		m.truth.process = watched.used(began, began.Add(time.Duration(p.DurationNanos)))
		t.Logf("%s: %.0f samples of the methods, %.0f ms of the process, %.0f ms in the profile", p.Start,
			m.seen.samples, m.truth.process/1e6, m.seen.stated/1e6)
		runs = append(runs, m)
		if m.truth.process == 0 { // the process ended before the interval did
			continue
		}
		compared++
		if off := math.Abs(m.seen.stated - m.truth.process); off > 0.02*m.truth.process+2e7 {
			t.Errorf("the profile differs by %.0f ms", off/1e6)
		}
	}
	expect.True(t, compared != 0, "no interval was compared with the clock of the process")
	for _, method := range truth.methods() {
		v := judgeShare(runs, method, biasLimitFull, biasErrorsOnce)
		expect.Figures(t, v.ok(), "%s: truth %.1f %%, seedwalk %.1f %% by %.0f samples, limit %.1f points",
			method, 100*v.truth, 100*v.mean, v.samples, 100*v.limit)
	}
	expect.Figures(t, watched.share >= 0.005 && watched.share <= 0.15,
		"threads have events for %.0f %% of the time, want 5 %%", 100*watched.share)
}

// watchedEvents is what watchEvents has seen.
type watchedEvents struct {
	share float64 // of the time in which more threads had events than usual
	at    []time.Time
	cpu   []float64 // of the process, nanoseconds
}

// watchEvents counts the perf events of the agent that records one process. The first 15 s do not count.
func watchEvents(t *testing.T, agent, pid int, d time.Duration) (w watchedEvents) {
	t.Helper()
	began, counts := time.Now(), []int(nil)
	for time.Since(began) < d {
		_, events := openFiles(agent)
		if time.Since(began) > 15*time.Second {
			counts = append(counts, events)
		}
		w.at, w.cpu = append(w.at, time.Now()), append(w.cpu, float64(usedCPU(pid)))
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(counts)
	rare := counts[len(counts)/2] // rings, and threads that switch rarely
	first, _ := slices.BinarySearch(counts, rare+len(perfevent.CPUs()))
	w.share = 1 - float64(first)/float64(len(counts))
	return w
}

// openFiles counts the descriptors of a process: perf events, and all others.
func openFiles(pid int) (others, events int) {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		switch to, err := os.Readlink(fd); {
		case err != nil: // it has been closed
		case strings.Contains(to, "perf_event"):
			events++
		default:
			others++
		}
	}
	return others, events
}

// used is the CPU time between two times, 0 if it is not known up to the end.
func (w *watchedEvents) used(from, to time.Time) float64 {
	var first, last float64
	for i, at := range w.at {
		if at.Before(from) {
			first = w.cpu[i]
		}
		if last = w.cpu[i]; at.After(to) {
			return last - first
		}
	}
	return 0
}

// In a recording, threads that yield their processors very often have stretches. Their stacks are complete.
func TestStretches(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root may sample the kernel everywhere")
	}
	p := record(t, "--rate 200", app(t, "Exact", "delay10", "6")...)
	p.whole(t, 200, 990)
	expect.True(t, p.Counters["clock_stretches"] == 1 && p.Counters["copied"] > 0,
		"no thread was sampled in stretches: %v", p.Counters)
	expect.True(t, p.has("Exact.DelayA") && p.has("Exact.DelayB"), "methods are missing")
}

// Threads that wait very often have CPU timers. Their stacks are complete.
func TestTimersOfWaiting(t *testing.T) {
	for _, clock := range []string{clockPerf, clockRandom} {
		p := record(t, "--rate 200 --clock "+clock, app(t, "Cost", "server", "100000")...)
		p.whole(t, 200, 990)
		expect.True(t, p.Counters["clock_timers"] == 1,
			"%s clock: no thread was sampled by a CPU timer: %v", clock, p.Counters)
		expect.True(t, p.has("Cost.Ask") && p.has("Cost.Serve"), "%s clock: methods are missing", clock)
	}
}

package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	recorder "github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The agent records processes as they come and go, and its profiles reach a backend that fails at first. A
// recorded process continues to run.
func TestAgent(t *testing.T) {
	var mu sync.Mutex
	requests, methods := 0, map[string]int{} // by process
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests <= 2 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		f, _, err := r.FormFile("profile")
		if err != nil {
			t.Error(err)
			return
		}
		p, err := profile.Parse(f)
		if err != nil {
			t.Error(err)
			return
		}
		for _, fn := range p.Function {
			if strings.Contains(fn.Name, "Demo.") {
				methods[r.FormValue("name")]++
			}
		}
	}))
	defer srv.Close()
	folder, port := t.TempDir(), freePorts(t)[0]
	stays, dies := start(t, app(t, "Demo", "41")...), start(t, app(t, "Demo", "42")...)
	agent := start(t, tool(t), "agent", "--command", "Demo.exe 4[123]", "--interval", "5s", "--folder",
		folder, "--push", srv.URL, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "100")
	time.Sleep(6 * time.Second)
	dies.Process.Kill() // in the middle of an interval
	comes := start(t, app(t, "Demo", "43")...)
	names := func() (all int) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range []*process{stays, comes} {
			for name := range methods {
				if strings.Contains(name, "pid="+c.id+",") {
					all++
				}
			}
		}
		return all
	}
	for end := time.Now().Add(25 * time.Second); names() < 2 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	link := "/targets/" + stays.id
	list, graph := served(t, port, "/targets"), served(t, port, link)
	expect.True(t, strings.Contains(list, link) && strings.Contains(graph, "Demo."),
		"the page has no link to %s, or no flame graph there: %s", link, list)
	agent.stop(syscall.SIGTERM)
	if n := names(); n != 2 {
		t.Errorf("%d of 2 processes reached the backend: %v\n%s", n, methods, agent.errs.String())
	}
	expect.True(t, !stays.gone(), "the recorded process has ended")
	recordings, _ := filepath.Glob(filepath.Join(folder, "*-Demo.swrec"))
	must.True(t, len(recordings) >= 3, "recordings: %v", recordings)
	r := seedwalk(t, "report", "--format", "text", "--output", "-", recordings[0])
	r.ends(t, 0, r.stdout, "Demo.")
	parts, _ := filepath.Glob(filepath.Join(folder, "spool", "*.part*"))
	expect.True(t, len(parts) == 0, "left in the spool: %v", parts)
}

// With the capabilities of the manifest, the agent records a process of another user that has its own files,
// as in a pod. Without one of those that docs/agent.md calls necessary, it records nothing.
func TestAgentCapabilities(t *testing.T) {
	needs.Command(t, "unshare", "setpriv")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root can take capabilities away")
	}
	manifest := must.Get(os.ReadFile(filepath.Join(needs.Root(t), "docs",
		"deploy", "seedwalk-agent.yaml")))(t)
	all := strings.Split(string(regexp.MustCompile(`add: \[(.*)\]`).FindSubmatch(manifest)[1]), ", ")
	argv := append([]string{"unshare", "-m", "sh", "-c",
		ownTemp + ` && chmod 1777 /tmp && exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"`, "sh",
		needs.Root(t)}, app(t, "Demo", "61")...)
	pid := start(t, argv...).pid
	time.Sleep(time.Second)
	if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline",
		pid)); !strings.HasPrefix(string(line), argv[7]) {
		t.Skip("SKIPPED-CHECK: another user cannot run a program of this tree")
	}
	expect.True(t, recordsWith(t, pid, all, 20*time.Second), "nothing is recorded with %v", all)
	for _, name := range []string{"SYS_PTRACE", "DAC_OVERRIDE", "CHOWN"} {
		rest := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == name })
		expect.True(t, len(rest) == len(all)-1 && !recordsWith(t, pid, rest, 4*time.Second),
			"%s is not needed", name)
	}
}

// recordsWith reports whether an agent with these capabilities begins to record a process.
func recordsWith(t *testing.T, pid int, capabilities []string, limit time.Duration) bool {
	t.Helper()
	set := "-all,+" + strings.ToLower(strings.Join(capabilities, ",+"))
	folder := t.TempDir()
	agent := start(t, "setpriv", "--bounding-set", set, "--inh-caps", set, tool(t), "agent", "--pid",
		fmt.Sprint(pid), "--interval", "5s", "--folder", folder, "--listen", "", "--cpu", "100")
	defer agent.stop(syscall.SIGTERM)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		partial, _ := filepath.Glob(filepath.Join(folder, "*.swrec.partial"))
		for _, p := range partial {
			if info, err := os.Stat(p); err == nil && info.Size() > 4096 { // it has samples
				return true
			}
		}
	}
	return false
}

// On a full disk the agent reports why nothing is kept, and leaves no part of a file. It goes on once there
// is room, in the same session.
func TestAgentFullDisk(t *testing.T) {
	folder, port := t.TempDir(), freePorts(t)[0]
	if err := syscall.Mount("seedwalk", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("SKIPPED-CHECK: no small file system can be mounted: %v", err)
	}
	defer syscall.Unmount(folder, syscall.MNT_DETACH)
	filler := filepath.Join(folder, "filler")
	must.True(t, os.WriteFile(filler, make([]byte, 2<<20), 0o600) != nil, "the disk is not full")
	target := idleProcess(t, "timer")
	agent := start(t, tool(t), "agent", "--pid", target.id, "--interval", "5s", "--folder", folder, "--push",
		fmt.Sprintf("otlp+http://127.0.0.1:%d", freePorts(t)[0]),
		"--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "100")
	counts := func(line string) bool {
		return strings.Contains(agent.errs.String(), "serving") &&
			strings.Contains(metricsOf(t, port), "\nseedwalk_agent_"+line)
	}
	until(t, "a recording has failed",
		func() bool {
			return counts(`failures_total{reason="`) &&
				!counts(`failures_total{reason="write"} 0`)
		})
	left, _ := filepath.Glob(filepath.Join(folder, "*.swrec*"))
	said := agent.errs.String()
	expect.True(t, len(left) == 0 && strings.Contains(said, "(write)") &&
		strings.Contains(said, "no space left"), "%v left; messages:\n%s", left, said)
	os.Remove(filler)
	until(t, "there are recordings", func() bool { return !counts("recordings_total 0\n") })
	agent.stop(syscall.SIGTERM)
	kept, _ := filepath.Glob(filepath.Join(folder, "*.swrec"))
	expect.True(t, len(kept) > 0 && !strings.Contains(agent.errs.String(), "(begin)") &&
		!strings.Contains(agent.errs.String(), "(end)"), "%v kept; messages:\n%s", kept, agent.errs.String())
}

// The agent begins a new session when its rate changes or a recording fails. Nothing remains of the old one:
// no goroutine, descriptor, or mapping, and almost no memory.
func TestSessionsLeaveNothing(t *testing.T) {
	const sessions, most = 6, 2 << 20 // bytes for all of them; the tables of one session have more
	p := idleProcess(t, "channel-idle")
	began := 0
	session := func() {
		stop := make(chan struct{})
		_, err := recorder.Run(options.Options{PID: p.pid, Rate: 19, WallEvery: time.Second, Stop: stop,
			Relay: func() { began++; time.AfterFunc(time.Second, func() { close(stop) }) }})
		must.True(t, err == nil && began != 0, "%v", err)
	}
	session()
	session() // loads what is loaded only once
	before := heldNow(t)
	for range sessions {
		session()
	}
	after := heldNow(t)
	for i := 0; i < 3 && after.bytes > before.bytes+most; i++ { // the last session may end late
		after = heldNow(t)
	}
	expect.Figures(t, after.goroutines <= before.goroutines && after.descriptors <= before.descriptors &&
		after.mappings <= before.mappings && after.bytes <= before.bytes+most,
		"%d sessions leave %+v, before %+v", sessions, after, before)
}

// held is what this process holds.
type held struct {
	goroutines, descriptors, mappings int // mappings of files
	bytes                             int64
}

// heldNow waits until goroutines of earlier recordings have ended.
func heldNow(t *testing.T) (h held) {
	t.Helper()
	for range 10 { // cleanups of closed files run between collections
		time.Sleep(200 * time.Millisecond)
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
	maps, _ := os.ReadFile("/proc/self/maps")
	return held{runtime.NumGoroutine(), len(fds),
		strings.Count(string(maps), "seedwalk-probe"), int64(m.HeapAlloc)}
}

var agentProcesses = flag.Int("agent-processes", 24, "how many short processes start and end under the agent")

// Short processes start and end under the agent, at any moment of its work. Each ends as without the agent,
// and the agent keeps none of their descriptors, mappings, files, or targets.
func TestAgentShortProcesses(t *testing.T) {
	argv := needs.Simple(t, needs.Net9, needs.Sleep)
	program, temp := argv[len(argv)-1], t.TempDir()
	port := freePorts(t)[0]
	agent := startIn(t, []string{"TMPDIR=" + temp}, tool(t), "agent", "--command", regexp.QuoteMeta(program),
		"--interval", "5s", "--folder", t.TempDir(), "--listen",
		fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "200")
	atOnce := min(max(8, *agentProcesses/40), 24)
	// Go's own descriptors and heap are allocated in the first
	shortProcesses(t, argv, min(max(8, *agentProcesses/4), 200), atOnce)
	descriptors, mappings := agentUses(t, agent.pid, port)
	shortProcesses(t, argv, *agentProcesses, atOnce)
	descriptorsAfter, mappingsAfter := agentUses(t, agent.pid, port)
	expect.True(t, descriptorsAfter <= descriptors,
		"%d descriptors, before %d", descriptorsAfter, descriptors)
	for file, n := range mappingsAfter {
		expect.True(t, n <= max(1, mappings[file]) && !strings.Contains(file, "seedwalk-probe"),
			"%d mappings of %s, before %d", n, file, mappings[file])
	}
	text := metricsOf(t, port)
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "seedwalk_agent_") && strings.Contains(line, "_total") ||
			strings.HasPrefix(line, "seedwalk_agent_memory") {
			t.Log(line)
		}
	}
	t.Logf("%d descriptors, mappings %v, before %v", descriptorsAfter, mappingsAfter, mappings)
	agent.stop(syscall.SIGTERM)
	left, _ := filepath.Glob(filepath.Join(temp, "*"))
	if len(left) > 1 || strings.Contains(agent.errs.String(), "panic") { // one is the probe's folder
		t.Errorf("left behind: %v; messages:\n%s", left, agent.errs.String())
	}
}

// shortProcesses runs n processes of one to five seconds, some of them at once.
func shortProcesses(t *testing.T, argv []string, n, atOnce int) {
	var wait sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i := range n {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			args := append(argv[1:len(argv):len(argv)], fmt.Sprint(1000+4000*(i*7919%n)/n))
			out, err := exec.Command(argv[0], args...).CombinedOutput()
			expect.True(t, err == nil, "process %d: %v\n%s", i, err, out)
		})
	}
	wait.Wait()
}

// agentUses counts the descriptors of the agent once it has no targets, and its mappings of each file. An
// image that processes have mapped stays mapped once, until Go's next garbage collection.
func agentUses(t *testing.T, pid, port int) (descriptors int, mappings map[string]int) {
	t.Helper()
	until(t, "the agent has no targets",
		func() bool { return strings.Contains(metricsOf(t, port), "\nseedwalk_agent_targets 0\n") })
	http.DefaultClient.CloseIdleConnections()
	time.Sleep(500 * time.Millisecond)
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	mappings = map[string]int{}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 5 && f[4] != "0" { // of a file: Go's heap may grow
			mappings[f[5]]++
		}
	}
	return len(fds), mappings
}

func metricsOf(t *testing.T, port int) string { return served(t, port, "/metrics") }

// served is what the agent answers.
func served(t *testing.T, port int, path string) string {
	t.Helper()
	resp := must.Get(http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path)))(t)
	defer resp.Body.Close()
	return string(must.Get(io.ReadAll(resp.Body))(t))
}

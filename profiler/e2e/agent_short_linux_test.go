package e2e

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var agentProcesses = flag.Int("agent-processes", 24, "how many short processes start and end under the agent")

// Short processes start and end under the agent, at any moment of its work. Each ends as without the agent,
// and the agent keeps none of their descriptors, mappings, files, or targets.
func TestAgentShortProcesses(t *testing.T) {
	argv := needs.Simple(t, needs.Net9, needs.Sleep)
	program, temp := argv[len(argv)-1], t.TempDir()
	port := freePorts(t)[0]
	agent := startIn(t, []string{"TMPDIR=" + temp}, tool(t), "agent", "--command", regexp.QuoteMeta(program), "--interval", "5s", "--folder", t.TempDir(), "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--cpu", "200")
	// Go's own descriptors and heap are allocated in the first
	shortProcesses(t, argv, max(8, *agentProcesses/4))
	descriptors, mappings := agentUses(t, agent.pid, port)
	shortProcesses(t, argv, *agentProcesses)
	descriptorsAfter, mappingsAfter := agentUses(t, agent.pid, port)
	if descriptorsAfter > descriptors {
		t.Errorf("%d descriptors, before %d", descriptorsAfter, descriptors)
	}
	for file, n := range mappingsAfter {
		if n > max(1, mappings[file]) || strings.Contains(file, "seedwalk-probe") {
			t.Errorf("%d mappings of %s, before %d", n, file, mappings[file])
		}
	}
	text := metricsOf(t, port)
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "seedwalk_agent_") && strings.Contains(line, "_total") || strings.HasPrefix(line, "seedwalk_agent_memory") {
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

// shortProcesses runs n processes of one to five seconds, 8 at once.
func shortProcesses(t *testing.T, argv []string, n int) {
	var wait sync.WaitGroup
	room := make(chan struct{}, 8)
	for i := range n {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			args := append(argv[1:len(argv):len(argv)], fmt.Sprint(1000+4000*(i*7919%n)/n))
			if out, err := exec.Command(argv[0], args...).CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	wait.Wait()
}

// agentUses counts the descriptors of the agent once it has no targets, and its mappings of each file. An
// image that processes have mapped stays mapped once, for the next of them.
func agentUses(t *testing.T, pid, port int) (descriptors int, mappings map[string]int) {
	t.Helper()
	until(t, "the agent has no targets", func() bool { return strings.Contains(metricsOf(t, port), "\nseedwalk_agent_targets 0\n") })
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
	text := must.Get(io.ReadAll(resp.Body))(t)
	return string(text)
}

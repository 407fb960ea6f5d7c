package e2e

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var agentLong = flag.Duration("agent-long", 0, "how long TestAgentHour and TestAgentFlat run; 0 leaves them out")

// idleModes are programs of Healthy.cs that sleep most of the time.
var idleModes = []string{"event-idle", "channel-idle", "socket-idle", "delays", "periodic", "monitor-pulse", "event-idle", "event-slim", "join", "wait-any",
	"socket-idle", "channel-idle", "wait-any", "delay-for-ever", "source-for-ever", "main-blocks", "main-blocks-on-server", "socket-blocking", "timers-slow", "child"}

// For an hour two processes are recorded at the default rate, and the collector, the agent, and
// the processes restart in turn. Each interval arrives once, and equals the recording.
func TestAgentHour(t *testing.T) {
	long := longRun(t)
	path, reader := collectorTools(t)
	folder, arrived, ports := t.TempDir(), t.TempDir(), freePorts(t)
	config := fmt.Sprintf(collectorConfig, ports[0], ports[1], arrived)
	collect := func() *process {
		return start(t, path, "--feature-gates=service.profilesSupport", "--config", config)
	}
	agent := func(protocol, port int) *process {
		scheme := []string{"otlp+http", "otlp+grpc"}[protocol]
		return start(t, tool(t), "agent", "--command", longMark(t)+"$", "--folder", folder, "--push", fmt.Sprintf("%s://127.0.0.1:%d", scheme, ports[protocol]),
			"--listen", fmt.Sprintf("127.0.0.1:%d", port))
	}
	port := freePorts(t)[0]
	targets := []*process{idleProcess(t, "timer"), idleProcess(t, "channel-busy")}
	collector, recorder := collect(), agent(0, port)
	end := time.Now().Add(long)
	for round := 0; time.Now().Before(end); round++ {
		time.Sleep(long / 13)
		showAgent(t, recorder.pid, port)
		switch round % 4 {
		case 0: // the collector is away longer than an interval
			collector.stop(syscall.SIGTERM)
			time.Sleep(min(long/13, 90*time.Second))
			collector = collect()
		case 1:
			targets[0].Process.Kill()
			targets[0] = idleProcess(t, "timer")
		case 2:
			recorder.stop(syscall.SIGTERM)
			recorder = agent(round/4%2, port)
		case 3:
			targets[1].Process.Kill()
			targets[1] = idleProcess(t, "channel-busy")
		}
	}
	recorder.stop(syscall.SIGTERM)
	compareArrived(t, reader, folder, arrived, "Healthy")
	compareTimes(t, reader, arrived)
}

// Twenty processes are recorded at the default rate. Their own use of a core grows by less than
// 0.5 % each, none dies, nothing fails, and the agent's use, memory, and descriptors stay where they are.
func TestAgentFlat(t *testing.T) {
	long := longRun(t)
	var targets []*process
	for _, mode := range idleModes {
		targets = append(targets, idleProcess(t, mode))
	}
	time.Sleep(5 * time.Second)
	alone := coreShares(t, targets, long/10)
	port := freePorts(t)[0]
	recorder := start(t, tool(t), "agent", "--command", longMark(t)+"$", "--folder", t.TempDir(), "--listen", fmt.Sprintf("127.0.0.1:%d", port))
	time.Sleep(long / 10)
	first := showAgent(t, recorder.pid, port)
	shares := coreShares(t, append(targets, recorder), long*8/10)
	last := showAgent(t, recorder.pid, port)
	for i, mode := range idleModes {
		t.Logf("%-22s %6.2f %% of a core alone, %6.2f %% recorded", mode, 100*alone[i], 100*shares[i])
		if grown := shares[i] - alone[i]; grown > 0.005+0.1*alone[i] {
			t.Errorf("%s uses %.2f %% of a core more", mode, 100*grown)
		}
	}
	own := shares[len(targets)]
	t.Logf("the agent: %.2f %% of a core, %d -> %d MB", 100*own, first.memory>>20, last.memory>>20)
	if own > 0.02 || last.memory > first.memory*5/4+8<<20 || last.descriptors > first.descriptors {
		t.Errorf("the agent uses %.2f %% of a core, %+v, before %+v", 100*own, last, first)
	}
	for i, p := range targets {
		if p.gone() {
			t.Errorf("%s has died", idleModes[i])
		}
	}
	if recorder.stop(syscall.SIGTERM); last.failures > 0 {
		t.Errorf("%d failures:\n%s", last.failures, recorder.errs.String())
	}
}

func longRun(t *testing.T) time.Duration {
	if *agentLong == 0 {
		t.Skip("SKIPPED-CHECK: a long run; make agent-long")
	}
	return *agentLong
}

// longMark is the last argument of a test's processes, by which the test's agent finds them.
func longMark(t *testing.T) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// idleProcess starts a program of Healthy.cs, which ends with the test.
func idleProcess(t *testing.T, mode string) *process {
	t.Helper()
	p := startIn(t, []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"}, app(t, "Healthy", mode, longMark(t))...)
	p.until("ready")
	return p
}

// coreShares measures which share of a core each process uses.
func coreShares(t *testing.T, of []*process, d time.Duration) (shares []float64) {
	t.Helper()
	began, before := time.Now(), make([]time.Duration, len(of))
	for i, c := range of {
		before[i] = usedCPU(c.pid)
	}
	time.Sleep(d)
	took := time.Since(began)
	for i, c := range of {
		shares = append(shares, float64(usedCPU(c.pid)-before[i])/float64(took))
	}
	return shares
}

// usedCPU is the processor time of a process as the scheduler counts it, in ticks of 10 ms.
func usedCPU(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// agentUse is what the agent uses.
type agentUse struct {
	memory                          int64
	descriptors, mappings, failures int
}

// showAgent prints what the agent uses and counts.
func showAgent(t *testing.T, pid, port int) (u agentUse) {
	t.Helper()
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	u.descriptors, u.mappings = len(fds), strings.Count(string(maps), "\n")
	var counters []string
	for line := range strings.Lines(metricsOf(t, port)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "seedwalk_agent_"), " ")
		if strings.HasPrefix(line, "#") || value == "0" {
			continue
		}
		if name == "memory_bytes" {
			bytes, _ := strconv.ParseFloat(value, 64)
			u.memory = int64(bytes)
		}
		if n, _ := strconv.Atoi(value); strings.HasPrefix(name, "failures_total") {
			u.failures += n
		}
		counters = append(counters, name+" "+value)
	}
	t.Logf("%s: %d descriptors, %d mappings, %s", time.Now().UTC().Format(time.TimeOnly), u.descriptors, u.mappings, strings.Join(counters, ", "))
	return u
}

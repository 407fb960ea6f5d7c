package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var agentLong = flag.Duration("agent-long", 0,
	"how long TestAgentHour and TestAgentFlat run; 0 leaves them out")

// idleModes are programs of Healthy.cs that sleep most of the time.
var idleModes = []string{"event-idle", "channel-idle", "socket-idle", "delays", "periodic", "monitor-pulse",
	"event-idle", "event-slim", "join", "wait-any",
	"socket-idle", "channel-idle", "wait-any", "delay-for-ever", "source-for-ever", "main-blocks",
	"main-blocks-on-server", "socket-blocking", "timers-slow", "child"}

// For an hour two processes are recorded at the default rate, and the collector, the agent, and
// the processes restart in turn. Each interval arrives once, and equals the recording.
func TestAgentHour(t *testing.T) {
	long := longRun(t)
	backend, port := newBackend(t), freePorts(t)[0]
	agent := func(protocol int) *process {
		return backend.agent(protocol, "--command", longMark(t)+"$",
			"--listen", fmt.Sprintf("127.0.0.1:%d", port))
	}
	targets := []*process{idleProcess(t, "timer"), idleProcess(t, "channel-busy")}
	collector, recorder := backend.collect(), agent(0)
	end := time.Now().Add(long)
	for round := 0; time.Now().Before(end); round++ {
		time.Sleep(long / 13)
		showAgent(t, recorder.pid, port)
		switch round % 4 {
		case 0: // the collector is away longer than an interval
			collector.stop(syscall.SIGTERM)
			time.Sleep(min(long/13, 90*time.Second))
			collector = backend.collect()
		case 1:
			targets[0].Process.Kill()
			targets[0] = idleProcess(t, "timer")
		case 2:
			recorder.stop(syscall.SIGTERM)
			recorder = agent(round / 4 % 2)
		case 3:
			targets[1].Process.Kill()
			targets[1] = idleProcess(t, "channel-busy")
		}
	}
	recorder.stop(syscall.SIGTERM)
	backend.compare("Healthy")
}

// Twenty processes are recorded at the default rate. The CPU time of each grows by less than 0.5 % of a
// core. No process dies, and nothing fails. The agent's CPU time, memory, and descriptors do not grow.
func TestAgentFlat(t *testing.T) {
	long := longRun(t)
	var targets []*process
	for _, mode := range idleModes {
		targets = append(targets, idleProcess(t, mode))
	}
	time.Sleep(5 * time.Second)
	alone := coreShares(t, targets, long/10)
	port := freePorts(t)[0]
	recorder := start(t, tool(t), "agent", "--command", longMark(t)+"$", "--folder", t.TempDir(), "--listen",
		fmt.Sprintf("127.0.0.1:%d", port))
	time.Sleep(long / 10)
	first := showAgent(t, recorder.pid, port)
	shares := coreShares(t, append(targets, recorder), long*8/10)
	last := showAgent(t, recorder.pid, port)
	for i, mode := range idleModes {
		expect.Figures(t, shares[i]-alone[i] <= 0.005+0.1*alone[i],
			"%-22s %6.2f %% of a core alone, %6.2f %% recorded", mode, 100*alone[i], 100*shares[i])
	}
	own := shares[len(targets)] // threads of pools come and go, so the number of descriptors varies
	expect.Figures(t, own <= 0.02 && last.memory <= first.memory*5/4+8<<20 &&
		last.descriptors <= first.descriptors+64 && last.events <= first.events,
		"the agent uses %.2f %% of a core, %+v, before %+v", 100*own, last, first)
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
	p := startIn(t, []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"},
		app(t, "Healthy", mode, longMark(t))...)
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

// usedCPU is the CPU time of a process as the scheduler counts it, in ticks of 10 ms.
func usedCPU(pid int) time.Duration {
	const user, system = 14, 15
	stat := procstat.Read(pid)
	return time.Duration((stat.Number(user) + stat.Number(system)) * procstat.Tick)
}

// agentUse is what the agent uses.
type agentUse struct {
	memory             int64
	descriptors        int // other than perf events
	events             int // perf events between stretches
	mappings, failures int
}

// showAgent prints what the agent uses and counts.
func showAgent(t *testing.T, pid, port int) (u agentUse) {
	t.Helper()
	u.descriptors, u.events = openFiles(pid)
	for range 50 { // 5 s: stretches take 0.1 s each
		time.Sleep(100 * time.Millisecond)
		_, events := openFiles(pid)
		u.events = min(u.events, events)
	}
	maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	u.mappings = strings.Count(string(maps), "\n")
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
	t.Logf("%s: %d perf events and %d other descriptors, %d mappings, %s",
		time.Now().UTC().Format(time.TimeOnly), u.events, u.descriptors, u.mappings,
		strings.Join(counters, ", "))
	return u
}

// collectorConfig is the configuration of a collector: two ports and a folder.
const collectorConfig = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}, grpc: {endpoint: "127.0.0.1:%d"}}}}
exporters: {folder: {folder: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [folder]}}
`

// backend is a collector, and where it puts what arrives from agents.
type backend struct {
	t                 *testing.T
	collector, reader string
	folder, arrived   string // of the agents, and of the collector
	ports             [2]int // for HTTP and gRPC
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	collector, reader := collectorTools(t)
	return &backend{t, collector, reader, t.TempDir(), t.TempDir(), freePorts(t)}
}

// collect starts the collector.
func (b *backend) collect() *process {
	return start(b.t, b.collector, "--feature-gates=service.profilesSupport", "--config",
		fmt.Sprintf(collectorConfig, b.ports[0], b.ports[1], b.arrived))
}

// agent starts an agent that sends by HTTP (0) or gRPC (1).
func (b *backend) agent(protocol int, flags ...string) *process {
	push := fmt.Sprintf("%s://127.0.0.1:%d", []string{"otlp+http", "otlp+grpc"}[protocol], b.ports[protocol])
	return start(b.t, append([]string{tool(b.t), "agent", "--folder", b.folder, "--push", push}, flags...)...)
}

// compare checks that all intervals of a service arrived once, one after the other.
func (b *backend) compare(service string) {
	compareArrived(b.t, b.reader, b.folder, b.arrived, service)
	compareTimes(b.t, b.reader, b.arrived)
}

// A real collector receives every interval of two processes once, by HTTP and by gRPC, although it and the
// agent restart. What arrived equals the recordings frame by frame.
func TestAgentCollector(t *testing.T) {
	b := newBackend(t)
	agent := func(protocol int) *process {
		return b.agent(protocol, "--command", "Demo.exe 5[12]", "--interval", "5s", "--listen", "",
			"--cpu", "100")
	}
	for _, seconds := range []string{"51", "52"} {
		start(t, app(t, "Demo", seconds)...)
	}
	collector, first := b.collect(), agent(0)
	until(t, "a profile of each process arrives by HTTP",
		func() bool { return count(b.arrived, "*.otlp") >= 2 })
	collector.stop(syscall.SIGTERM)
	until(t, "profiles wait for the collector",
		func() bool { return count(b.folder, "spool/*.otlp.gz") >= 2 })
	first.stop(syscall.SIGTERM)
	b.collect()
	second := agent(1)
	until(t, "what waited arrives by gRPC",
		func() bool { return count(b.folder, "spool/*.otlp.gz") == 0 && count(b.arrived, "*.otlp") >= 4 })
	second.stop(syscall.SIGTERM)
	b.compare("Demo")
}

// collectorTools returns the collector, and builds a program that reads its files. The compilation of the
// collector takes minutes, so scripts/collector.sh does it for the tests that are asked for.
func collectorTools(t *testing.T) (collector, reader string) {
	t.Helper()
	path, err := exec.Command(filepath.Join(needs.Root(t), "scripts", "collector.sh"), "built").Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no OpenTelemetry collector: make test-collector builds it, which takes minutes")
	}
	reader = filepath.Join(t.TempDir(), "read")
	oracle := exec.Command("go", "build", "-o", reader, "./read")
	oracle.Dir = filepath.Join(needs.Root(t), "report", "export", "otlp", "testdata", "oracle")
	must.Run(t, oracle)
	return strings.TrimSpace(string(path)), reader
}

// compareTimes checks that an interval begins when the last one of its process ends.
func compareTimes(t *testing.T, reader, arrived string) {
	t.Helper()
	type span struct{ begin, end time.Time }
	spans := map[string][]span{}
	files, _ := filepath.Glob(filepath.Join(arrived, "*.otlp"))
	for _, f := range files {
		resource, text := readProfiles(t, reader, f)
		var metric, unit string // CPU time, unless a short interval has no sample of it
		var at, length int64
		_, err := fmt.Sscanf(strings.SplitN(text, "\n", 3)[1], "profile %s %s %d %d", &metric,
			&unit, &at, &length)
		must.True(t, err == nil, "%v: %.100s", err, text)
		begin := time.Unix(0, at)
		spans[resource] = append(spans[resource], span{begin, begin.Add(time.Duration(length))})
	}
	adjacent := 0
	for _, all := range spans {
		slices.SortFunc(all, func(a, b span) int { return a.begin.Compare(b.begin) })
		for i := range all[1:] {
			if all[i+1].begin.Sub(all[i].end).Abs() < 150*time.Millisecond {
				adjacent++
			}
		}
	}
	expect.True(t, adjacent >= 2,
		"%d of %d intervals begin when the last one has ended: %v", adjacent, len(files), spans)
}

// compareArrived checks that each recording is once in what arrived or in the spool.
func compareArrived(t *testing.T, reader, folder, arrived, service string) {
	t.Helper()
	got := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(arrived, "*.otlp"))
	for _, f := range files {
		resource, text := readProfiles(t, reader, f)
		got[text]++
		expect.True(t, strings.Contains(resource, fmt.Sprintf("service.name=%q", service)) &&
			strings.Contains(resource, "process.pid=") && strings.Contains(text, service+"."),
			"%s is of %s", f, resource)
	}
	recordings, _ := filepath.Glob(filepath.Join(folder, "*.swrec"))
	samples, missing := 0, 0
	for _, r := range recordings {
		local := filepath.Join(t.TempDir(), "local.otlp")
		must.Run(t, exec.Command(tool(t), "convert", r, "-o", local))
		_, text := readProfiles(t, reader, local)
		samples += strings.Count(text, "\nsample ")
		switch arrivals := got[text]; {
		case arrivals == 0 && strings.Contains(text, `seedwalk.samples="0"`): // it is not sent
		case arrivals == 0:
			missing++
		case arrivals == 1:
			delete(got, text)
		default:
			t.Errorf("%s arrived %d times", r, arrivals)
		}
	}
	waiting := count(folder, "spool/*.otlp.gz")
	expect.Figures(t, missing == waiting && len(got) == 0 && len(recordings) >= 4,
		"of %d recordings with %d samples %d are missing, and %d wait; %d profiles of %d are of no recording",
		len(recordings), samples, missing, waiting, len(got), len(files))
}

// readProfiles returns the resource, and everything else, as OpenTelemetry's types read them.
func readProfiles(t *testing.T, reader, path string) (resource, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Do(t, err)
	cmd := exec.Command(reader)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	must.Equal(t, err, nil, path)
	resource, text, _ = strings.Cut(string(out), "\n")
	return resource, text
}

func freePorts(t *testing.T) (ports [2]int) {
	t.Helper()
	for i := range ports {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func count(folder, pattern string) int {
	names, _ := filepath.Glob(filepath.Join(folder, pattern))
	return len(names)
}

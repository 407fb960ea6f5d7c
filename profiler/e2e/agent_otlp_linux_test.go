package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// collectorConfig is the configuration of a collector: two ports and a folder.
const collectorConfig = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}, grpc: {endpoint: "127.0.0.1:%d"}}}}
exporters: {folder: {folder: %q}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [folder]}}
`

// A real collector receives every interval of two processes once, by HTTP and by gRPC, although it and the
// agent restart. What arrived equals the recordings frame by frame.
func TestAgentCollector(t *testing.T) {
	path, reader := collectorTools(t)
	folder, arrived := t.TempDir(), t.TempDir()
	ports := freePorts(t)
	config := fmt.Sprintf(collectorConfig, ports[0], ports[1], arrived)
	collect := func() *process {
		return start(t, path, "--feature-gates=service.profilesSupport", "--config", config)
	}
	agent := func(push string) *process {
		return start(t, tool(t), "agent", "--command", "Demo.exe 5[12]", "--interval", "5s", "--folder", folder, "--push", push, "--listen", "", "--cpu", "100")
	}
	for _, seconds := range []string{"51", "52"} {
		start(t, app(t, "Demo", seconds)...)
	}
	collector, first := collect(), agent(fmt.Sprintf("otlp+http://127.0.0.1:%d", ports[0]))
	until(t, "a profile of each process arrives by HTTP", func() bool { return count(arrived, "*.otlp") >= 2 })
	collector.stop(syscall.SIGTERM)
	until(t, "profiles wait for the collector", func() bool { return count(folder, "spool/*.otlp.gz") >= 2 })
	first.stop(syscall.SIGTERM)
	collect()
	second := agent(fmt.Sprintf("otlp+grpc://127.0.0.1:%d", ports[1]))
	until(t, "what waited arrives by gRPC", func() bool { return count(folder, "spool/*.otlp.gz") == 0 && count(arrived, "*.otlp") >= 4 })
	second.stop(syscall.SIGTERM)
	compareArrived(t, reader, folder, arrived, "Demo")
	compareTimes(t, reader, arrived)
}

// collectorTools builds the collector and a program that reads its files.
func collectorTools(t *testing.T) (collector, reader string) {
	t.Helper()
	path, err := exec.Command(filepath.Join(needs.Root(t), "scripts", "collector.sh")).Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no OpenTelemetry collector; run scripts/collector.sh")
	}
	reader = filepath.Join(t.TempDir(), "read")
	oracle := exec.Command("go", "build", "-o", reader, "./read")
	oracle.Dir = filepath.Join(needs.Root(t), "report", "export", "otlp", "testdata", "oracle")
	if out, err := oracle.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
		if _, err := fmt.Sscanf(strings.SplitN(text, "\n", 3)[1], "profile %s %s %d %d", &metric, &unit, &at, &length); err != nil {
			t.Fatalf("%v: %.100s", err, text)
		}
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
	if adjacent < 2 {
		t.Errorf("%d of %d intervals begin when the last one has ended: %v", adjacent, len(files), spans)
	}
}

// compareArrived checks that each recording is once in what arrived or in the spool.
func compareArrived(t *testing.T, reader, folder, arrived, service string) {
	t.Helper()
	got := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(arrived, "*.otlp"))
	for _, f := range files {
		resource, text := readProfiles(t, reader, f)
		got[text]++
		if !strings.Contains(resource, fmt.Sprintf("service.name=%q", service)) || !strings.Contains(resource, "process.pid=") || !strings.Contains(text, service+".") {
			t.Errorf("%s is of %s", f, resource)
		}
	}
	recordings, _ := filepath.Glob(filepath.Join(folder, "*.swrec"))
	samples, missing := 0, 0
	for _, r := range recordings {
		local := filepath.Join(t.TempDir(), "local.otlp")
		if out, err := exec.Command(tool(t), "convert", r, "-o", local).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
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
	t.Logf("%d recordings, %d samples: %d arrived, %d wait", len(recordings), samples, len(files), waiting)
	if missing != waiting || len(got) != 0 || len(recordings) < 4 {
		t.Errorf("of %d recordings %d are missing, and %d wait; %d profiles that arrived are of no recording", len(recordings), missing, waiting, len(got))
	}
}

// readProfiles returns the resource, and everything else, as OpenTelemetry's types read them.
func readProfiles(t *testing.T, reader, path string) (resource, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must.Do(t, err)
	cmd := exec.Command(reader)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
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

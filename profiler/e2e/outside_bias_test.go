package e2e

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/tempdir"
)

var biasTime = flag.Duration("bias", 6*time.Second, "how long TestProbeBias records in each way, two thirds of its processor time")

// briefly is how long the old way runs at most, and what is not the plain comparison.
const briefly = 20 * time.Second

// shares are a thread's: how much of its processor time each method has by itself.
type shares struct {
	of    map[string]float64
	total float64 // samples
}

func (s *shares) add(method string, weight, samples float64) {
	if s.of == nil {
		s.of = map[string]float64{}
	}
	s.of[method] += weight
	s.total += samples
}

func (s *shares) share(method string) float64 {
	sum := 0.0
	for _, v := range s.of {
		sum += v
	}
	if sum == 0 {
		return 0
	}
	return s.of[method] / sum
}

// other is all code that is not the program's own.
const other = "(other)"

// body is a piece of code that the runtime compiled.
type body struct {
	start, size uint64
	name, tier  string
}

// perfMap are a program's methods by address, as the runtime wrote them down.
type perfMap []body

// readPerfMap reads the methods of an assembly.
func readPerfMap(t *testing.T, path, assembly string) (m perfMap) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.SplitN(sc.Text(), " ", 3)
		if len(fields) < 3 || !strings.Contains(fields[2], "["+assembly+"]") {
			continue
		}
		start, err1 := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(fields[1], 16, 64)
		_, name, ok := strings.Cut(fields[2], "::")
		if err1 != nil || err2 != nil || !ok {
			continue
		}
		name, tier, _ := strings.Cut(name, "(")
		tier = tier[strings.LastIndexByte(tier, '[')+1:]
		m = append(m, body{start, size, name, strings.TrimSuffix(tier, "]")})
	}
	sort.Slice(m, func(i, j int) bool { return m[i].start < m[j].start })
	return m
}

func (m perfMap) find(ip uint64) *body {
	i := sort.Search(len(m), func(i int) bool { return m[i].start > ip }) - 1
	if i >= 0 && ip < m[i].start+m[i].size {
		return &m[i]
	}
	return nil
}

func (m perfMap) name(ip uint64) string {
	if b := m.find(ip); b != nil {
		return b.name
	}
	return other
}

// judged reads what the program's own timers noted.
func judged(t *testing.T, path string, m perfMap) map[string]*shares {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]*shares{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var thread string
		var tid int
		var ip uint64
		if n, _ := fmt.Sscanf(sc.Text(), "%s %d %x", &thread, &tid, &ip); n != 3 {
			continue
		}
		if out[thread] == nil {
			out[thread] = &shares{}
		}
		out[thread].add(m.name(ip), 1, 1)
	}
	return out
}

// recordedShares reads the profile: processor time by leaf, of each thread, and how many
// handlers were left out that had not begun.
func recordedShares(t *testing.T, path string) (out map[string]*shares, unbegun int64) {
	t.Helper()
	var p struct {
		Threads []struct{ Name string }
		Frames  []struct{ Name, Class string }
		Stacks  []struct {
			Thread, Count int
			Frames        []int
			CPU           float64 `json:"cpu_ns"`
		}
		Stats struct{ Counters map[string]int64 }
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	out = map[string]*shares{}
	for _, s := range p.Stacks {
		name := p.Threads[s.Thread].Name
		if out[name] == nil {
			out[name] = &shares{}
		}
		method := other
		if f := p.Frames[s.Frames[0]]; f.Class == "managed" && strings.HasPrefix(f.Name, "Bias.") {
			method = f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		}
		n := 0.0
		if s.CPU > 0 {
			n = float64(s.Count)
		}
		out[name].add(method, s.CPU, n)
	}
	return out, p.Stats.Counters["unbegun"]
}

// biased is the program of a runtime, and what its assembly is called there.
type biased struct {
	argv     func(args ...string) []string
	assembly string
	rate     string   // asked
	judge    []string // the program's further arguments
	stderr   string   // of the last recording
	unbegun  int64    // its handlers of others that had not begun
}

// run records the program in a mode and returns what it says of itself, and what the
// recording says.
func (b *biased) run(t *testing.T, mode string, d time.Duration) (truth, got map[string]*shares) {
	t.Helper()
	dir := tempdir.New(t)
	out, file, pid := filepath.Join(dir, "out.json"), filepath.Join(dir, "truth"), filepath.Join(dir, "pid")
	maps := filepath.Join(dir, "maps")
	if err := os.Mkdir(maps, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"DOTNET_PerfMapEnabled=3", "DOTNET_PerfMapJitDumpPath=" + maps}
	args := []string{tool(t), "record", "--mode", mode, "--rate", b.rate, "--pid-file", pid, "--output", out, "--"}
	r := run(t, 8*d+2*time.Minute, env, append(args, b.argv(append([]string{fmt.Sprint(d.Seconds()), file}, b.judge...)...)...)...)
	if r.code != 0 || r.stdout != "BIAS DONE\n" {
		t.Fatalf("%d %q\n%s", r.code, r.stdout, r.stderr)
	}
	found, _ := filepath.Glob(filepath.Join(maps, "perf-*.map"))
	if len(found) != 1 {
		t.Fatalf("the runtime wrote %d maps of its methods", len(found))
	}
	b.stderr = r.stderr
	t.Log("\n" + r.stderr)
	got, b.unbegun = recordedShares(t, out)
	return judged(t, file, readPerfMap(t, found[0], b.assembly)), got
}

// Each method has its share of the processor's time, as a judge of the program's
// own saw it. Beside it stands what the old way makes of the same program.
func TestProbeBias(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	for _, c := range []struct {
		name string
		b    biased
		old  bool // beside it the old way, in short runs too
	}{
		{"net9", bias9(t, "125"), true},
		{"net10", bias10(t, "125"), false},
		{"more often than the kernel's tick", bias9(t, "1000"), false},
		// Two profilers whose timers expire at the same ticks, with the signal that is
		// delivered first, and with one that is delivered behind the other's.
		{"a judge with our period", bias9(t, "125", "8"), false},
		{"a judge with our period and signal", bias9(t, "125", "8", "taken"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := map[string]*shares{}
			if c.old || *biasTime > briefly && len(c.b.judge) == 0 && c.b.rate == "125" {
				_, old = c.b.run(t, "snapshot", min(*biasTime, briefly))
			}
			c.b.compare(t, old)
			if taken := len(c.b.judge) > 1; taken && (c.b.unbegun == 0 || !strings.Contains(c.b.stderr, "a real-time signal is used instead")) {
				t.Errorf("%d handlers of the judge's had not begun", c.b.unbegun)
			}
		})
	}
}

func bias9(t *testing.T, rate string, judge ...string) biased {
	return biased{func(args ...string) []string { return app(t, "Bias", args...) }, "Bias", rate, judge, "", 0}
}

func bias10(t *testing.T, rate string) biased {
	return biased{func(args ...string) []string {
		return append([]string{"/usr/bin/env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", need(t, "out", "samples", "Bias10")}, args...)
	}, "azmcp", rate, nil, "", 0}
}

// compare holds the profile against the truth; old is what the old way says.
func (b *biased) compare(t *testing.T, old map[string]*shares) {
	d := *biasTime
	if b.rate != "125" || len(b.judge) > 0 {
		d = min(d, briefly)
	}
	truth, got := b.run(t, "probe", d)
	total, compared, most := 0.0, 0, 0.0
	t.Logf("%-10s %-16s %8s %8s %8s %9s", "thread", "method", "truth", "probe", "snapshot", "samples")
	for _, thread := range slices.Sorted(maps.Keys(truth)) {
		want, have := truth[thread], got[thread]
		if have == nil || have.total < 20 {
			t.Errorf("%s: no samples", thread)
			continue
		}
		if old[thread] == nil {
			old[thread] = &shares{}
		}
		total += have.total
		for _, method := range slices.Sorted(maps.Keys(want.of)) {
			p, q := want.share(method), have.share(method)
			if p < 0.02 && q < 0.02 {
				continue
			}
			compared++
			t.Logf("%-10s %-16s %7.1f%% %7.1f%% %7.1f%% %9.0f", thread, method, 100*p, 100*q, 100*old[thread].share(method), have.total)
			most = max(most, math.Abs(p-q))
			noise := 3 * math.Sqrt(p*(1-p)/want.total+q*(1-q)/have.total)
			if math.Abs(p-q) > 0.03+noise {
				t.Errorf("%s in %s: %.1f %% of the time, %.1f %% by the profile", method, thread, 100*p, 100*q)
			}
		}
	}
	t.Logf("%.0f samples, %d shares compared, the worst is %.1f points off; %d handlers that had not begun", total, compared, 100*most, b.unbegun)
	if many := *biasTime >= 2*time.Minute && d > briefly; compared < 8 || many && total < 20000 {
		t.Errorf("only %d shares compared, of %.0f samples", compared, total)
	}
}

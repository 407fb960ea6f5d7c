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

var biasTime = flag.Duration("bias", 6*time.Second, "how long TestProbeBias records in each way")

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

// recorded reads the profile: processor time by leaf, of each thread.
func recordedShares(t *testing.T, path string) map[string]*shares {
	t.Helper()
	var p struct {
		Threads []struct{ Name string }
		Frames  []struct{ Name, Class string }
		Stacks  []struct {
			Thread, Count int
			Frames        []int
			CPU           float64 `json:"cpu_ns"`
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	out := map[string]*shares{}
	for _, s := range p.Stacks {
		name := p.Threads[s.Thread].Name
		if out[name] == nil {
			out[name] = &shares{}
		}
		leaf := s.Frames[0]
		for i, f := range s.Frames[:min(4, len(s.Frames)-1)] { // the judge's own handler
			if strings.HasPrefix(p.Frames[f].Name, "<signal handler called>") {
				leaf = s.Frames[i+1]
			}
		}
		method := other
		if f := p.Frames[leaf]; f.Class == "managed" && strings.HasPrefix(f.Name, "Bias.") {
			method = f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		}
		n := 0.0
		if s.CPU > 0 {
			n = float64(s.Count)
		}
		out[name].add(method, s.CPU, n)
	}
	return out
}

// biased is the program of a runtime, and what its assembly is called there.
type biased struct {
	argv     func(args ...string) []string
	assembly string
}

// run records the program in a mode and returns what it says of itself, and what the
// recording says.
func (b *biased) run(t *testing.T, mode string) (truth, got map[string]*shares) {
	t.Helper()
	dir := tempdir.New(t)
	out, file, pid := filepath.Join(dir, "out.json"), filepath.Join(dir, "truth"), filepath.Join(dir, "pid")
	maps := filepath.Join(dir, "maps")
	if err := os.Mkdir(maps, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"DOTNET_PerfMapEnabled=3", "DOTNET_PerfMapJitDumpPath=" + maps}
	args := []string{tool(t), "record", "--mode", mode, "--rate", "125", "--pid-file", pid, "--output", out, "--"}
	r := run(t, *biasTime+2*time.Minute, env, append(args, b.argv(fmt.Sprint(biasTime.Seconds()), file)...)...)
	if r.code != 0 || r.stdout != "BIAS DONE\n" {
		t.Fatalf("%d %q\n%s", r.code, r.stdout, r.stderr)
	}
	found, _ := filepath.Glob(filepath.Join(maps, "perf-*.map"))
	if len(found) != 1 {
		t.Fatalf("the runtime wrote %d maps of its methods", len(found))
	}
	t.Log("\n" + r.stderr)
	return judged(t, file, readPerfMap(t, found[0], b.assembly)), recordedShares(t, out)
}

// Each method has its share of the processor's time, as a judge of the program's
// own saw it. Beside it stands what the old way makes of the same program.
func TestProbeBias(t *testing.T) {
	need(t, "out", "bin", "libseedwalk_probe.so")
	t.Run("net9", func(t *testing.T) {
		b := biased{func(args ...string) []string { return app(t, "Bias", args...) }, "Bias"}
		_, old := b.run(t, "snapshot")
		b.judge(t, old)
	})
	t.Run("net10", func(t *testing.T) {
		program := need(t, "out", "samples", "Bias10")
		t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
		b := biased{func(args ...string) []string { return append([]string{program}, args...) }, "azmcp"}
		old := map[string]*shares{}
		if *biasTime > time.Minute {
			_, old = b.run(t, "snapshot")
		}
		b.judge(t, old)
	})
}

// judge holds the profile against the truth; old is what the old way says.
func (b *biased) judge(t *testing.T, old map[string]*shares) {
	truth, got := b.run(t, "probe")
	total, compared := 0.0, 0
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
			noise := 3 * math.Sqrt(p*(1-p)/want.total+q*(1-q)/have.total)
			if math.Abs(p-q) > 0.03+noise {
				t.Errorf("%s in %s: %.1f %% of the time, %.1f %% by the profile", method, thread, 100*p, 100*q)
			}
		}
	}
	t.Logf("%.0f samples, %d shares compared", total, compared)
	if compared < 8 {
		t.Errorf("only %d shares compared", compared)
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Where the Windows runtimes run in Wine every figure of time is Wine's.

const (
	core222 = ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2"
	core200 = ".cache/dotnet-2.0.0-win/package/shared/Microsoft.NETCore.App/2.0.0"
)

// recordWindows runs a program of out/windows under the recorder and reads the
// raw samples.
func recordWindows(t *testing.T, limit time.Duration, env []string, flags []string, runtime, app string, args ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "raw")
	r := runWindows(t, limit, env, append([]string{"--raw", file}, flags...), runtime, app, args...)
	samples, rd := readRaw(t, file, r.stderr)
	return samples, rd, r
}

// runWindows runs a program of out/windows under the recorder. One that takes
// longer than limit ends itself with 124, and leaves nothing behind.
func runWindows(t *testing.T, limit time.Duration, env []string, flags []string, runtime, app string, args ...string) result {
	t.Helper()
	need(t, "out", "windows", "seedwalk_profiler.dll")
	need(t, runtime, "coreclr.dll")
	argv := append([]string{"record", "--output", filepath.Join(tempdir.New(t), "out.json")}, flags...)
	argv = append(argv, "--", need(t, "out", "windows", "swhost.exe"), need(t, runtime), need(t, "out", "windows", app))
	env = append(env, fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds())))
	return run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", append(argv, args...)...)...)
}

func readRaw(t *testing.T, file, stderr string) (samples []*raw.Sample, rd *raw.Reader) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("no raw samples: %v\n%s", err, stderr)
	}
	defer f.Close()
	if rd, err = raw.NewReader(f); err != nil {
		t.Fatal(err)
	}
	for {
		s, err := rd.Next()
		if err == io.EOF {
			return samples, rd
		}
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, s)
	}
}

// figures are what `record --json` prints of a recording.
type figures struct {
	Suspended quantiles
	Parts     []part
	Tries     []export.FigureTries
}

type part struct {
	Name string
	quantiles
}

type quantiles export.FigureTimes

func (q quantiles) String() string {
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return fmt.Sprintf("µs p50 %8.1f  p99 %9.1f  max %9.1f", us(q.P50), us(q.P99), us(q.Max))
}

// figuresOf finds them in what the recorder said.
func figuresOf(t *testing.T, r result) (f figures) {
	t.Helper()
	for line := range strings.Lines(r.stderr) {
		var rec export.Recording
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &rec) != nil {
			continue
		}
		f.Suspended, f.Tries = quantiles(rec.Suspended), rec.Tries
		for _, p := range rec.Parts {
			f.Parts = append(f.Parts, part{p.Name, quantiles(p.FigureTimes)})
		}
		return f
	}
	t.Fatalf("no figures in %q", r.stderr)
	return f
}

var windowsRuntimes = []struct {
	name, dir string
	samples   int // judged at least
}{
	{".NET Core 2.2.2", core222, 6000},
	{".NET Core 2.0.0", core200, 1000},
}

// The runs of a runtime: on an idle machine two are enough, and a busy one needs
// more. Every second is by the library that lets RtlVirtualUnwind walk too.
const (
	windowsRun     = 10 // seconds
	leastRuns      = 2
	maxWindowsRuns = 40
)

func TestWindowsThreads(t *testing.T) {
	for _, rt := range windowsRuntimes {
		t.Run(rt.name, func(t *testing.T) {
			m, o := newMatrix(), newOpinion()
			x := newMixed(o)
			for n := 0; n < leastRuns || m.total < rt.samples && n < maxWindowsRuns; n++ {
				runMix(t, n, rt.dir, m, o, x)
			}
			m.print(t, rt.name)
			m.verdict(t, rt.samples)
			o.print(t)
			o.verdict(t, rt.samples/4)
			x.verdict(t)
		})
	}
}

// runMix records Mix.exe once and judges its samples.
func runMix(t *testing.T, n int, runtime string, m *matrix, o *opinion, x *mixed) {
	t.Helper()
	var env []string
	flags, file := []string{"--json", "--rate", "50"}, filepath.Join(tempdir.New(t), "oracle")
	second := n%leastRuns == 1
	if second {
		flags = append(flags, "--profiler", need(t, "out", "windows", "seedwalk_profiler_oracle.dll"))
		env = append(env, "SEEDWALK_ORACLE="+file)
	}
	samples, rd, res := recordWindows(t, 4*time.Minute, env, flags, runtime, "Mix.exe", fmt.Sprint(windowsRun))
	if res.code != 0 || !strings.HasPrefix(res.stdout, "mix: 13 threads") {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
	for _, s := range samples {
		m.add(t, s)
		x.add(t, m, s, rd.Names())
	}
	x.addFaults(samples, rd.Names())
	f := figuresOf(t, res)
	m.count(&f)
	if second {
		o.all(t, samples, readOracle(t, file))
		t.Logf("run %d: %d samples, RtlVirtualUnwind walks too", n+1, len(samples))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "run %d: %d samples, %d suspensions\n%-16s %v", n+1, len(samples), f.Suspended.Count, "suspended", f.Suspended)
	for _, p := range f.Parts {
		fmt.Fprintf(&b, "\n%-16s %v", p.Name, p.quantiles)
	}
	t.Log(b.String())
}

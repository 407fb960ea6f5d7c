package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// If the Windows runtimes run in Wine, every time measured includes Wine's.

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
	samples, rd := readRawOf(t, file, r)
	return samples, rd, r
}

// runWindows runs a program of out/windows under the recorder. If it takes longer than limit, it ends itself
// with exit code 124 and leaves nothing behind.
func runWindows(t *testing.T, limit time.Duration, env []string, flags []string, runtime, app string, args ...string) result {
	t.Helper()
	need(t, "out", "windows", "seedwalk_profiler.dll")
	need(t, runtime, "coreclr.dll")
	argv := append([]string{"record", "--output", filepath.Join(tempdir.New(t), "out.json")}, flags...)
	argv = append(argv, "--", need(t, "out", "windows", "swhost.exe"), need(t, runtime), need(t, "out", "windows", app))
	env = append(env, fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds())))
	return run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", append(argv, args...)...)...)
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

// findSummary is the line that record --json prints.
func findSummary(t *testing.T, stderr string) (s export.Recording) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &s) == nil {
			return s
		}
	}
	t.Fatalf("no summary:\n%s", stderr)
	return s
}

// figuresOf reads them from the recorder's output.
func figuresOf(t *testing.T, r result) (f figures) {
	t.Helper()
	rec := findSummary(t, r.stderr)
	f.Suspended, f.Tries = quantiles(rec.Suspended), rec.Tries
	for _, p := range rec.Parts {
		f.Parts = append(f.Parts, part{p.Name, quantiles(p.FigureTimes)})
	}
	return f
}

var windowsJudged = flag.Int("windows-judged", 2000, "how many samples TestWindowsThreads judges of .NET Core 2.2.2; other runtimes have a share of it")

// The runs of a runtime: on an idle machine two are enough; a busy one needs more. Every second uses the
// library that lets RtlVirtualUnwind walk too.
const (
	windowsRun     = 10 // seconds
	leastRuns      = 2
	maxWindowsRuns = 40
)

func TestWindowsThreads(t *testing.T) {
	for runtime, share := range map[string]int{core222: 1, core200: 6} {
		p := mixOn(runtime)
		t.Run(p.name, func(t *testing.T) {
			x := newShapes(p)
			x.recordAll(t, *windowsJudged/share)
			x.mixMet(t)
		})
	}
}

// The Go runtime changes some state of a process when it starts. These changes are undone: a profiled program
// finds its error mode and the rest as without a profiler.
func TestWindowsModes(t *testing.T) {
	modes := need(t, "out", "windows", "Modes.exe")
	plain := wineRun(t, nil, need(t, "out", "windows", "swhost.exe"), need(t, core222), modes)
	if plain.code != 0 || plain.stdout == "" {
		t.Fatalf("the program itself fails: %d %q %q", plain.code, plain.stdout, plain.stderr)
	}
	t.Logf("without a profiler\n%s", plain.stdout)
	res := runWindows(t, time.Minute, nil, []string{"--quiet"}, core222, "Modes.exe")
	if got := strings.ReplaceAll(res.stdout, "\r", ""); res.code != 0 || got != plain.stdout {
		t.Errorf("exit code %d, with the profiler\n%swithout\n%s", res.code, got, plain.stdout)
	}
}

// The CLR's walk may wait for a lock that the walked thread owns (dotnet/runtime#32286). Wine's walk takes no
// lock, so the test's library asks the system for unwind data as the CLR would. Not asking about threads in
// the loader is enough if all of them are recognised; the watchdog handles those that are not. Without both,
// the process hangs.
func TestWindowsWatchdog(t *testing.T) {
	const hung = 124 // of swhost at its limit
	for _, c := range []struct {
		mistake string
		code    int
		lost    bool // samples of threads that had to be resumed early
	}{{"careless", 7, true}, {"careful", 7, false}, {"unwatched", hung, false}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 25*time.Second, p.env, append(p.flags, "--rate", "1000", "--json"), core222, "Torture.exe", "8", "tables")
			var rec export.Recording
			if c.code != hung {
				rec = findSummary(t, res.stderr)
			}
			t.Logf("exit code %d after %v, %d samples, %d lost", res.code, res.took.Round(100*time.Millisecond), rec.Samples, rec.Lost)
			if res.code != c.code || rec.Lost > 0 != c.lost {
				t.Errorf("exit code %d, lost %d; want %d, %v\n%s", res.code, rec.Lost, c.code, c.lost, res.stderr)
			}
		})
	}
}

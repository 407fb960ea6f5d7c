package e2e

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// If the Windows runtimes run in Wine, every time measured includes Wine's.

const (
	core222 = ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2"
	core200 = ".cache/dotnet-2.0.0-win/package/shared/Microsoft.NETCore.App/2.0.0"
)

// recordWindows runs a program of out/windows under the recorder and reads the
// raw samples.
func recordWindows(t *testing.T, limit time.Duration, env []string, flags []string, runtime, app string,
	args ...string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "raw")
	r := runWindows(t, limit, env, append([]string{"--raw", file}, flags...), runtime, app, args...)
	samples, rd := readRawOf(t, file, r)
	return samples, rd, r
}

// runWindows runs a program of out/windows under the recorder. If it takes longer than limit, it ends itself
// with exit code 124 and leaves nothing behind.
func runWindows(t *testing.T, limit time.Duration, env []string, flags []string,
	runtime, app string, args ...string) result {
	t.Helper()
	need(t, "out", "windows", "seedwalk_profiler.dll")
	need(t, runtime, "coreclr.dll")
	argv := append([]string{"record", "--output", filepath.Join(tempdir.New(t), "out.json")}, flags...)
	argv = append(argv, "--", need(t, "out", "windows", "swhost.exe"), need(t, runtime),
		need(t, "out", "windows", app))
	env = append(env, fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds())))
	return run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", append(argv, args...)...)...)
}

// micros prints times in microseconds.
func micros(q export.Quantiles) string {
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

var windowsJudged = flag.Int("windows-judged", 700,
	"how many samples TestWindowsThreads judges of .NET Core 2.2.2; other runtimes have a share of it")

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
	must.True(t, plain.code == 0 && plain.stdout != "",
		"the program itself fails: %d %q %q", plain.code, plain.stdout, plain.stderr)
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
	for _, c := range []struct {
		mistake string
		code    int
		lost    bool // samples of threads that had to be resumed early
	}{{"careless", 7, true}, {"careful", 7, false}, {"unwatched", hungCode, false}} {
		t.Run(c.mistake, func(t *testing.T) {
			p := torture(t, c.mistake)
			res := runWindows(t, 25*time.Second, p.env, append(p.flags, "--rate", "1000", "--json"),
				core222, "Torture.exe", "8", "tables")
			var rec export.Recording
			if c.code != hungCode {
				rec = findSummary(t, res.stderr)
			}
			expect.Figures(t, res.code == c.code && rec.Lost > 0 == c.lost,
				"exit code %d after %v, %d samples, lost %d; want %d, %v\n%s", res.code,
				res.took.Round(100*time.Millisecond), rec.Samples, rec.Lost, c.code, c.lost, res.stderr)
		})
	}
}

// table is the module table of a sample, made from the files.
func (o *opinion) table(t *testing.T, s *raw.Sample) *module.Table {
	t.Helper()
	if len(s.Images) == 0 {
		return module.NewTable(0, nil, nil)
	}
	if made := o.tables[&s.Images[0]]; made != nil {
		return made
	}
	var modules []module.Module
	for i := range s.Images {
		im := &s.Images[i]
		modules = append(modules, module.PEFromFile(im.ID, o.open(t, im), im.Path, im.Start, im.End))
	}
	made := module.NewTable(uint32(len(o.tables)+1), modules, between(modules))
	o.tables[&s.Images[0]] = made
	return made
}

// between is all memory outside modules. The product's table includes the managed code, which files of
// samples do not list: a return address in this memory counts as managed.
func between(modules []module.Module) (out []memory.Range) {
	images := slices.Clone(modules)
	slices.SortFunc(images, func(a, b module.Module) int { return cmp.Compare(a.Start, b.Start) })
	low := uint64(1 << 16) // Windows maps nothing below
	for i := range images {
		if images[i].Start > low {
			out = append(out, memory.Range{Start: low, End: images[i].Start})
		}
		low = images[i].End
	}
	return append(out, memory.Range{Start: low, End: 1 << 47})
}

// open opens the file of a mapped image: the one at its path, or Wine's own, which Wine may have preferred.
func (o *opinion) open(t *testing.T, im *raw.Image) *pe.File {
	t.Helper()
	if f := o.files[im.Path]; f != nil {
		return f
	}
	path := ownPath(im.Path)
	for _, p := range []string{path, filepath.Join(system32(t), strings.ToLower(filepath.Base(path)))} {
		if f, err := pe.Open(p); err == nil && uint64(f.SizeOfImage()) == im.End-im.Start {
			o.files[im.Path] = f
			return f
		}
	}
	t.Fatalf("no file of %s, an image of %#x bytes", im.Path, im.End-im.Start)
	return nil
}

// A running process of .NET 10 is recorded by its number, without anything of ours in it, and its output and
// end are unchanged. doctor announces that before. If a busy machine lets the program end too early, there is
// another try.
func TestWindowsPID(t *testing.T) {
	need(t, single10)
	why := ""
	for range 3 {
		ended := make(chan result, 1)
		pid := startSingle(t, "3", ended)
		why = doctorPID(t, pid)
		if why == "" {
			why = recordPID(t, pid)
		}
		if r := <-ended; r.code != 0 || !strings.HasPrefix(r.stdout, "singlefile: 12 threads") {
			t.Errorf("the program ended with %d and said %q\n%s", r.code, r.stdout, r.stderr)
		}
		if why == "" || t.Failed() {
			break
		}
		t.Log("once more: ", why)
	}
	expect.Equal(t, why, "")
}

func doctorPID(t *testing.T, pid string) (why string) {
	t.Helper()
	r := wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), "doctor", "--pid", pid)
	if r.code != 0 || !has(r.stdout, "SingleFile.exe .NET 10.0.9", "nothing is put into it") {
		return fmt.Sprintf("doctor: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return ""
}

func has(s string, all ...string) bool {
	return !slices.ContainsFunc(all, func(part string) bool { return !strings.Contains(s, part) })
}

// startSingle starts SingleFile.exe for tens of seconds, and returns its number in
// Windows.
func startSingle(t *testing.T, tens string, ended chan<- result) string {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "pid")
	argv := wine(t, "launch.exe", need(t, "out", "windows", "shim.dll"),
		need(t, "out", "windows", "SingleFile.exe"), tens)
	env := []string{"SWHOST_LIMIT=120", "SWHOST_PID=" + windowsPath(file)}
	go func() { ended <- run(t, 3*time.Minute, env, argv...) }()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(100 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil {
			time.Sleep(3 * time.Second) // until it works
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatal("the program does not start")
	return ""
}

// leastOfPID is the least number of samples of a recording: in Wine each takes some time.
const leastOfPID = 5

func recordPID(t *testing.T, pid string) (why string) {
	t.Helper()
	dir := tempdir.New(t)
	out, file := filepath.Join(dir, "out.json"), filepath.Join(dir, "raw")
	r := run(t, 2*time.Minute, nil,
		wine(t, "seedwalk.exe", "record", "--json", "--pid", pid, "--duration", "8s",
			"--raw", file, "--output", out)...)
	at := strings.Index(r.stderr, `{"format"`)
	if r.code != 0 || at < 0 {
		return fmt.Sprintf("the recording: %d\n%s", r.code, r.stderr)
	}
	if !has(r.stderr, `".NET 10.0.9"`, "nothing of seedwalk is in the process") {
		t.Errorf("the recording: %s", r.stderr[at:])
	}
	samples, rd := readRaw(t, file, r.stderr)
	if len(samples) < leastOfPID {
		return fmt.Sprintf("%d samples\n%s", len(samples), r.stderr)
	}
	x := newShapes(singleFile)
	x.outside(t, samples, rd)
	expect.Figures(t, x.m.whole*10 >= (x.m.total-x.m.outside)*8, "%d samples, %d complete; %v, gaps %v",
		x.m.total, x.m.whole, x.stacks, x.m.gaps)
	return ""
}

// A process that cannot be recorded is refused with the reason and what to do.
func TestWindowsPIDRefused(t *testing.T) {
	need(t, "out", "windows", "seedwalk.exe")
	for _, c := range []struct {
		name string
		argv []string
		want []string
	}{
		{"no such process", []string{"record", "--pid", "999999"},
			[]string{"there is no such process", "tasklist"}},
		{"outside", []string{"record", "--pid", "999999", "--outside"},
			[]string{"--outside", "leave it out"}},
		{"stack", []string{"stack", "999999"}, []string{"record --pid PID --duration 2s"}},
		{"doctor, no such process", []string{"doctor", "--pid", "999999"},
			[]string{"there is no process 999999", "tasklist"}},
	} {
		r := wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), c.argv...)
		expect.True(t, r.code != 0, "%s: exit code 0", c.name)
		expect.Contains(t, r.stdout+r.stderr, c.want...)
	}
}

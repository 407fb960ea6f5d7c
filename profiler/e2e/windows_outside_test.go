package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

var outsideSamples = flag.Int("windows-outside", 100, "how many samples TestWindowsOutside judges")

// maxOutsideRuns limits the runs: in Wine each read of a process stops one of its threads, so a busy machine
// has about ten samples per second.
const maxOutsideRuns = 60

// A program of .NET 10 is sampled without anything of ours in it: each complete stack is possible for its
// thread.
func TestWindowsOutside(t *testing.T) {
	x := newShapes(singleFile)
	for n := 0; n < maxOutsideRuns && x.m.total < *outsideSamples; n++ {
		samples, rd, res := recordSingle(t, 1, nil, []string{"--mode", "probe"})
		x.ran(t, res)
		x.outside(t, samples, rd)
	}
	m, judged := x.m, 0
	t.Logf(".NET 10.0.9 from outside: %d samples, %d complete (%.2f %%); of the %d others %d in Wine's own system calls; gaps %v; stacks as their threads call %v",
		m.total, m.whole, percent(m.whole, m.total), m.total-m.whole, m.outside, m.gaps, x.stacks)
	for _, n := range x.stacks {
		judged += n
	}
	expect.True(t, m.total >= *outsideSamples && judged == m.whole,
		"%d samples, want %d; %d of %d complete stacks were judged", m.total, *outsideSamples, judged,
		m.whole)
	if all := m.total - m.outside; all-m.whole > max(2, all*15/1000) {
		t.Errorf("only %d of %d stacks are complete: %v", m.whole, m.total, m.gaps)
	}
}

// outside checks the samples of a recording from outside. The name in the runtime identifies a stub.
func (x *shapes) outside(t *testing.T, samples []*raw.Sample, rd *raw.Reader) {
	t.Helper()
	names, unnamed := rd.Names(), 0
	for _, name := range names {
		if strings.HasPrefix(name, "method 0x") {
			unnamed++
		}
	}
	expect.True(t, unnamed*10 <= len(names), "%d of %d methods have no name", unnamed, len(names))
	for _, s := range samples {
		if slices.ContainsFunc(s.Images,
			func(im raw.Image) bool { return strings.Contains(strings.ToLower(im.Path), "seedwalk_") }) {
			t.Fatal("a library of ours is in the process")
		}
		for i := range s.Frames {
			if strings.HasPrefix(names[s.Frames[i].Function], "IL_STUB_") {
				s.Frames[i].Kind = unwind.KindStub
			}
		}
	}
	x.all(t, samples, names)
}

// The sample profilers are built as a vendor builds them for Windows, linked with the DLL or the archive. On
// either runtime, each frame of their stacks is possible according to the program's source. The program works
// as it does without them, even with short-lived threads, hardware exceptions, and collections.
func TestWindowsSampler(t *testing.T) {
	dir := tempdir.New(t)
	for _, c := range combinations([]string{"2.2.2", "10.0.9"}, "own_protocol_windows.c", "seedwalk.dll") {
		t.Run(c.name(), func(t *testing.T) {
			judged, runtime := mixOn(core222), need(t, core222)
			storm := []string{"swhost.exe", runtime, need(t, "out", "windows", "Storm.exe")}
			if c.runtime == "10.0.9" {
				need(t, single10)
				judged, storm = singleFile,
					[]string{"launch.exe", need(t, "out", "windows", "shim.dll"),
						need(t, "out", "windows", "Storm10.exe")}
			}
			library := vendorDLL(t, dir, c.example, c.kind)
			// one thread after the other: few samples per second
			if c.example == smallest || *samplerAll {
				samplerJudged(t, c, judged, library)
			}
			stormsJudged(t, c, library, storm)
		})
	}
}

// vendorDLL builds an example with mingw. The library is built once for all.
func vendorDLL(t *testing.T, dir, example, kind string) string {
	t.Helper()
	const cc, cxx = "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-g++"
	needs.Command(t, cxx)
	compiler, source := []string{cxx, "-std=c++17", "-static-libstdc++"}, filepath.Join("examples", example)
	if filepath.Ext(example) == ".c" {
		compiler, source = []string{cc, "-std=gnu11"}, filepath.Join("testdata", "own_named.c")
	}
	library, out := filepath.Join(dir, kind),
		filepath.Join(dir, example+"-"+strings.TrimSuffix(kind, filepath.Ext(kind))+".dll")
	mode := map[string]string{".dll": "shared", ".a": "archive"}[filepath.Ext(kind)]
	var todo [][]string
	if _, err := os.Stat(library); err != nil {
		todo = append(todo, []string{filepath.Join(root, "capi", "build.sh"), mode, library})
	}
	todo = append(todo, append(compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-static-libgcc",
		"-I"+filepath.Join(root, "capi"), "-shared", "-o", out,
		filepath.Join(root, "capi", source), library, "-lsynchronization"))
	for _, argv := range todo {
		run(t, 10*time.Minute, []string{"GOOS=windows", "GOARCH=amd64", "CC=" + cc}, argv...).ok(t)
	}
	return out
}

// methodsWritten are the names that own_named.c writes of the methods in its samples.
func methodsWritten(given string) map[clr.FunctionID]string {
	names := map[clr.FunctionID]string{}
	for line := range strings.Lines(given) {
		var id uint64
		var name string
		if n, _ := fmt.Sscanf(line, "method %x %s", &id, &name); n == 2 {
			names[clr.FunctionID(id)] = demangle.Name(name)
		}
	}
	return names
}

// sampled runs a Windows program with a vendor's profiler.
func sampled(t *testing.T, library string, argv ...string) ([]*raw.Sample,
	map[clr.FunctionID]string, result) {
	t.Helper()
	dir := tempdir.New(t)
	file, out := filepath.Join(dir, "raw"), filepath.Join(dir, "out")
	env := profiled(windowsPath(library), "SEEDWALK_RAW="+windowsPath(file), "SAMPLER_OUT="+windowsPath(out),
		"OWN_PROTOCOL_OUT="+windowsPath(out), "OWN_PROTOCOL_NAMES="+windowsPath(out+".names"),
		"SWHOST_LIMIT=240")
	res := run(t, 5*time.Minute, env, wine(t, argv[0], argv[1:]...)...)
	samples, rd := readRawOf(t, file, res)
	given := readFile(t, out)
	t.Logf("the vendor has %s", strings.Join(strings.Fields(given)[:8], " "))
	names := rd.Names()
	if len(names) == 0 && len(samples) != 0 {
		names = methodsWritten(readFile(t, out+".names"))
	}
	return samples, names, res
}

// stormsJudged runs Storm.cs until there are enough samples, for 3 seconds and then for 9 seconds each time.
// Its forty threads can keep the sampler from the processors for all of a run.
func stormsJudged(t *testing.T, c combination, library string, argv []string) {
	t.Helper()
	var all []*raw.Sample
	res := result{code: stormCode}
	for n := 0; n < maxStorms && len(all) < leastStorm && res.code == stormCode; n++ {
		var samples []*raw.Sample
		samples, _, res = sampled(t, library, argv...)
		if all = append(all, samples...); n == 0 {
			argv = append(argv, "9")
		}
	}
	stormed(t, c, all, res)
}

var windowsSamples = flag.Int("sampler-windows", 150,
	"how many samples TestWindowsSampler judges of each runtime")

func samplerJudged(t *testing.T, which combination, p *windowsProgram, library string) {
	x := newShapes(p)
	for n := 0; x.m.total < *windowsSamples && n < maxWindowsRuns; n++ {
		samples, names, res := sampled(t, library, p.command(t)...)
		x.ran(t, res)
		x.all(t, samples, names)
	}
	if t.Logf("stacks as their threads call, by thread: %v", x.stacks); p != singleFile {
		x.met(t)
		x.mixMet(t)
	}
	enough(t, which, x.m, x.stacks)
}

// enough checks the samples; stacks were compared with the possible ones of each thread.
func enough(t *testing.T, which combination, m *matrix, stacks map[string]int) {
	t.Helper()
	m.print(t, t.Name())
	inside := m.total - m.outside // Wine's part of a system call is not part of Windows
	compared := 0
	for _, n := range stacks {
		compared += n
	}
	which.line(inside, m.whole, compared, m.impossible+m.mismatches+m.lost, m.gaps, m.outside)
	if *samplerAll && m.mismatches+m.lost > 0 {
		t.Errorf("%d mismatches, %d frames of the CLR lost", m.mismatches, m.lost)
	}
	expect.True(t, m.total >= *windowsSamples && m.whole*1000 >= inside*leastWhole,
		"%d of %d stacks are complete, want %d in thousand of %d", m.whole, inside, leastWhole,
		*windowsSamples)
}

// The tests of Windows runtimes start Windows programs: from Linux by Wine, or directly if the test itself is
// a Windows program.

// native reports whether the test is a Windows program.
const native = runtime.GOOS == "windows"

// program is the command line that runs a Windows program.
func program(t *testing.T, exe string, args ...string) []string {
	t.Helper()
	if native {
		return append([]string{exe}, args...)
	}
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	return append([]string{need(t, "scripts", "wine.sh"), "exec", exe}, args...)
}

// hungCode is the exit code of swhost and launch if the program did not end within SWHOST_LIMIT.
const hungCode = 124

// wine is the command line that runs a program of out/windows.
func wine(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return program(t, need(t, "out", "windows", name), args...)
}

// wineRun runs a Windows program to its end.
func wineRun(t *testing.T, env []string, exe string, args ...string) result {
	t.Helper()
	r := run(t, 3*time.Minute, env, program(t, exe, args...)...)
	r.stdout, r.stderr = strings.ReplaceAll(r.stdout, "\r", ""), strings.ReplaceAll(r.stderr, "\r", "")
	r.stderr = needs.WithoutWine(t, r.stderr)
	return r
}

// windowsPath is the Windows name of a file of ours.
func windowsPath(path string) string {
	if native {
		return path
	}
	return "Z:" + strings.ReplaceAll(path, "/", `\`)
}

// ownPath is the reverse.
func ownPath(path string) string {
	if native {
		return path
	}
	return strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "Z:")
}

// system32 is the folder of the system's libraries.
func system32(t *testing.T) string {
	t.Helper()
	if native {
		return filepath.Join(os.Getenv("SystemRoot"), "system32")
	}
	return filepath.Join(need(t, ".cache", "wine", "prefix"), "drive_c", "windows", "system32")
}

// mingw is the C compiler that makes Windows programs.
func mingw(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"x86_64-w64-mingw32-gcc", "gcc"} {
		if cc, err := exec.LookPath(name); err == nil {
			return cc
		}
		if !native {
			break // gcc makes programs of this system
		}
	}
	t.Skip("SKIPPED-CHECK: no mingw; run scripts/deps.sh windows")
	return ""
}

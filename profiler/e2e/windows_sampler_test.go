package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The sample profilers as a vendor builds them for Windows, linked with the DLL or the archive, on either
// runtime: their stacks are possible according to the program's source, frame by frame, and the program works
// as without them, even with short-lived threads, hardware exceptions, and collections.
func TestWindowsSampler(t *testing.T) {
	dir := tempdir.New(t)
	for _, c := range combinations([]string{"2.2.2", "10.0.9"}, "seedwalk.dll") {
		t.Run(c.name(), func(t *testing.T) {
			judged, runtime := mixOn(core222), need(t, core222)
			storm := []string{"swhost.exe", runtime, need(t, "out", "windows", "Storm.exe")}
			if c.runtime == "10.0.9" {
				need(t, single10)
				judged, storm = singleFile, []string{"launch.exe", need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "Storm10.exe")}
			}
			library := vendorDLL(t, dir, c.example, c.kind)
			// one thread after the other: few samples per second
			if c.example == "smallest_sampler" || *samplerAll {
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
	if _, err := exec.LookPath(cxx); err != nil {
		t.Skip("SKIPPED-CHECK: no " + cxx)
	}
	library, out := filepath.Join(dir, kind), filepath.Join(dir, example+"-"+strings.TrimSuffix(kind, filepath.Ext(kind))+".dll")
	mode := map[string]string{".dll": "shared", ".a": "archive"}[filepath.Ext(kind)]
	var todo [][]string
	if _, err := os.Stat(library); err != nil {
		todo = append(todo, []string{filepath.Join(root, "capi", "build.sh"), mode, library})
	}
	todo = append(todo, []string{cxx, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-static-libgcc", "-static-libstdc++", "-I" + filepath.Join(root, "capi"), "-shared", "-o", out,
		filepath.Join(root, "capi", "examples", example+".cpp"), library, "-lsynchronization"})
	for _, argv := range todo {
		if r := run(t, 10*time.Minute, []string{"GOOS=windows", "GOARCH=amd64", "CC=" + cc}, argv...); r.code != 0 {
			t.Fatalf("%v: %s%s", argv, r.stdout, r.stderr)
		}
	}
	return out
}

// methodsWritten are the names that own_protocol.cpp writes of the methods in its samples.
func methodsWritten(given string) map[clr.FunctionID]string {
	names := map[clr.FunctionID]string{}
	for line := range strings.Lines(given) {
		var id uint64
		var top int
		var name string
		if n, _ := fmt.Sscanf(line, "method %x %d %s", &id, &top, &name); n == 3 {
			names[clr.FunctionID(id)] = demangle.Name(name)
		}
	}
	return names
}

// sampled runs a Windows program with a vendor's profiler.
func sampled(t *testing.T, library string, argv ...string) ([]*raw.Sample, map[clr.FunctionID]string, result) {
	t.Helper()
	dir := tempdir.New(t)
	file, out := filepath.Join(dir, "raw"), filepath.Join(dir, "out")
	env := profiled(windowsPath(library), "SEEDWALK_RAW="+windowsPath(file), "SAMPLER_OUT="+windowsPath(out), "OWN_PROTOCOL_OUT="+windowsPath(out),
		"SWHOST_LIMIT=240")
	res := run(t, 5*time.Minute, env, wine(t, argv[0], argv[1:]...)...)
	samples, rd := readRawOf(t, file, res)
	given := readFile(t, out)
	t.Logf("the vendor has %s", strings.Join(strings.Fields(given)[:8], " "))
	names := rd.Names()
	if len(names) == 0 {
		names = methodsWritten(given)
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

var windowsSamples = flag.Int("sampler-windows", 500, "how many samples TestWindowsSampler judges of each runtime")

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
	if m.total < *windowsSamples || m.whole*1000 < inside*leastWhole {
		t.Errorf("%d of %d stacks are complete, want %d in thousand of %d", m.whole, inside, leastWhole, *windowsSamples)
	}
}

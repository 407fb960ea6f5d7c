//go:build linux && amd64

package main

import (
	"context"
	"debug/elf"
	flags "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var cflags = []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I."}

// host returns a folder with both libraries for this machine, linked once for all tests.
func host(t *testing.T) (dir string) {
	t.Helper()
	return platforms[0].libraries(t)
}

func gcc(t *testing.T, args ...string) {
	t.Helper()
	do(t, nil, "gcc", append(append([]string{}, cflags...), args...)...)
}

// The vendor's own signal handlers stay, in whatever order they and the library are loaded. So do those of
// another Go runtime.
func TestGuard(t *testing.T) {
	dir := host(t)
	shared, other := filepath.Join(dir, "libseedwalk.so"), filepath.Join(dir, "libother.so")
	do(t, nil, "go", "build", "-buildmode=c-shared", "-o", other, "./testdata/othergo")
	path := func(name string) string { return filepath.Join(dir, name) }
	gcc(t, "-o", path("plain"), "testdata/guard.c", "-ldl")
	gcc(t, "-DLINKED", "-o", path("shared"), "testdata/guard.c", shared, "-ldl", "-Wl,-rpath,"+dir)
	gcc(t, "-DLINKED", "-o", path("archive"), "testdata/guard.c", path("libseedwalk.a"), "-ldl", "-lpthread")
	gcc(t, "-DLINKED", "-DEARLY", "-o", path("early"), "testdata/guard.c",
		path("libseedwalk.a"), "-ldl", "-lpthread")
	for _, c := range []struct{ program, how string }{
		{"shared", "linked"}, {"shared", "untouched"},
		{"archive", "linked"}, {"archive", "untouched"},
		{"early", "early"},
		{"plain", "dlopen"}, {"plain", "between"}, {"plain", "replaced"},
		{"plain", "otherfirst"}, {"plain", "otherlast"},
	} {
		t.Run(c.program+"/"+c.how, func(t *testing.T) {
			expect.Equal(t, do(t, nil, path(c.program), c.how, shared, other), "")
		})
	}
}

// If another handler replaces the sampler's signal handler after it was opened, the next sample reports it
// before it asks a thread. A handler that passes our signal on is not reported.
func TestSignalTaken(t *testing.T) {
	dir := host(t)
	exe := filepath.Join(dir, "signals")
	gcc(t, "-o", exe, "testdata/signals.c", filepath.Join(dir, "libseedwalk.a"), "-lpthread")
	const taken = "-19 SIGRTMIN+5 has another handler, or none, since seedwalk_sampler_open: no thread would answer\n"
	const want = "open: 0 \nas it was: 0 \n\tthe thread answered: 1\nignored: " + taken +
		"without a handler: " + taken +
		"another handler: " + taken +
		"\tit was called: 1\ncopies do not need it: 0 \nanother handler still: " + taken +
		"a handler that passes on: 0 \n\tthe thread answered: 1\n\tit was called: 1\nanother handler again: " + taken +
		"put back: 0 \n\tthe thread answered: 1\n"
	expect.Equal(t, do(t, nil, exe), want)
}

// The libraries export exactly what the header declares.
func TestExports(t *testing.T) {
	dir := host(t)
	shared := filepath.Join(dir, "libseedwalk.so")
	for _, list := range [][]string{{"nm", "-D", "--defined-only", "--without-symbol-versions", shared},
		{"nm", "-g", "--defined-only", filepath.Join(dir, "libseedwalk.a")}} {
		declared := declarations(t)
		exported := 0
		for l := range strings.Lines(do(t, nil, list[0], list[1:]...)) {
			f := strings.Fields(l)
			switch {
			case len(f) < 3 || f[2] == "SEEDWALK_1" || strings.HasPrefix(f[2], "seedwalk_private_"):
			case !declared[f[2]]:
				t.Errorf("%s is exported by %s", f[2], list[len(list)-1])
			default:
				exported++
				delete(declared, f[2])
			}
		}
		for name := range declared {
			t.Errorf("%s is declared and not exported by %s", name, list[len(list)-1])
		}
		fmt.Printf("%s: %d names exported\n", filepath.Base(list[len(list)-1]), exported)
	}
	out := do(t, nil, "readelf", "-d", shared)
	expect.True(t, strings.Contains(out, "soname: [libseedwalk.so.1]"), "no SONAME:\n%s", out)
}

// declarations lists the functions of the header.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	header := must.Get(os.ReadFile("seedwalk.h"))(t)
	declared := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^extern \w+ (seedwalk_\w+)\(`).FindAllStringSubmatch(string(header), -1) {
		declared[m[1]] = true
	}
	return declared
}

// The shared library loads with glibc 2.17 or later, wherever it was built: it needs no newer symbol version
// and no other library.
func TestGlibc(t *testing.T) {
	for _, p := range platforms {
		if p.goos != "linux" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			f, err := elf.Open(filepath.Join(p.libraries(t), p.shared))
			must.Do(t, err)
			defer f.Close()
			imports, err := f.ImportedSymbols()
			must.True(t, err == nil && len(imports) > 0, "%d names imported, %v", len(imports), err)
			needs := map[string]int{}
			for _, s := range imports {
				needs[s.Library+" "+s.Version]++
				expect.Equal(t, newerThan217(s), "", s.Name)
			}
			fmt.Printf("%s of %s needs, by version: %v\n", p.shared, p.name, needs)
		})
	}
}

// newerThan217 returns why glibc 2.17 lacks a symbol, "" if it has it.
func newerThan217(s elf.ImportedSymbol) string {
	var major, minor int
	_, err := fmt.Sscanf(s.Version, "GLIBC_%d.%d", &major, &minor)
	switch {
	case err != nil || s.Library != "libc.so.6" && s.Library != "libpthread.so.0":
		return fmt.Sprintf("is asked of %q, version %q", s.Library, s.Version)
	case major > 2 || minor > 17:
		return "needs " + s.Version
	}
	return ""
}

// A profiler that contains the library changes neither the output of its target nor its own signal handlers.
// This holds for every supported way to link, and if Initialize fails. A crash may be rare, so make long runs
// each case three times.
func TestInCLR(t *testing.T) {
	c := newTarget(t)
	for _, how := range []struct {
		name, kind string
		flags      []string
	}{
		{"linked", "libseedwalk.so", []string{filepath.Join(c.dir, "libseedwalk.so")}},
		{"early", "libseedwalk.a", []string{"-DEARLY", filepath.Join(c.dir, "libseedwalk.a")}},
		{"opened", "libseedwalk.so", []string{"-DOPENED", "-ldl"}},
		{refused, "libseedwalk.so", []string{"-DREFUSED", filepath.Join(c.dir, "libseedwalk.so")}},
		{refused, "libseedwalk.a", []string{"-DREFUSED", filepath.Join(c.dir, "libseedwalk.a")}},
	} {
		t.Run(how.name+"/"+how.kind, func(t *testing.T) {
			library, walks := filepath.Join(c.dir, "libvendor"+how.name+how.kind+".so"),
				filepath.Join(c.dir, "walks")
			gcc(t, append([]string{"-fPIC", "-shared", "-o", library, "testdata/profiler.c", "-lpthread",
				"-Wl,-rpath," + c.dir}, how.flags...)...)
			for range *clrRuns {
				os.Remove(walks)
				got := c.run(t, "CORECLR_PROFILER_PATH="+library, "WALKS="+walks,
					"LIBRARY="+filepath.Join(c.dir, how.kind))
				expect.Equal(t, got, c.plain, "with the profiler, and without it")
				text, _ := os.ReadFile(walks)
				if how.name == refused {
					expect.True(t, len(text) == 0, "it says %q", text)
					continue
				}
				n, handlers := 0, ""
				fmt.Sscanf(string(text), "%d walks, handlers %s", &n, &handlers)
				expect.True(t, n > 0 && handlers == "in", "it says %q", text)
				fmt.Printf("a profiler with %s, %s, in .NET 9.0.5: %s", how.kind, how.name, text)
			}
		})
	}
}

var clrRuns = flags.Int("clr-runs", 1, "how often TestInCLR runs a program with each profiler")

// refused is a profiler whose Initialize fails.
const refused = "refused"

// target is a program on .NET 9.0.5 that does what is difficult for profilers. plain is its output without a
// profiler.
type target struct{ dir, host, runtime, app, plain string }

// newTarget builds the program, once for all tests.
func newTarget(t *testing.T) *target {
	t.Helper()
	if clrTarget != nil {
		return clrTarget
	}
	needs.Command(t, "mcs")
	dir := host(t)
	c := &target{dir: dir, host: filepath.Join(dir, "swhost"), runtime: needs.Runtime9(t),
		app: filepath.Join(dir, "Soak.exe")}
	gcc(t, "-fPIC", "-shared", "-o", filepath.Join(dir, "libdemo.so"), "../profiler/testdata/demo.c")
	gcc(t, "-o", c.host, "../profiler/testdata/host.c", "-ldl")
	do(t, nil, "mcs", "-optimize+", "-unsafe", "-nologo", "-warn:1", "-out:"+c.app,
		"../profiler/testdata/Soak.cs")
	c.plain = c.run(t)
	clrTarget = c
	return c
}

var clrTarget *target

// counts are the loop counts of the program's threads: on a busy machine a thread may not finish one in these
// seconds.
var counts = regexp.MustCompile(`(?m)^(soak: .*): [0-9]+$`)

// run returns the program's output and exit status.
func (c *target) run(t *testing.T, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.host, c.runtime, c.app, "3", c.app)
	cmd.Env = os.Environ()
	if len(env) > 0 {
		cmd.Env = append(append(cmd.Env, "CORECLR_ENABLE_PROFILING=1",
			"CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}"), env...)
	}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%q, %v",
		strings.ReplaceAll(counts.ReplaceAllString(string(out), "$1: n"), ": did nothing", ": worked"), err)
}

// leastShare is the least share of complete samples of the example, percent.
const leastShare = 99

// TestOwnProtocol builds the sample profiler that suspends threads by its own protocol, as a vendor builds
// it. TestSampler of profiler/e2e tests the same profiler with the shared library.
func TestOwnProtocol(t *testing.T) {
	c := newTarget(t)
	library, out := filepath.Join(c.dir, "libown.so"), filepath.Join(c.dir, "own")
	gcc(t, "-shared", "-fPIC", "-o", library, "examples/own_protocol_linux.c",
		filepath.Join(c.dir, "libseedwalk.a"), "-lpthread")
	expect.Equal(t, c.run(t, "CORECLR_PROFILER_PATH="+library, "OWN_PROTOCOL_OUT="+out), c.plain,
		"with the profiler, and without it")
	text := must.Get(os.ReadFile(out))(t)
	var samples, complete, frames, unmanaged int
	fmt.Sscanf(string(text), "samples %d complete %d frames %d unmanaged %d", &samples,
		&complete, &frames, &unmanaged)
	fmt.Printf("own_protocol_linux.c on .NET 9.0.5: %s", text)
	if samples < 100 || complete*100 < samples*leastShare || unmanaged == 0 || frames <= unmanaged {
		t.Errorf("want 100 samples, %d %% of them complete, with managed and unmanaged frames; got\n%s", leastShare, text)
	}
}

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// How long the program of Lines.cs runs, milliseconds.
const running = "4000"

// linesWritten are the lines of Lines.cs's program where its methods can be seen: for callers, the call; for
// the one that sleeps, its loop or its print.
var linesWritten = map[string][]int{"App.Lines.Main": {11}, "App.Lines.Over": {20, 22}, "App.Lines.Deep": {33, 34, 36, 37}}

// Managed frames have the lines of the module's Portable PDB, as a file or embedded, in every way of
// recording: the same lines as in the runtime's own stack traces.
func TestLines(t *testing.T) {
	dir := tempdir.New(t)
	net9, net10 := linedPrograms(t, dir)
	for _, c := range []struct {
		name, way string
		argv      []string
	}{{"probe9", "probe", net9}, {"probe10", "probe", net10}, {"snapshot9", "snapshot", net9}} {
		t.Run(c.name, func(t *testing.T) { recordedLines(t, dir, c.way, c.argv) })
	}
	t.Run("library", func(t *testing.T) {
		library := vendor(t, dir, filepath.Join("capi", "testdata", "copies.cpp"), "libseedwalk.a")
		libraryLines(t, library, filepath.Join(dir, "sources9"), net9)
		libraryLines(t, library, filepath.Join(dir, "sources10"), net10)
	})
}

// linedPrograms has Lines.cs write its program for .NET 9, and for .NET 10 as the main part of
// a single-file program.
func linedPrograms(t *testing.T, dir string) (net9, net10 []string) {
	host, runtime, writer := need(t, "out", "bin", "swhost"), runtime9(t), compiled(t, "profiler/testdata/Lines.cs")
	file, part, ten := filepath.Join(dir, "Emitted.exe"), filepath.Join(dir, "azmcp.dll"), filepath.Join(dir, "ten")
	math := []string{"LD_PRELOAD=libm.so.6"} // the library that packs the PDB lacks this dependency
	for _, step := range []struct{ env, argv []string }{
		{nil, []string{host, runtime, writer, file, "file", "Emitted"}},
		{math, []string{host, runtime, writer, part, "embedded", "azmcp"}},
		{nil, []string{"go", "run", filepath.Join(root, "testkit", "tools", "bundle"), "replace", need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp"), "azmcp.dll", part, ten}},
	} {
		if r := run(t, 2*time.Minute, step.env, step.argv...); r.code != 0 {
			t.Fatalf("%s: %d\n%s%s", step.argv, r.code, r.stdout, r.stderr)
		}
	}
	return []string{host, runtime, file, running}, []string{ten, running}
}

// traced are the lines of a stack trace of the runtime: "at App.Lines.Main(String[]) in FILE:line 11".
var traced = regexp.MustCompile(`at (App\.\S+)\(.*\) in (\S+):line (\d+)`)

// runtimeSays is where the program was when it printed Environment.StackTrace.
func runtimeSays(t *testing.T, stdout string) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, m := range traced.FindAllStringSubmatch(stdout, -1) {
		said[m[1]] = m[2] + ":" + m[3]
	}
	want := map[string]string{"App.Lines.Main": "/src/app/Lines.cs:11", "App.Lines.Over": "/src/app/Lines.cs:22", "App.Lines.Deep": "/src/app/Lines.cs:33"}
	if !maps.Equal(said, want) {
		t.Fatalf("the runtime says %v of\n%s", said, stdout)
	}
	return said
}

// checkLine compares one frame, and counts it.
func checkLine(t *testing.T, seen map[string]int, method, file string, line int) {
	t.Helper()
	want := linesWritten[method]
	if want == nil {
		return
	}
	if file != "/src/app/Lines.cs" || !slices.Contains(want, line) {
		t.Errorf("%s is at %q:%d, of lines %v", method, file, line, want)
	}
	seen[fmt.Sprintf("%s:%d", method, line)]++
}

func recordedLines(t *testing.T, dir, way string, argv []string) {
	pprof := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".pb.gz")
	r := record(t, "--rate 99 --mode "+way+" --output "+pprof, argv...)
	if r.code != 0 {
		t.Fatalf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
	runtimeSays(t, r.stdout)
	seen := map[string]int{}
	for _, f := range r.Frames {
		checkLine(t, seen, f.Name, f.File, f.Line)
	}
	t.Log(seen)
	if seen["App.Lines.Main:11"] == 0 || seen["App.Lines.Over:22"] == 0 || seen["App.Lines.Deep:36"] == 0 {
		t.Errorf("only %v", seen)
	}
	pprofLines(t, pprof, seen)
}

// pprofLines compares the lines of a pprof file with those of the JSON.
func pprofLines(t *testing.T, path string, want map[string]int) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	p := must.Get(profile.Parse(f))(t)
	seen := map[string]int{}
	for _, l := range p.Location {
		if len(l.Line) == 0 { // a frame without a name
			continue
		}
		checkLine(t, seen, l.Line[0].Function.Name, l.Line[0].Function.Filename, int(l.Line[0].Line))
	}
	if !maps.Equal(seen, want) {
		t.Errorf("pprof has %v, JSON %v", seen, want)
	}
}

// libraryLines checks the source lines that the C library returns for stacks of callbacks.
func libraryLines(t *testing.T, library, out string, argv []string) {
	t.Helper()
	argv = slices.Clone(argv)
	argv[len(argv)-1] = "500"
	r := run(t, time.Minute, profiled(library, "COPIES_SOURCES="+out), argv...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("%d\n%s%s", r.code, r.stdout, r.stderr)
	}
	runtimeSays(t, r.stdout)
	seen, offsets := map[string]int{}, 0
	for _, f := range strings.FieldsFunc(readFile(t, out), func(r rune) bool { return r == ';' || r == '\n' }) {
		var file string
		var line, il int
		method, at, _ := strings.Cut(f, " ")
		file, at, _ = strings.Cut(at, ":")
		if n, _ := fmt.Sscanf(at, "%d+%d", &line, &il); n != 2 {
			continue
		}
		checkLine(t, seen, method, file, line)
		if il >= 0 {
			offsets++
		}
	}
	fmt.Printf("%s: %v, %d frames with an offset of IL\n", t.Name(), seen, offsets)
	if seen["App.Lines.Main:11"] == 0 || seen["App.Lines.Deep:33"] == 0 || offsets < 100 {
		t.Errorf("only %v, %d offsets", seen, offsets)
	}
}

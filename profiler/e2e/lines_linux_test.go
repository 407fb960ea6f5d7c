package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// How long the program of Lines.cs runs, milliseconds.
const running = "2000"

// linesWritten are the lines of Lines.cs's program where its methods can be seen: for callers, the call; for
// the one that sleeps, its loop or its print.
var linesWritten = map[string][]int{"App.Lines.Main": {11}, "App.Lines.Over": {20, 22},
	"App.Lines.Deep": {33, 34, 36, 37}}

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
		library := vendor(t, filepath.Join("capi", "testdata", "copies.cpp"), "libseedwalk.a")
		libraryLines(t, library, filepath.Join(dir, "sources9"), net9)
		libraryLines(t, library, filepath.Join(dir, "sources10"), net10)
	})
}

// linedPrograms has Lines.cs write its program for .NET 9, and for .NET 10 as the main part of
// a single-file program.
func linedPrograms(t *testing.T, dir string) (net9, net10 []string) {
	host, runtime, writer := need(t, "out", "bin", "swhost"), runtime9(t),
		compiled(t, "profiler/testdata/Lines.cs")
	file, part, ten := filepath.Join(dir, "Emitted.exe"),
		filepath.Join(dir, "azmcp.dll"), filepath.Join(dir, "ten")
	math := []string{"LD_PRELOAD=libm.so.6"} // the library that packs the PDB lacks this dependency
	for _, step := range []struct{ env, argv []string }{
		{nil, []string{host, runtime, writer, file, "file", "Emitted"}},
		{math, []string{host, runtime, writer, part, "embedded", "azmcp"}},
		{nil, []string{"go", "run", filepath.Join(root, "testkit", "tools", "bundle"), "replace",
			need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp"), "azmcp.dll", part, ten}},
	} {
		run(t, 2*time.Minute, step.env, step.argv...).ok(t)
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
	want := map[string]string{"App.Lines.Main": "/src/app/Lines.cs:11",
		"App.Lines.Over": "/src/app/Lines.cs:22", "App.Lines.Deep": "/src/app/Lines.cs:33"}
	must.True(t, maps.Equal(said, want), "the runtime says %v of\n%s", said, stdout)
	return said
}

// checkLine compares one frame, and counts it.
func checkLine(t *testing.T, seen map[string]int, method, file string, line int) {
	t.Helper()
	want := linesWritten[method]
	if want == nil {
		return
	}
	expect.True(t, file == "/src/app/Lines.cs" && slices.Contains(want, line),
		"%s is at %q:%d, of lines %v", method, file, line, want)
	seen[fmt.Sprintf("%s:%d", method, line)]++
}

func recordedLines(t *testing.T, dir, way string, argv []string) {
	pprof := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".pb.gz")
	r := record(t, "--rate 99 --mode "+way+" --output "+pprof, argv...)
	r.ok(t)
	runtimeSays(t, r.stdout)
	seen := map[string]int{}
	for _, f := range r.Frames {
		checkLine(t, seen, f.Name, f.File, f.Line)
	}
	t.Log(seen)
	expect.True(t, seen["App.Lines.Main:11"] != 0 && seen["App.Lines.Over:22"] != 0 &&
		seen["App.Lines.Deep:36"] != 0, "only %v", seen)
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
	expect.True(t, maps.Equal(seen, want), "pprof has %v, JSON %v", seen, want)
}

// libraryLines checks the source lines that the C library returns for stacks of callbacks.
func libraryLines(t *testing.T, library, out string, argv []string) {
	t.Helper()
	argv = slices.Clone(argv)
	argv[len(argv)-1] = "500"
	r := run(t, time.Minute, profiled(library, "COPIES_SOURCES="+out), argv...)
	must.True(t, r.code == 0 && r.stderr == "", "%d\n%s%s", r.code, r.stdout, r.stderr)
	runtimeSays(t, r.stdout)
	seen, offsets := map[string]int{}, 0
	for _, f := range strings.FieldsFunc(readFile(t, out),
		func(r rune) bool { return r == ';' || r == '\n' }) {
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
	expect.True(t, seen["App.Lines.Main:11"] != 0 && seen["App.Lines.Deep:33"] != 0 && offsets >= 100,
		"only %v, %d offsets", seen, offsets)
}

// namesWanted are methods of Names.cs that differ only in their parameters or type arguments, and class
// library methods that call them.
var namesWanted = []string{
	"Names.Over()", "Names.Over(int)", "Names.Over(ref string, long[,], List<Dictionary<string,int?>>[])",
	"Names.Own<int>(T)", "Names.Own<T>(T)", "Names.Own<double,U>(T, U)",
	"Names.Box<int>.Put", "Names.Box<T>.Put", "Names.Box<byte>.Inner<long>.Run", "Names.Box<T>.Both<int>",
	"Names.Box<KeyValuePair<_,int>>.Put",
	"Names.Key.CompareTo", "Names.Spin",
	"System.Array.Sort<Names.Key>(T[])",
	"System.Collections.Generic.List<Names.Key>.Sort()",
	"System.Collections.Generic.List<Names.Key>.Sort(int, int, IComparer<T>)",
	"System.Collections.Generic.GenericArraySortHelper<Names.Key>.Sort",
}

// Methods have names that distinguish them, in every way of sampling.
func TestNames(t *testing.T) {
	exe, seen := compiled(t, "profiler/testdata/Names.cs"), map[string]string{}
	for _, way := range []string{"probe", "snapshot"} {
		t.Run(way, func(t *testing.T) {
			r := recordRaw(t, "--rate 99 --mode "+way, need(t, "out", "bin", "swhost"), runtime9(t), exe, "3")
			r.well(t, 0, "NAMES DONE\n")
			got := slices.Sorted(maps.Values(r.names))
			for _, name := range namesWanted {
				expect.True(t, slices.Contains(got, name), "no method %s", name)
			}
			oneNameEach(t, seen, got)
			if t.Failed() {
				for _, name := range got {
					if strings.Contains(name, "Names") {
						t.Log(name)
					}
				}
			}
		})
	}
}

// oneNameEach fails if a method has parameters in one recording and none in another. It also fails if a name
// contains __Canon, the runtime's own word for shared type arguments.
func oneNameEach(t *testing.T, seen map[string]string, names []string) {
	for _, name := range names {
		expect.True(t, !strings.Contains(name, "__Canon"), "%s: the runtime's word for shared code", name)
		plain, list, _ := strings.Cut(name, "(")
		if was, ok := seen[plain]; ok && (was == "") != (list == "") {
			t.Errorf("%s is also named (%s", name, was)
		}
		seen[plain] = list
	}
}

// mostWithSymbols is the largest share, in percent, of CPU self time without a name if symbols are available:
// in rows of the whole program, and in frames of the library.
const mostWithSymbols = 1.0

// A library without symbols, as the runtime's is. One recording of it is symbolized later by a folder, by a
// debuginfod server, and by a symbol server; each result equals that of the library with its own symbols.
func TestSymbolsLater(t *testing.T) {
	needs.Command(t, "gcc")
	exe := compiled(t, "profiler/testdata/Shop.cs")
	dir := tempdir.New(t)
	const id = "5eed0000000000000000000000000000000000a1"
	library, full := filepath.Join(filepath.Dir(exe), "libSystem.Shop.Native.so"),
		filepath.Join(dir, "full.so")
	needs.Build(t, "gcc", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--build-id=0x"+id,
		"-o", full, filepath.Join(root, "profiler", "testdata", "shop.c"))
	needs.Build(t, "strip", "-o", library, full)
	file := filepath.Join(dir, "shop.swrec")
	run(t, 2*time.Minute, nil, tool(t), "record", "--quiet", "--rate", "499", "--output", file, "--",
		need(t, "out", "bin", "swhost"), runtime9(t), exe, "6000").ok(t)
	put := func(name string) {
		at := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(at), 0o755)
		needs.Build(t, "objcopy", "--only-keep-debug", full, at)
	}
	put("folder/.build-id/5e/" + id[2:] + ".debug")
	put("debuginfod/buildid/" + id + "/debuginfo")
	put("store/_.debug/elf-buildid-sym-" + id + "/_.debug")
	serve := func(folder string) string {
		srv := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, folder))))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	report := func(name string, args ...string) (folded string, rows, frames float64) {
		at := filepath.Join(dir, name)
		argv := append([]string{tool(t), "report", "--metric", "cpu", "--output",
			at + ".folded," + at + ".json"}, args...)
		run(t, time.Minute, []string{"XDG_CACHE_HOME=" + at + ".cache"}, append(argv, file)...).ok(t)
		rows, frames = unnamedRows(t, at+".folded", false),
			unnamedLeaves(t, at+".json", filepath.Base(library))
		fmt.Printf("%-10s CPU self time without a name: %5.2f %% of rows, %6.2f %% of the library's frames\n",
			name, rows, frames)
		return readFile(t, at+".folded"), rows, frames
	}
	if _, _, frames := report("none"); frames < 90 {
		t.Errorf("%.2f %% without symbols", frames)
	}
	results := map[string]string{}
	for name, place := range map[string]string{"folder": filepath.Join(dir, "folder"),
		"debuginfod": serve("debuginfod"), "store": serve("store")} {
		folded, rows, frames := report(name, "--symbols", place)
		expect.True(t, rows <= mostWithSymbols && frames <= mostWithSymbols,
			"%s: %.2f %% of rows, %.2f %% of the library's frames", name, rows, frames)
		results[name] = folded
	}
	must.Do(t, os.Rename(full, library))
	want, _, _ := report("own")
	expect.Contains(t, want, "shop_open", "shop_tax", "shop_cart", "shop_price", "shop_restock")
	for name, got := range results {
		expect.Equal(t, got, want, "%s: not what the library's own symbols give", name)
	}
}

// inlinedSamples is how many samples of inlined methods TestInlined compares.
const inlinedSamples = 5000

// Methods that the JIT compiler inlined are separate frames with their lines, if the runtime keeps these
// data. If not, their time is their caller's.
func TestInlined(t *testing.T) {
	for _, c := range []struct {
		name, option string
		ms           int64
		most         []string
	}{
		{"kept", "--inlines", inlinedSamples * 5 / 4,
			[]string{"Inlined.Sum (inlined) < Inlined.Once",
				"Inlined.Divide (inlined) < Inlined.Middle (inlined) < Inlined.Twice", "Inlined.None",
				"Inlined.Taken"}},
		{"not-kept", "", 1000, []string{"Inlined.Once", "Inlined.Twice", "Inlined.None", "Inlined.Taken"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := recordBy(t, []string{"env", "DOTNET_TieredCompilation=0"}, "--rate 999 "+c.option,
				app(t, "Inlined", fmt.Sprint(c.ms))...)
			r.well(t, 0, "INLINED DONE\n")
			named := strings.Contains(r.stderr, "record --inlines")
			expect.True(t, named != (c.option != ""), "the summary names --inlines: %v", named)
			seen := judgeInlined(t, r.jsonProfile)
			t.Log(seen)
			judged, outside := int64(0), seen["outside of loops"]
			for _, chain := range c.most {
				judged += seen[chain]
			}
			for chain, n := range seen {
				if !slices.Contains(c.most, chain) && chain != "outside of loops" {
					outside += n
				}
			}
			if judged*1000 < c.ms*500 || outside*100 > judged { // the start of the runtime counts too
				t.Errorf("%d samples are right, %d are not or in no loop", judged, outside)
			}
		})
	}
}

// loops are the lines of the loop of each method.
var loops = map[string][]int{"Inlined.Sum (inlined)": {15, 16},
	"Inlined.Divide (inlined)": {24, 25}, "Inlined.None": {53, 54}}

// calls is the caller of each method, and the line of the call.
var calls = map[string]string{"Inlined.Sum (inlined)": "Inlined.Once:39",
	"Inlined.Divide (inlined)": "Inlined.Middle (inlined):33", "Inlined.Middle (inlined)": "Inlined.Twice:46"}

// judgeInlined counts samples by their methods below Main, and checks each chain.
func judgeInlined(t *testing.T, p *jsonProfile) map[string]int64 {
	seen := map[string]int64{}
	for _, s := range p.Stacks {
		var names []string
		var lines []int
		for k, i := range s.Frames {
			if p.Frames[i].Name == "Inlined.Taken" {
				caller := p.Frames[s.Frames[k+1]].Name
				expect.True(t, caller == "Inlined.Main", "%d samples: %s called Taken", s.Count, caller)
			}
			if f := &p.Frames[i]; strings.HasPrefix(f.Name, "Inlined.") && f.Name != "Inlined.Main" {
				names, lines = append(names, f.Name), append(lines, f.Line)
			}
		}
		if len(names) == 0 {
			continue
		}
		if loop := loops[names[0]]; loop != nil && !slices.Contains(loop, lines[0]) {
			seen["outside of loops"] += s.Count
		}
		seen[strings.Join(names, " < ")] += s.Count
		for i, name := range names {
			if want := calls[name]; want != "" &&
				(i+1 == len(names) || fmt.Sprintf("%s:%d", names[i+1], lines[i+1]) != want) {
				t.Errorf("%d samples: %v at %v, want %s below %s", s.Count, names, lines, want, name)
			}
		}
	}
	return seen
}

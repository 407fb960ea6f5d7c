package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// The possible stacks of a program's threads. From its source we know how many frames of each method and
// function there are. So a stack that lacks a frame or has one twice is found, whatever the CLR and
// RtlVirtualUnwind report.

// windowsProgram is such a program, and how it is recorded.
type windowsProgram struct {
	name    string            // of its runtime
	says    string            // the beginning of its output
	class   string            // whose methods the grammar names
	letters map[string]string // letter of native code by the image's name; n: any other image
	threads []grammar
	record  func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result)
	command func(t *testing.T) []string // runs it without a recorder
	// hijack cuts the oracle's walks at the place where they are wrong; nil: nowhere.
	hijack func(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk)
}

// grammar describes the possible stacks of a thread, root last. A method of the program has its name. The
// letter c is a method of the class library, s a stub, n code of the system, and X its RaiseException. Other
// letters are images of the program.
type grammar struct {
	thread string
	stack  *regexp.Regexp
}

// runtimes are the runtime's threads, and others at times without a method of the program.
const runtimes = "the runtime"

// of is a thread's grammar, with any frames of the runtime above, and below its first method.
func of(stack string) *regexp.Regexp {
	return regexp.MustCompile(`^([rnscX] )*(get_Running )?` + stack + `[A-Z]\w+ (c ){2,3}(r )+n n $`)
}

// shapes checks the complete stacks of a program.
type shapes struct {
	*windowsProgram
	o      *opinion // knows the images
	m      *matrix
	stacks map[string]int // by thread
	thrown int            // recursions that must have every frame
	faults faulted
}

// faulted counts the samples of the thread that raises null references.
type faulted struct{ all, whole, outside int }

func newShapes(p *windowsProgram) *shapes {
	return &shapes{windowsProgram: p, o: newOpinion(), m: newMatrix(), stacks: map[string]int{}}
}

// ran fails the test unless the program ended as it does without us.
func (p *windowsProgram) ran(t *testing.T, res result) {
	t.Helper()
	must.True(t, res.code == 0 && strings.HasPrefix(res.stdout, p.says),
		"the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
}

// all checks a run's samples.
func (x *shapes) all(t *testing.T, samples []*raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	for _, s := range samples {
		x.m.add(t, s)
		x.add(t, s, names)
	}
	x.addFaults(samples, names)
}

// add compares a complete stack with the grammar of its thread, which the outermost method of the program
// identifies.
func (x *shapes) add(t *testing.T, s *raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	if !s.Result.Complete() {
		return
	}
	words := make([]string, len(s.Frames))
	for i := range s.Frames {
		words[i] = x.word(t, s, i, names)
	}
	thread, why := x.wrong(words)
	x.stacks[thread]++
	if why != "" {
		x.m.impossible++
		stack := strings.Join(words, " ")
		x.m.show(t, s, thread+": "+stack)
		t.Errorf("%s: %s: %s", thread, why, stack)
	}
}

// wrong identifies the thread of a stack, and describes its fault, "" if none.
func (x *shapes) wrong(words []string) (thread, why string) {
	thread = runtimes
	for _, w := range words {
		if len(w) > 1 {
			thread = w
		}
	}
	i := slices.IndexFunc(x.threads, func(g grammar) bool { return g.thread == thread })
	if why = x.recursion(words); i < 0 || !x.threads[i].stack.MatchString(strings.Join(words, " ")+" ") {
		why = "no such stack"
	}
	return thread, why
}

// addFaults counts a run's samples of the thread that raises null references, complete or not. The methods in
// a sample identify the thread.
func (x *shapes) addFaults(samples []*raw.Sample, names map[clr.FunctionID]string) {
	threads := map[uint64]bool{}
	for _, s := range samples {
		for i := range s.Frames {
			switch method, _ := strings.CutPrefix(names[s.Frames[i].Function], x.class); method {
			case "Touch", "Peek", "NullReferences":
				threads[s.Capture.Thread.TID] = true
			}
		}
	}
	for _, s := range samples {
		switch {
		case !threads[s.Capture.Thread.TID]:
		case inWine(s):
			x.faults.outside++
		default:
			x.faults.all++
			if s.Result.Complete() {
				x.faults.whole++
			}
		}
	}
}

// word is the grammar's word for a frame.
func (x *shapes) word(t *testing.T, s *raw.Sample, i int, names map[clr.FunctionID]string) string {
	t.Helper()
	f := &s.Frames[i]
	switch {
	case f.Kind == unwind.KindStub:
		return "s"
	case f.Function != 0:
		if method, ok := strings.CutPrefix(names[f.Function], x.class); ok {
			return method
		}
		return "c"
	case f.Module < 0 || int(f.Module) >= len(s.Images):
		return "?"
	}
	im := &s.Images[f.Module]
	name := im.Path[strings.LastIndexByte(im.Path, '\\')+1:]
	if name == "kernelbase.dll" && x.letters[name] == "X" &&
		raises(x.o.open(t, im), uint32(unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup()-im.Bias)) {
		return "X"
	}
	if letter := x.letters[name]; letter != "" && letter != "X" {
		return letter
	}
	return "n"
}

// met fails the test if a thread has no complete stack.
func (x *shapes) met(t *testing.T) {
	t.Helper()
	t.Logf("complete stacks as their threads call, by thread: %v; %d recursions under an exception, each frame there", x.stacks, x.thrown)
	for _, g := range x.threads {
		if x.stacks[g.thread] == 0 && g.thread != runtimes {
			t.Errorf("no complete stack of %s", g.thread)
		}
	}
	f := x.faults
	t.Logf("the thread that raises null references: %d of %d stacks complete, %d more in Wine's system calls",
		f.whole, f.all, f.outside)
}

// recordAll records the program at least twice, until there are enough samples, and checks them. In every
// second run RtlVirtualUnwind walks too.
func (x *shapes) recordAll(t *testing.T, want int) {
	t.Helper()
	for n := 0; n < leastRuns || x.m.total < want && n < maxWindowsRuns; n++ {
		x.run(t, n)
	}
	x.m.print(t, x.name)
	x.m.verdict(t, want)
	x.o.print(t)
	x.o.verdict(t, want/4)
	x.met(t)
}

func (x *shapes) run(t *testing.T, n int) {
	t.Helper()
	var env []string
	flags, file := []string{"--json"}, filepath.Join(tempdir.New(t), "oracle")
	second := n%leastRuns == 1
	if second {
		flags = append(flags, "--profiler", need(t, "out", "windows", "seedwalk_profiler_oracle.dll"))
		env = append(env, "SEEDWALK_ORACLE="+file)
	}
	samples, rd, res := x.record(t, env, flags)
	x.ran(t, res)
	if len(samples) == 0 {
		return // nor figures
	}
	x.all(t, samples, rd.Names())
	f := findSummary(t, res.stderr)
	x.m.count(&f)
	var b strings.Builder
	fmt.Fprintf(&b, "run %d: %d samples, %d suspensions\n%-16s %v", n+1, len(samples),
		f.Suspended.Count, "suspended", micros(f.Suspended))
	for _, p := range f.Parts {
		fmt.Fprintf(&b, "\n%-16s %v", p.Name, micros(p.Quantiles))
	}
	if t.Log(b.String()); second {
		tries := readOracle(t, file)
		if x.hijack != nil {
			x.hijack(t, samples, tries)
		}
		x.o.all(t, samples, tries)
	}
}

// hostSampler is the part of the profiler's host that suspends threads. Its files need each other, so a test
// of one links them all.
var hostSampler = []string{"host/capture_windows.c", "host/threads.c", "host/threads_windows.c",
	"host/sampler_windows.c", "host/held_windows.c", "host/loader_windows.c", "host/watchdog_windows.c"}

// compileWindows builds a Windows program from C files. Tests share the object files.
func compileWindows(t *testing.T, name string, files ...string) string {
	t.Helper()
	exe := filepath.Join(tempdir.New(t), name)
	args := []string{"-o", exe}
	for _, f := range files {
		object := filepath.Join(libraries, strings.ReplaceAll(f, "/", "-")+".o")
		if _, err := os.Stat(object); err != nil {
			must.Run(t, exec.Command(mingw(t), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-c",
				"-o", object, filepath.Join("..", f)))
		}
		args = append(args, object)
	}
	must.Run(t, exec.Command(mingw(t), append(args, "-lsynchronization")...))
	return exe
}

// hostSays builds a program of testdata with hostSampler and other files of the host, runs it, and compares
// its output.
func hostSays(t *testing.T, want, program string, files ...string) {
	t.Helper()
	files = append(append(files, hostSampler...), "testdata/"+program+"_windows.c")
	r := wineRun(t, nil, compileWindows(t, program+".exe", files...))
	expect.True(t, r.code == 0 && r.stdout == want, "exit code %d\n%s%s\nwant\n%s", r.code, r.stdout,
		r.stderr, want)
}

// Whatever happens to a thread while it is sampled, its suspend count is afterwards what it was before. So a
// thread that other code has suspended stays suspended.
func TestWindowsSuspendCounts(t *testing.T) {
	hostSays(t, `a thread that runs: suspend 1, context 1 with a stack, counts 0 1 0
the same again: suspend 1, context 1 with a stack, counts 0 1 0
suspended twice by somebody else: suspend 1, context 1 with a stack, counts 2 3 2, held by others
the same again: suspend 1, context 1 with a stack, counts 2 3 2, held by others
after they let it go: suspend 1, context 1 with a stack, counts 0 1 0
suspended as often as can be: suspend -1, refused by the system
ends while it is suspended: suspend 1, context 0, counts 0 1 -1
has ended: suspend 0, context -2, counts -1 -2 -1
may not be opened: suspend -1
never told of: suspend 0
half of its stack is no memory: suspend 1, context 1 with a stack, counts 0 1 0
of it: 4096 bytes, cut
its TEB has gone: suspend 1, context 1 with a stack, counts 0 1 0
`, "suspend")
}

// A module's methods must not be unloaded while the sampler asks for their names.
func TestWindowsUnloadWaits(t *testing.T) {
	hostSays(t, `no names are asked for: as it should be
names are had soon: as it should be
names are never had: as it should be
`, "wait", "host/common.c", "host/events.c")
}

// The list of modules is made without reading an image's header: it is read under the loader's lock, where a
// fault would end the program.
func TestWindowsModuleHeaders(t *testing.T) {
	hostSays(t, `as it is: size right, stamp right, name version.dll
a size that is not mapped: size right, stamp right, name version.dll
headers that point nowhere: size right, stamp right, name version.dll
headers that may not be read: size right, stamp right, name version.dll
`, "modules")
}

// .NET Core 1.x has ICorProfilerInfo7; a runtime without it is older still.
func TestWindowsOldRuntime(t *testing.T) {
	exe, dll := compileWindows(t, "oldclr.exe", "testdata/oldclr.c"),
		need(t, "out", "windows", "seedwalk_profiler.dll")
	for version, why := range map[string]string{"2": "it has no ICorProfilerInfo3",
		"7": "it has no ICorProfilerInfo8"} {
		r := wineRun(t, []string{"SEEDWALK_SOCKET=tcp:127.0.0.1:1:none"}, exe, dll, version)
		want := "seedwalk: this runtime is too old: " + why + "; use .NET Core 2.0 or later\n"
		expect.True(t, r.code == 0 && r.stdout == "80004005\n" && r.stderr == want,
			"ICorProfilerInfo%s: %d %q %q", version, r.code, r.stdout, r.stderr)
	}
}

// anyCode: systems without support for 32-bit programs differ in the exit code for one.
const anyCode = -1

// One clear line for each case, and the command works as without us.
func TestWindowsNothingToSample(t *testing.T) {
	dir := tempdir.New(t)
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, data, 0o755))
		return path
	}
	tool := need(t, "out", "windows", "seedwalk.exe")
	runtime, demo := need(t, core222), need(t, "out", "windows", "Demo.exe")
	hosted := []string{need(t, "out", "windows", "swhost.exe"), runtime, demo, "0.2"}
	bits32 := file("bits32.exe", peasm.Image{Machine: 0x14c}.Bytes())
	for _, c := range []struct {
		name   string
		env    []string
		flags  []string
		argv   []string
		code   int
		stdout string
		want   string
		lines  int
	}{
		{"not a .NET program", nil, nil, []string{tool, "version"}, 0, "seedwalk ",
			"starts no program of .NET Core 2.0 or later", 1},
		{"a library that is no profiler", nil, []string{"--profiler", need(t, "out", "windows", "demo.dll")},
			hosted, 0, "demo: 11 threads",
			"cannot be a profiler here: it does not export DllGetClassObject", 1},
		{"a 32-bit program", nil, nil, []string{bits32}, anyCode, "",
			"is for x86 (32-bit): 32-bit processes are not recorded; build it for x86-64", 2},
		{"no program by its name", nil, nil, []string{file("data", []byte("x"))}, 126, "",
			"its file extension is not that of a program", 1},
		{"another profiler", []string{"CoreClr_Enable_Profiling=1",
			"CORECLR_PROFILER={11111111-1111-1111-1111-111111111111}"}, nil, hosted, 0, "demo: 11 threads",
			"before .NET 6 loads only one profiler", 2},
		{"no such output", nil, []string{"--output", filepath.Join(dir, "none", "a.html")}, hosted, 125, "",
			"make the directory first: mkdir ", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"record", "--quiet", "--output",
				filepath.Join(dir, "out.json")}, c.flags...)
			r := wineRun(t, c.env, tool, append(append(args, "--"), c.argv...)...)
			if r.code != c.code && c.code != anyCode || !strings.HasPrefix(r.stdout, c.stdout) ||
				c.stdout == "" && r.stdout != "" || !strings.Contains(r.stderr, c.want) ||
				strings.Count(r.stderr, "\n") != c.lines {
				t.Errorf("exit code %d, want %d; output %q, said %q", r.code, c.code, r.stdout, r.stderr)
			}
		})
	}
}

// doctor finds no fault in the profiler itself and the runtimes of the cache.
func TestWindowsDoctor(t *testing.T) {
	need(t, "out", "windows", "seedwalk_profiler.dll")
	r := wineRun(t, []string{"DOTNET_ROOT=" +
		windowsPath(filepath.Dir(filepath.Dir(filepath.Dir(need(t, core222)))))},
		need(t, "out", "windows", "seedwalk.exe"), "doctor", "--", need(t, "out", "windows", "swhost.exe"))
	expect.Contains(t, r.stdout, "library loads     it can be loaded", "2.2.2 (DOTNET_ROOT)",
		"threads can be suspended", "127.0.0.1 can be connected to",
		"swhost.exe does not look like a .NET program", "Nothing stops a recording here.")
	expect.True(t, !t.Failed() && r.code == 0, "exit code %d\n%s%s", r.code, r.stdout, r.stderr)
}

// A command file starts the recorded program.
func TestWindowsCommandFile(t *testing.T) {
	need(t, "out", "windows", "seedwalk_profiler.dll")
	dir := tempdir.New(t)
	script := filepath.Join(dir, "start.cmd")
	line := strings.Join([]string{windowsPath(need(t, "out", "windows", "swhost.exe")),
		windowsPath(need(t, core222)), windowsPath(need(t, "out", "windows", "Demo.exe")), "%1"}, " ")
	must.Do(t, os.WriteFile(script, []byte("@echo off\r\n"+line+"\r\n"), 0o755))
	argv := []string{"record", "--json", "--rate", "50", "--output", filepath.Join(dir, "out.json"), "--",
		script, "6"}
	var r result
	for range maxBadSorts + 1 {
		r = wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), argv...)
		if native || !strings.Contains(r.stdout+r.stderr, badSort) {
			break
		}
		fmt.Printf("UNSTABLE ENVIRONMENT %s: .NET Core 2.2.2 in Wine: %s\n", t.Name(), badSort)
	}
	s := findSummary(t, r.stderr)
	expect.True(t, r.code == 0 && strings.Contains(r.stdout, "demo: 11 threads") && s.Samples != 0 &&
		s.Runtime == ".NET Core 2.2.2",
		"exit code %d, %d samples of %q\n%s%s", r.code, s.Samples, s.Runtime, r.stdout, r.stderr)
}

// badSort is how LINQ's sort fails in .NET Core 2.2.2 in Wine on a busy machine, rarely, also without a
// profiler.
const badSort = "IComparer.Compare() method returns inconsistent results"

// maxBadSorts is how many runs of a test may end so.
const maxBadSorts = 2

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// hostSampler is the part of the profiler's host that suspends threads. Its files need each other, so a test
// of one links them all.
var hostSampler = []string{"host/capture_windows.c", "host/threads.c", "host/threads_windows.c", "host/sampler_windows.c", "host/held_windows.c", "host/loader_windows.c", "host/watchdog_windows.c"}

// compileWindows builds a program of C files for Windows.
func compileWindows(t *testing.T, name string, files ...string) string {
	t.Helper()
	exe := filepath.Join(tempdir.New(t), name)
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", exe}
	for _, f := range files {
		args = append(args, filepath.Join("..", f))
	}
	must.Run(t, exec.Command(mingw(t), append(args, "-lsynchronization")...))
	return exe
}

// Whatever happens to a thread while it is sampled, its suspend count is afterwards what it was before. So a
// thread that other code has suspended stays suspended.
func TestWindowsSuspendCounts(t *testing.T) {
	exe := compileWindows(t, "suspend.exe", append(hostSampler, "testdata/suspend_windows.c")...)
	const want = `a thread that runs: suspend 1, context 1 with a stack, counts 0 1 0
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
`
	if r := wineRun(t, nil, exe); r.code != 0 || r.stdout != want {
		t.Errorf("exit code %d\n%s%s\nwant\n%s", r.code, r.stdout, r.stderr, want)
	}
}

// A module's methods must not be unloaded while the sampler asks for their names.
func TestWindowsUnloadWaits(t *testing.T) {
	exe := compileWindows(t, "wait.exe", append(hostSampler, "host/common.c", "host/events.c", "testdata/wait_windows.c")...)
	const want = `no names are asked for: as it should be
names are had soon: as it should be
names are never had: as it should be
`
	if r := wineRun(t, nil, exe); r.code != 0 || r.stdout != want {
		t.Errorf("exit code %d\n%s%s\nwant\n%s", r.code, r.stdout, r.stderr, want)
	}
}

// The list of modules is made without reading an image's header: it is read under the loader's lock, where a
// fault would end the program.
func TestWindowsModuleHeaders(t *testing.T) {
	exe := compileWindows(t, "modules.exe", append(hostSampler, "testdata/modules_windows.c")...)
	const want = `as it is: size right, stamp right, name version.dll
a size that is not mapped: size right, stamp right, name version.dll
headers that point nowhere: size right, stamp right, name version.dll
headers that may not be read: size right, stamp right, name version.dll
`
	if r := wineRun(t, nil, exe); r.code != 0 || r.stdout != want {
		t.Errorf("exit code %d\n%s%s\nwant\n%s", r.code, r.stdout, r.stderr, want)
	}
}

// .NET Core 1.x has ICorProfilerInfo7; a runtime without it is older still.
func TestWindowsOldRuntime(t *testing.T) {
	exe, dll := compileWindows(t, "oldclr.exe", "testdata/oldclr.c"), need(t, "out", "windows", "seedwalk_profiler.dll")
	for version, why := range map[string]string{"2": "it has no ICorProfilerInfo3", "7": "it has no ICorProfilerInfo8"} {
		r := wineRun(t, []string{"SEEDWALK_SOCKET=tcp:127.0.0.1:1:none"}, exe, dll, version)
		want := "seedwalk: this runtime is too old: " + why + "; use .NET Core 2.0 or later\n"
		if r.code != 0 || r.stdout != "80004005\n" || r.stderr != want {
			t.Errorf("ICorProfilerInfo%s: %d %q %q", version, r.code, r.stdout, r.stderr)
		}
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
		{"not a .NET program", nil, nil, []string{tool, "version"}, 0, "seedwalk ", "older than .NET Core 2.0", 1},
		{"a library that is no profiler", nil, []string{"--profiler", need(t, "out", "windows", "demo.dll")}, hosted, 0, "demo: 11 threads", "cannot be a profiler here: it does not export DllGetClassObject", 1},
		{"a 32-bit program", nil, nil, []string{bits32}, anyCode, "", "is for x86 (32-bit): 32-bit processes are not recorded; build it for x86-64", 2},
		{"no program by its name", nil, nil, []string{file("data", []byte("x"))}, 126, "", "its name does not end as a program's does", 1},
		{"another profiler", []string{"CoreClr_Enable_Profiling=1", "CORECLR_PROFILER={11111111-1111-1111-1111-111111111111}"}, nil, hosted, 0, "demo: 11 threads", "before .NET 6 loads one profiler only", 2},
		{"no such output", nil, []string{"--output", filepath.Join(dir, "none", "a.html")}, hosted, 125, "", "make the directory first: mkdir ", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"record", "--quiet", "--output", filepath.Join(dir, "out.json")}, c.flags...)
			r := wineRun(t, c.env, tool, append(append(args, "--"), c.argv...)...)
			if r.code != c.code && c.code != anyCode || !strings.HasPrefix(r.stdout, c.stdout) || c.stdout == "" && r.stdout != "" || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != c.lines {
				t.Errorf("exit code %d, want %d; output %q, said %q", r.code, c.code, r.stdout, r.stderr)
			}
		})
	}
}

// doctor finds no fault in the profiler itself and the runtimes of the cache.
func TestWindowsDoctor(t *testing.T) {
	need(t, "out", "windows", "seedwalk_profiler.dll")
	r := wineRun(t, []string{"DOTNET_ROOT=" + windowsPath(filepath.Dir(filepath.Dir(filepath.Dir(need(t, core222)))))},
		need(t, "out", "windows", "seedwalk.exe"), "doctor", "--", need(t, "out", "windows", "swhost.exe"))
	for _, want := range []string{"library loads     the loader takes it", "2.2.2 (DOTNET_ROOT)", "threads can be suspended", "127.0.0.1 can be connected to",
		"swhost.exe does not look like a .NET program", "Nothing stops a recording here."} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if t.Failed() || r.code != 0 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// A command file starts the recorded program.
func TestWindowsCommandFile(t *testing.T) {
	need(t, "out", "windows", "seedwalk_profiler.dll")
	dir := tempdir.New(t)
	script := filepath.Join(dir, "start.cmd")
	line := strings.Join([]string{windowsPath(need(t, "out", "windows", "swhost.exe")), windowsPath(need(t, core222)), windowsPath(need(t, "out", "windows", "Demo.exe")), "%1"}, " ")
	must.Do(t, os.WriteFile(script, []byte("@echo off\r\n"+line+"\r\n"), 0o755))
	r := wineRun(t, nil, need(t, "out", "windows", "seedwalk.exe"), "record", "--json", "--rate", "50", "--output", filepath.Join(dir, "out.json"), "--", script, "6")
	s := findSummary(t, r.stderr)
	if r.code != 0 || !strings.Contains(r.stdout, "demo: 11 threads") || s.Samples == 0 || s.Runtime != ".NET Core 2.2.2" {
		t.Errorf("exit code %d, %d samples of %q\n%s%s", r.code, s.Samples, s.Runtime, r.stdout, r.stderr)
	}
}

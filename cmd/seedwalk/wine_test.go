//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/peasm"
)

// The Windows build of the tool, run by Wine as a user would.

const wine64 = "/usr/lib/wine/wine64"

// wineLimit limits one run; Wine's first creates its prefix.
const wineLimit = 2 * time.Minute

var (
	exeOnce sync.Once
	exeDir  string
	exeErr  error
)

// windowsTool builds seedwalk.exe once and returns its path.
func windowsTool(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(wine64); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	exeOnce.Do(func() {
		if exeDir, exeErr = os.MkdirTemp("", "seedwalk-exe-"); exeErr != nil {
			return
		}
		atEnd = append(atEnd, func() { os.RemoveAll(exeDir) })
		cmd := exec.Command("go", "build", "-o", filepath.Join(exeDir, "seedwalk.exe"), ".")
		cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			exeErr = errors.New(string(out))
		}
	})
	must.Do(t, exeErr)
	return filepath.Join(exeDir, "seedwalk.exe")
}

// wineTool runs the tool of Windows in dir.
func wineTool(t *testing.T, dir string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	stdout, stderr, code = runIn(t, dir, env,
		append([]string{repo(t, "scripts/wine.sh"), "exec", windowsTool(t)}, args...)...)
	return stdout, needs.WithoutWine(t, stderr), code
}

func runIn(t *testing.T, dir string, env []string, argv ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wineLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	// the tool has ended; services that Wine started for it keep its output open
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v %v", argv, err, ctx.Err())
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n"),
		strings.ReplaceAll(errOut.String(), "\r\n", "\n"), cmd.ProcessState.ExitCode()
}

// repo is the path of a file of the project.
func repo(t *testing.T, name string) string {
	t.Helper()
	return must.Get(filepath.Abs(filepath.Join("../..", name)))(t)
}

// native builds the tool for this system too, with the same main.
func native(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seedwalk")
	must.Run(t, exec.Command("go", "build", "-o", path, "."))
	return path
}

// volatile matches what differs between two runs of one command on any system.
var volatile = regexp.MustCompile(`[0-9.]+ s, peak [0-9.]+ [KM]iB|"(seconds|peak_kib)": [0-9.e+-]+|\((stream \d+), .*\)`)

// sameEverywhere removes what may differ between systems: how paths are spelled, and durations.
func sameEverywhere(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\\`, "/"), `\`, "/")
	return volatile.ReplaceAllString(s, "…")
}

// The same question has the same answer on Windows.
func TestWineSameAsLinux(t *testing.T) {
	own := native(t)
	wineTool(t, ".", nil, "version")
	core := repo(t, ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2/coreclr.dll")
	if _, err := os.Stat(core); err != nil {
		t.Log("SKIPPED-CHECK: no .NET runtime of Windows; the tool itself is checked instead")
		core = windowsTool(t)
	}
	dir := tinyFolder(t, tinyRow)
	tiny, broken := filepath.Join(dir, "x86_64_tiny.elf"), filepath.Join(dir, "broken.so")
	for _, args := range [][]string{
		{"--help"}, {"version"}, {"nonsense"}, {"info", "--check", core}, {"info", "--json", core},
		{"info", core, "--at", "0x15a160"},
		{"info", tiny, "--at", "outer"}, {"info", "--check", broken}, {"info", filepath.Join(dir, "text")},
		{"replay", dir}, {"replay", "--json", repo(t, "testkit/testdata/pe")},
		{"sim", "--scenario", "two-samplers", "--broken", "--trace"},
	} {
		name := strings.Join(args, " ")
		out, errOut, code := runIn(t, ".", nil, append([]string{own}, args...)...)
		wout, werr, wcode := wineTool(t, ".", nil, args...)
		expect.True(t, code == wcode && sameEverywhere(out) == sameEverywhere(wout) &&
			sameEverywhere(errOut) == sameEverywhere(werr),
			"%s: exit code %d, under Wine %d\n%s%s\nWine:\n%s%s", name, code, wcode, out, errOut, wout, werr)
		expect.True(t, out+errOut != "", "%s says nothing", name)
	}
}

// machineBound matches doctor's lines about this one machine.
var machineBound = regexp.MustCompile(`Wine [0-9.]+ as Windows [0-9.]+, amd64, \d+ CPUs`)

func TestWineDoctorGolden(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, data, 0o755))
		return path
	}
	export := []string{"DllGetClassObject"}
	file("ready.dll", peasm.Image{DLL: true, Exports: export}.Bytes())
	file("missing.dll", peasm.Image{DLL: true, Exports: export,
		Imports: map[string][]string{"no-such.dll": {"F"}}}.Bytes())
	file("function.dll", peasm.Image{DLL: true, Exports: export,
		Imports: map[string][]string{"kernel32.dll": {"NoSuchFunction", "Sleep"}}}.Bytes())
	file("bits32.dll", peasm.Image{Machine: 0x14c, DLL: true, Exports: export}.Bytes())
	file("bits32.exe", peasm.Image{Machine: 0x14c}.Bytes())
	file("framework.exe", peasm.Image{Machine: 0x14c, Managed: true}.Bytes())
	dotnet := func(version string) string {
		root := filepath.Join(dir, "dotnet-"+version)
		folder := filepath.Join(root, "shared/Microsoft.NETCore.App", version)
		os.MkdirAll(folder, 0o755)
		os.WriteFile(filepath.Join(folder, "coreclr.dll"), peasm.Image{DLL: true}.Bytes(), 0o644)
		return "DOTNET_ROOT=Z:" + strings.ReplaceAll(root, "/", `\`)
	}
	wineTool(t, dir, nil, "version") // Wine starts and reports that
	const other = "{11111111-2222-3333-4444-555555555555}"
	var b strings.Builder
	for _, c := range []struct { // few, because a run under Wine is slow: each has several faults to find
		name, library string
		env, args     []string
		code          int
	}{
		{"all is well, and a profiler of the Framework", "ready.dll",
			[]string{dotnet("8.0.11"), "COR_ENABLE_PROFILING=1", "COR_PROFILER=" + other}, nil, 0},
		{"a Linux library, and a 32-bit command", "", nil, []string{"bits32.exe"}, 1},
		{"a DLL that is missing, another profiler, and a Framework command", "missing.dll",
			[]string{"CoreCLR_Enable_Profiling=1", "CORECLR_PROFILER=" + other},
			[]string{"framework.exe"}, 1},
		{"a function that is missing, diagnostics off, and no such command", "function.dll",
			[]string{"DOTNET_EnableDiagnostics=0"}, []string{"none.exe"}, 1},
		{"an old runtime, and a 32-bit library", "bits32.dll", []string{dotnet("1.1.13")}, nil, 1},
	} {
		library := c.library
		if library == "" {
			library = file("linux.dll", must.Get(os.ReadFile(native(t)))(t))
		}
		out, errOut, code := wineTool(t, dir, append([]string{"DOTNET_ROOT="}, c.env...),
			append([]string{"doctor", "--profiler", library, "--"}, c.args...)...)
		expect.True(t, code == c.code && errOut == "",
			"%s: exit code %d, %s\n%s", c.name, code, errOut, out)
		out = machineBound.ReplaceAllString(out, "Wine N as Windows N, amd64, N CPUs")
		out = strings.ReplaceAll(strings.ReplaceAll(out, dir+"/", ""),
			"Z:"+strings.ReplaceAll(dir, "/", `\`)+`\`, "")
		b.WriteString("# " + c.name + "\n" + out + "\n")
	}
	golden.Check(t, filepath.Join("testdata", "doctor-windows.txt"), b.String())
}

package checked

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

const root = "../.."

// misuses is the least number of wrong calls that misuse.c makes.
const misuses = 43

var strict = []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
	"-Wno-cast-function-type", "-shared"}

// library builds the proxy with one more C file.
func library(t *testing.T, compiler, out, file string, more ...string) {
	t.Helper()
	needs.Build(t, append(append([]string{compiler, "-o", out, "-Isrc", file, "src/proxy.c", "src/rules.c",
		"src/threads.c"}, strict...), more...)...)
}

// run runs a program to its end.
func run(t *testing.T, cmd *exec.Cmd, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs bytes.Buffer
	c := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	c.Env = append(append(os.Environ(), "CORECLR_ENABLE_PROFILING=1",
		"CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}"), env...)
	c.Stderr, c.WaitDelay = &errs, 5*time.Second
	err := c.Run()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // Wine's services still have the output open
		t.Errorf("%v\n%s", err, errs.String())
	}
}

// table is how many misuses fake.c makes: 24 from an audit, and more.
const table = 51

// Every misuse of the table is reported, on a simulated CLR, because many would crash a real one.
func TestTable(t *testing.T) {
	needs.Command(t, "gcc")
	bin := filepath.Join(t.TempDir(), "fake")
	needs.Build(t, append([]string{"gcc", "-o", bin, "-Isrc", "testdata/fake.c", "src/proxy.c", "src/rules.c",
		"src/threads.c", "-lpthread"}, strict[:len(strict)-1]...)...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, bin).CombinedOutput()
	expect.Equal(t, err, nil)
	found := 0
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, fmt.Sprintf("found %d ", found+1)) {
			found++
		} else {
			t.Error(l)
		}
	}
	expect.Equal(t, found, table, "misuses found")
}

// judge checks the output of misuse.c.
func judge(t *testing.T, clr, path string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	found := 0
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, "found ") {
			found++
		} else {
			t.Errorf("%s: %s", clr, l)
		}
	}
	expect.True(t, found >= misuses, "%s: %d misuses found, want at least %d", clr, found, misuses)
	fmt.Printf("checked %-14s %d misuses, each found; right calls reported: none\n", clr, found)
}

func linux(t *testing.T, bin string) (lib string) {
	needs.Command(t, "gcc", "mcs")
	lib = filepath.Join(bin, "libmisuse.so")
	library(t, "gcc", lib, "testdata/misuse.c", "-fPIC", "-lpthread")
	return lib
}

func TestMisuseNet9Linux(t *testing.T) {
	runtime := needs.Runtime9(t)
	bin := t.TempDir()
	lib, host, app, out := linux(t, bin), filepath.Join(bin, "swhost"),
		filepath.Join(bin, "Misuse.exe"), filepath.Join(bin, "out")
	needs.Build(t, "gcc", "-O2", "-o", host, filepath.Join(root, "profiler", "testdata", "host.c"), "-ldl")
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-out:"+app, "testdata/Misuse.cs")
	run(t, exec.Command(host, runtime, app), "CORECLR_PROFILER_PATH="+lib, "MISUSE_OUT="+out)
	judge(t, "net9-linux", out)
}

func TestMisuseNet10Linux(t *testing.T) {
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	lib, program, out := linux(t, bin), filepath.Join(bin, "misuse"), filepath.Join(bin, "out")
	needs.SingleFile(t, azmcp, "azmcp.dll", program, "testdata/Misuse.cs")
	run(t, exec.Command(program), "CORECLR_PROFILER_PATH="+lib, "MISUSE_OUT="+out, "LD_LIBRARY_PATH="+bin,
		"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	judge(t, "net10-linux", out)
}

func TestMisuseNet10Windows(t *testing.T) {
	const mingw = "x86_64-w64-mingw32-gcc"
	needs.Command(t, mingw, "mcs")
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	azmcp := needs.File(t, ".cache", "dotnet-10.0.9-win", "package", "dist", "azmcp.exe")
	bin := t.TempDir()
	lib, program, out := filepath.Join(bin, "misuse.dll"),
		filepath.Join(bin, "Misuse.exe"), filepath.Join(bin, "out")
	library(t, mingw, lib, "testdata/misuse.c", "-static", "-I"+filepath.Join(root, "profiler", "testdata"))
	needs.SingleFile(t, azmcp, "azmcp.dll", program, "testdata/Misuse.cs")
	drive := func(p string) string { return "Z:" + strings.ReplaceAll(p, "/", `\`) }
	run(t, exec.Command(needs.File(t, "scripts", "wine.sh"), "exec", program),
		"CORECLR_PROFILER_PATH="+drive(lib), "MISUSE_OUT="+drive(out),
		"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	judge(t, "net10-windows", out)
}

// The project's own profiler follows the rules: a recording with the proxy reports nothing.
func TestOwnProfilerLinux(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED-CHECK: the proxy before the own profiler is not tried with -short")
	}
	needs.Command(t, "gcc", "mcs")
	runtime := needs.Runtime9(t)
	bin := t.TempDir()
	check, own, tool := filepath.Join(bin, "libseedwalkcheck.so"),
		filepath.Join(bin, "libseedwalkprofiler.so"), filepath.Join(bin, "seedwalk")
	host, app, out := filepath.Join(bin, "swhost"), filepath.Join(bin, "Soak.exe"), filepath.Join(bin, "out")
	library(t, "gcc", check, "src/loader.c", "-fPIC", "-ldl")
	needs.Build(t, filepath.Join(root, "scripts", "library.sh"), "c-shared", "-o", own, root+"/profiler")
	needs.Build(t, "go", "build", "-o", tool, root+"/cmd/seedwalk")
	needs.Build(t, "gcc", "-O2", "-o", host, filepath.Join(root, "profiler", "testdata", "host.c"), "-ldl")
	needs.Build(t, "mcs", "-optimize+", "-nologo", "-out:"+app,
		filepath.Join(root, "profiler", "testdata", "Churn.cs"))
	cmd := exec.Command(tool, "record", "--profiler", check, "--output", filepath.Join(bin, "out.folded"),
		"--", host, runtime, app, "4")
	cmd.Env = append(os.Environ(), "SEEDWALK_CHECKED_LIBRARY="+own, "SEEDWALK_CHECKED_OUT="+out)
	text, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, text)
	broken, err := os.ReadFile(out)
	must.Equal(t, err, nil, "the proxy was not loaded")
	expect.True(t, len(broken) == 0, "the own profiler breaks rules:\n%s", broken)
}

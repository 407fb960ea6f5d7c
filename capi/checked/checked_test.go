package checked

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/testkit/bundle"
)

const root = "../.."

// misuses is how many wrong calls misuse.c makes at least.
const misuses = 30

var strict = []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-shared"}

// need is a file that `make runtime` fetches.
func need(t *testing.T, elem ...string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join(append([]string{root}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Skipf("SKIPPED-CHECK: %s is missing; run make runtime", filepath.Join(elem...))
	}
	return p
}

func needCommand(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED-CHECK: no %s; run scripts/deps.sh test", name)
	}
}

func build(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

// library builds the proxy with one more C file.
func library(t *testing.T, compiler, out, file string, more ...string) {
	t.Helper()
	build(t, append(append([]string{compiler, "-o", out, "-Isrc", file, "src/proxy.c", "src/rules.c"}, strict...), more...)...)
}

// run runs a program to its end.
func run(t *testing.T, cmd *exec.Cmd, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs bytes.Buffer
	c := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	c.Env = append(append(os.Environ(), "CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}"), env...)
	c.Stderr, c.WaitDelay = &errs, 5*time.Second
	if err := c.Run(); err != nil {
		t.Errorf("%v\n%s", err, errs.String())
	}
}

// judge reads what misuse.c has written.
func judge(t *testing.T, clr, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for l := range strings.Lines(string(text)) {
		if strings.HasPrefix(l, "found ") {
			found++
		} else {
			t.Errorf("%s: %s", clr, l)
		}
	}
	if found < misuses {
		t.Errorf("%s: %d misuses found, want at least %d", clr, found, misuses)
	}
	fmt.Printf("checked %-14s %d misuses, each found; right calls reported: none\n", clr, found)
}

func linux(t *testing.T, bin string) (lib string) {
	needCommand(t, "gcc")
	needCommand(t, "mcs")
	lib = filepath.Join(bin, "libmisuse.so")
	library(t, "gcc", lib, "testdata/misuse.c", "-fPIC", "-lpthread")
	return lib
}

func TestMisuseNet9Linux(t *testing.T) {
	runtime := filepath.Dir(need(t, ".cache", "dotnet-9.0.5", "package", "dist", "libcoreclr.so"))
	bin := t.TempDir()
	lib, host, app, out := linux(t, bin), filepath.Join(bin, "swhost"), filepath.Join(bin, "Misuse.exe"), filepath.Join(bin, "out")
	build(t, "gcc", "-O2", "-o", host, filepath.Join(root, "profiler", "testdata", "host.c"), "-ldl")
	build(t, "mcs", "-optimize+", "-nologo", "-out:"+app, "testdata/Misuse.cs")
	run(t, exec.Command(host, runtime, app), "CORECLR_PROFILER_PATH="+lib, "MISUSE_OUT="+out)
	judge(t, "net9-linux", out)
}

func TestMisuseNet10Linux(t *testing.T) {
	azmcp := need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	bin := t.TempDir()
	lib, program, out := linux(t, bin), filepath.Join(bin, "misuse"), filepath.Join(bin, "out")
	singleFile(t, azmcp, program)
	run(t, exec.Command(program), "CORECLR_PROFILER_PATH="+lib, "MISUSE_OUT="+out, "LD_LIBRARY_PATH="+bin, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	judge(t, "net10-linux", out)
}

func TestMisuseNet10Windows(t *testing.T) {
	const mingw = "x86_64-w64-mingw32-gcc"
	needCommand(t, mingw)
	needCommand(t, "mcs")
	if _, err := os.Stat("/usr/lib/wine/wine64"); err != nil {
		t.Skip("SKIPPED-CHECK: no wine64; run scripts/deps.sh windows")
	}
	azmcp := need(t, ".cache", "dotnet-10.0.9-win", "package", "dist", "azmcp.exe")
	bin := t.TempDir()
	lib, program, out := filepath.Join(bin, "misuse.dll"), filepath.Join(bin, "Misuse.exe"), filepath.Join(bin, "out")
	library(t, mingw, lib, "testdata/misuse.c", "-static", "-I"+filepath.Join(root, "profiler", "testdata"))
	singleFile(t, azmcp, program)
	drive := func(p string) string { return "Z:" + strings.ReplaceAll(p, "/", `\`) }
	run(t, exec.Command(need(t, "scripts", "wine.sh"), "exec", program), "CORECLR_PROFILER_PATH="+drive(lib), "MISUSE_OUT="+drive(out),
		"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	judge(t, "net10-windows", out)
}

// singleFile puts Misuse.cs in the place of a single-file program's own assembly.
func singleFile(t *testing.T, program, out string) {
	t.Helper()
	const core, app = "System.Private.CoreLib.dll", "azmcp.dll"
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(data, program)
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Find(core)
	if err != nil {
		t.Fatal(err)
	}
	content, err := b.Bytes(e)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lib, own := filepath.Join(dir, core), filepath.Join(dir, app)
	if err := os.WriteFile(lib, content, 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, "mcs", "-optimize+", "-nologo", "-nostdlib", "-noconfig", "-warn:1", "-r:"+lib, "-out:"+own, "testdata/Misuse.cs")
	if e, err = b.Find(app); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(own); err != nil {
		t.Fatal(err)
	}
	if err := b.Replace(e, content); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, b.Data, 0o700); err != nil {
		t.Fatal(err)
	}
}

// The project's own profiler keeps the rules: a recording of it, with the proxy
// before it, has nothing to report.
func TestOwnProfilerLinux(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED-CHECK: the proxy before the own profiler is not tried with -short")
	}
	needCommand(t, "gcc")
	needCommand(t, "mcs")
	runtime := filepath.Dir(need(t, ".cache", "dotnet-9.0.5", "package", "dist", "libcoreclr.so"))
	bin := t.TempDir()
	check, own, tool := filepath.Join(bin, "libseedwalkcheck.so"), filepath.Join(bin, "libseedwalkprofiler.so"), filepath.Join(bin, "seedwalk")
	host, app, out := filepath.Join(bin, "swhost"), filepath.Join(bin, "Soak.exe"), filepath.Join(bin, "out")
	library(t, "gcc", check, "src/loader.c", "-fPIC", "-ldl")
	build(t, filepath.Join(root, "scripts", "library.sh"), "c-shared", "-o", own, root+"/profiler")
	build(t, "go", "build", "-o", tool, root+"/cmd/seedwalk")
	build(t, "gcc", "-O2", "-o", host, filepath.Join(root, "profiler", "testdata", "host.c"), "-ldl")
	build(t, "mcs", "-optimize+", "-nologo", "-out:"+app, filepath.Join(root, "profiler", "testdata", "Churn.cs"))
	cmd := exec.Command(tool, "record", "--profiler", check, "--output", filepath.Join(bin, "out.folded"), "--", host, runtime, app, "4")
	cmd.Env = append(os.Environ(), "SEEDWALK_CHECKED_LIBRARY="+own, "SEEDWALK_CHECKED_OUT="+out)
	text, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, text)
	broken, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("the proxy was not loaded: %v", err)
	}
	if len(broken) > 0 {
		t.Errorf("the own profiler breaks rules:\n%s", broken)
	}
}

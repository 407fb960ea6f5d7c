package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What testdata/example.c says when every check of it holds.
const want = `walk: 2 frames, seed found
merge: gap none, 0 frames doubtful
walk: 2 frames, seed found
merge: gap none, 0 frames doubtful
all is as it should be
`

// platform is one the library is given away for.
type platform struct {
	name, goos, goarch string
	cc, cxx            string
	shared, exe        string   // file names
	runner             []string // before the program; its first must exist
	libraries          []string
}

var platforms = []platform{
	{"linux-amd64", "linux", "amd64", "gcc", "g++", "libseedwalk.so", "example", nil, []string{"-lpthread"}},
	{"linux-arm64", "linux", "arm64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "libseedwalk.so", "example",
		[]string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}, []string{"-lpthread"}},
	{"windows-amd64", "windows", "amd64", "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-g++", "seedwalk.dll", "example.exe",
		[]string{"/usr/lib/wine/wine64"}, nil},
}

// The worked example is built as a profiler's author would, in C against the
// shared library and the archive and in C++, and run, for every platform.
func TestExample(t *testing.T) {
	for _, p := range platforms {
		t.Run(p.name, func(t *testing.T) {
			for _, tool := range append([]string{p.cc}, p.runner...)[:min(2, 1+len(p.runner))] {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skip("SKIPPED-CHECK: no " + tool)
				}
			}
			if p.goos == "windows" {
				script, err := filepath.Abs("../scripts/wine.sh")
				if err != nil {
					t.Fatal(err)
				}
				p.runner = []string{script, "exec"}
			}
			dir := t.TempDir()
			shared, archive := filepath.Join(dir, p.shared), filepath.Join(dir, "libseedwalk.a")
			p.library(t, "shared", shared)
			p.library(t, "archive", archive)
			t.Run("c-shared", func(t *testing.T) { p.example(t, p.cc, []string{"-std=gnu11"}, shared) })
			t.Run("c-archive", func(t *testing.T) { p.example(t, p.cc, []string{"-std=gnu11"}, archive) })
			t.Run("c++", func(t *testing.T) {
				if _, err := exec.LookPath(p.cxx); err != nil {
					t.Skip("SKIPPED-CHECK: no " + p.cxx)
				}
				p.example(t, p.cxx, []string{"-x", "c++", "-std=c++17"}, archive)
			})
		})
	}
}

func (p *platform) library(t *testing.T, mode, out string) {
	t.Helper()
	do(t, []string{"GOOS=" + p.goos, "GOARCH=" + p.goarch, "CC=" + p.cc}, "./build.sh", mode, out)
}

// example builds the example beside the library and runs it.
func (p *platform) example(t *testing.T, compiler string, language []string, library string) {
	t.Helper()
	dir := filepath.Dir(library)
	exe := filepath.Join(dir, p.exe)
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe}, language...)
	args = append(args, "testdata/example.c", "-x", "none", library)
	args = append(args, p.libraries...)
	if p.goos == "linux" {
		args = append(args, "-Wl,-rpath,"+dir)
	}
	do(t, nil, compiler, args...)
	run := append(append([]string{}, p.runner...), exe)
	if got := strings.ReplaceAll(do(t, nil, run[0], run[1:]...), "\r", ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func do(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// The output of testdata/example.c if all its checks pass.
const want = `walk: 2 frames, seed found
merge: gap none, 0 frames doubtful
walk: 2 frames, seed found
merge: gap none, 0 frames doubtful
all is as it should be
`

// platform is one for which the library is released.
type platform struct {
	name, goos, goarch string
	cc, cxx            string
	shared, exe        string   // file names
	runner             []string // command that runs programs; its first word must exist
	with               []string // further libraries to link
}

var platforms = []platform{
	{"linux-amd64", "linux", "amd64", "gcc", "g++", "libseedwalk.so", "example", nil, []string{"-lpthread"}},
	{"linux-arm64", "linux", "arm64", "aarch64-linux-gnu-gcc",
		"aarch64-linux-gnu-g++", "libseedwalk.so", "example",
		[]string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}, []string{"-lpthread"}},
	{"windows-amd64", "windows", "amd64", "x86_64-w64-mingw32-gcc", "x86_64-w64-mingw32-g++",
		"seedwalk.dll", "example.exe",
		[]string{"/usr/lib/wine/wine64"}, []string{"-lsynchronization"}},
}

// The test builds the example as a profiler's author would: in C with the shared library, in C with the
// archive, and in C++. It runs the example on every platform.
func TestExample(t *testing.T) {
	for _, p := range platforms {
		t.Run(p.name, func(t *testing.T) {
			dir := p.libraries(t)
			shared, archive := filepath.Join(dir, p.shared), filepath.Join(dir, "libseedwalk.a")
			t.Run("c-shared", func(t *testing.T) { p.example(t, p.cc, []string{"-std=gnu11"}, shared) })
			t.Run("c-archive", func(t *testing.T) { p.example(t, p.cc, []string{"-std=gnu11"}, archive) })
			t.Run("c++", func(t *testing.T) {
				needs.Command(t, p.cxx)
				p.example(t, p.cxx, []string{"-x", "c++", "-std=c++17"}, archive)
			})
		})
	}
}

// built are the folders of each platform's libraries.
var built = map[string]string{}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range built {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// libraries returns a folder with both libraries, linked once for all tests.
func (p *platform) libraries(t *testing.T) string {
	t.Helper()
	p.need(t)
	if dir, ok := built[p.name]; ok {
		return dir
	}
	dir := must.Get(os.MkdirTemp("", "capi"))(t)
	built[p.name] = dir
	p.library(t, "shared", filepath.Join(dir, p.shared))
	p.library(t, "archive", filepath.Join(dir, "libseedwalk.a"))
	return dir
}

// need skips the test if the platform's programs cannot be built or run.
func (p *platform) need(t *testing.T) {
	t.Helper()
	needs.Command(t, append([]string{p.cc}, p.runner...)[:min(2, 1+len(p.runner))]...)
}

// run runs a program of the platform and returns its output.
func (p *platform) run(t *testing.T, exe string, args ...string) string {
	t.Helper()
	argv := append(append([]string{}, p.runner...), exe)
	if p.goos == "windows" {
		script := must.Get(filepath.Abs("../scripts/wine.sh"))(t)
		argv = []string{script, "exec", exe}
	}
	argv = append(argv, args...)
	return strings.ReplaceAll(do(t, nil, argv[0], argv[1:]...), "\r", "")
}

func (p *platform) library(t *testing.T, mode, out string) {
	t.Helper()
	do(t, []string{"GOOS=" + p.goos, "GOARCH=" + p.goarch, "CC=" + p.cc}, "./build.sh", mode, out)
}

// example builds the example with the library and runs it.
func (p *platform) example(t *testing.T, compiler string, language []string, library string) {
	t.Helper()
	dir := filepath.Dir(library)
	exe := filepath.Join(dir, p.exe)
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe}, language...)
	args = append(args, "testdata/example.c", "-x", "none", library)
	args = append(args, p.with...)
	if p.goos == "linux" {
		args = append(args, "-Wl,-rpath,"+dir)
	}
	do(t, nil, compiler, args...)
	expect.Equal(t, p.run(t, exe), want)
}

func do(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) { // Wine's services still have the output open
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// The header's gaps, and the texts for them, equal the merger's, by name and by number.
func TestGaps(t *testing.T) {
	header := must.Get(os.ReadFile("seedwalk.h"))(t)
	names := regexp.MustCompile(`(?m)^\tSEEDWALK_GAP_(\w+), +/\* `).FindAllStringSubmatch(string(header), -1)
	expect.True(t, len(names) == merge.GapCount,
		"the header has %d gaps, there are %d", len(names), merge.GapCount)
	for i, m := range names {
		if name := strings.ReplaceAll(strings.ToLower(m[1]), "_", "-"); name != merge.Gap(i).String() {
			t.Errorf("%d is %s in the header, %v in fact", i, name, merge.Gap(i))
		}
	}
	_, table, _ := strings.Cut(string(must.Get(os.ReadFile("errors.c"))(t)), "gaps[] = {")
	texts := strings.Fields(strings.NewReplacer(`"`, "", ",", " ").Replace(table[:strings.Index(table, "}")]))
	for i, text := range texts {
		expect.True(t, len(texts) == merge.GapCount && text == merge.Gap(i).String(),
			"%d is %s in errors.c, %v in fact", i, text, merge.Gap(i))
	}
}

// Every mistake of a vendor with the sampler gives an error and a text, the same on Linux and Windows.
func TestSamplerErrors(t *testing.T) {
	for _, p := range platforms {
		if p.goarch != "amd64" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			dir := p.libraries(t)
			exe := filepath.Join(dir, "errors.exe")
			args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe,
				"testdata/sampler_errors.c", filepath.Join(dir, "libseedwalk.a")}
			do(t, nil, p.cc, append(args, p.with...)...)
			got := p.run(t, exe)
			golden.Check(t, "testdata/sampler_errors.txt", got)
		})
	}
}

package work

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var update = flag.Bool("update", false, "write the numbers of this machine to testdata/instructions.txt")

// walks are the benchmarks that are counted. Both architectures' stacks are walked
// by an x86-64 program.
var walks = []struct {
	name, pkg, bench string
	frames           int
}{
	{"x86-64 ELF warm", "unwind/amd64", "BenchmarkWalk/warm/32", 32},
	{"x86-64 ELF warm, one frame", "unwind/amd64", "BenchmarkWalk/warm/1", 1},
	{"x86-64 ELF no rule cached", "unwind/amd64", "BenchmarkWalk/cold/32", 32},
	{"x86-64 PE warm", "unwind/amd64", "BenchmarkWalkPE/warm/32", 32},
	{"x86-64 PE warm, one frame", "unwind/amd64", "BenchmarkWalkPE/warm/1", 1},
	{"x86-64 PE no rule cached", "unwind/amd64", "BenchmarkWalkPE/off/32", 32},
	{"x86-64 managed code, guessed, warm", "unwind/amd64", "BenchmarkGuess/warm", 1},
	{"x86-64 managed code, warm", "clr/managed", "BenchmarkWalk", 32},
	{"x86-64 managed code, single steps", "clr/managed", "BenchmarkStep", 5},
	{"ARM64 managed code, guessed, warm", "unwind/arm64", "BenchmarkGuess/warm", 1},
	{"ARM64 ELF warm", "unwind/arm64", "BenchmarkWalk/warm/32", 32},
	{"ARM64 ELF warm, one frame", "unwind/arm64", "BenchmarkWalk/warm/1", 1},
	{"ARM64 PE warm", "unwind/arm64", "BenchmarkWalkPE/warm/32", 32},
	{"ARM64 ELF no rule cached", "unwind/arm64", "BenchmarkWalk/cold/32", 32},
	{"ARM64 PE no rule cached", "unwind/arm64", "BenchmarkWalkPE/off/32", 32},
}

// slack is how many percent more than written down a walk may do.
const slack = 10

const golden = "testdata/instructions.txt"

// compiler is what the numbers depend on: the release without its patch.
func compiler() string {
	major, rest, _ := strings.Cut(runtime.Version(), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// No walk does more for a frame than it did.
func TestInstructionsPerFrame(t *testing.T) {
	c := newCounter(t)
	want := readGolden(t)
	var out strings.Builder
	fmt.Fprintf(&out, "compiler\t%s\n", compiler())
	for _, w := range walks {
		got := c.perFrame(t, w.pkg, w.bench, w.frames)
		fmt.Fprintf(&out, "%s\t%d\n", w.name, got)
		t.Logf("%-34s %5d instructions a frame, written down: %d", w.name, got, want[w.name])
		if limit := want[w.name] * (100 + slack) / 100; !*update && got > limit {
			t.Errorf("%s: %d instructions a frame, more than %d", w.name, got, limit)
		}
	}
	if *update {
		must.Do(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
}

// readGolden reads the numbers written down: a name and a number a line.
func readGolden(t *testing.T) map[string]int {
	t.Helper()
	want := map[string]int{}
	data, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name == "compiler" && value != compiler() && !*update {
			t.Skipf("SKIPPED-CHECK: instructions were counted with %s, this is %s", value, compiler())
		}
		want[name], _ = strconv.Atoi(value)
	}
	return want
}

// counter counts what benchmarks run.
type counter struct {
	dir, plugin string
	programs    map[string]string // of a package
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED-CHECK: instructions are counted on x86-64 Linux alone")
	}
	needs.Command(t, "qemu-x86_64", "gcc", "go")
	c := &counter{dir: tempdir.New(t), programs: map[string]string{}}
	c.plugin = filepath.Join(c.dir, "count.so")
	run(t, nil, "gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
		"-o", c.plugin, "testdata/count.c")
	return c
}

// program builds the tests of a package of unwind.
func (c *counter) program(t *testing.T, pkg string) string {
	t.Helper()
	if c.programs[pkg] == "" {
		c.programs[pkg] = filepath.Join(c.dir, filepath.Base(pkg)+".test")
		run(t, nil, "go", "test", "-c", "-o", c.programs[pkg], "../../"+pkg)
	}
	return c.programs[pkg]
}

// Repetitions that are compared. What else a program does is the same in both, but for
// what the runtime does at times of its own: so there are as many frames of short walks.
const fewer, moreFrames = 500, 96_000

func (c *counter) perFrame(t *testing.T, pkg, bench string, frames int) int {
	t.Helper()
	program, more := c.program(t, pkg), fewer+moreFrames/frames
	return int((c.count(t, program, bench, more) - c.count(t, program, bench,
		fewer)) / int64((more-fewer)*frames))
}

// count is how many instructions a program runs for so many repetitions.
func (c *counter) count(t *testing.T, program, bench string, times int) int64 {
	t.Helper()
	log := filepath.Join(c.dir, "count")
	run(t, []string{"GOMAXPROCS=1", "GOGC=off"}, "qemu-x86_64", "-plugin", c.plugin,
		"-d", "plugin", "-D", log, program,
		"-test.run", "^$", "-test.bench", "^"+strings.ReplaceAll(bench, "/", "$/^")+"$",
		"-test.benchtime", strconv.Itoa(times)+"x")
	data := must.Get(os.ReadFile(log))(t)
	return must.Get(strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64))(t)
}

func run(t *testing.T, env []string, name string, arg ...string) {
	t.Helper()
	cmd := exec.Command(name, arg...)
	cmd.Env = append(os.Environ(), env...)
	must.Run(t, cmd)
}

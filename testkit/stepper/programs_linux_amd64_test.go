package stepper

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

var (
	all   = flag.Bool("all", false, "step through every build, not only a few")
	every = flag.Int("every", 0, "compare each n-th instruction; 0: all with -all, else each 5th")
)

// The newest installed version of each tool.
var (
	clang   = newest("clang-19", "clang")
	lldLink = newest("lld-link-19", "lld-link")
	fuseLLD = "-fuse-ld=" + strings.TrimPrefix(newest("ld.lld-19", "ld.lld"), "ld.")
)

func newest(names ...string) string {
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return names[0]
}

const shapes = "testdata/shapes.c"

// build is one way to compile a program. Without -all, only builds with few are stepped.
type build struct {
	name string
	few  bool
	cc   []string
}

var builds = []build{
	{"gcc O0", true, []string{"gcc", "-O0"}},
	{"gcc O1", false, []string{"gcc", "-O1"}},
	{"gcc O2", true, []string{"gcc", "-O2"}},
	{"gcc O3 haswell", false, []string{"gcc", "-O3", "-march=haswell"}},
	{"gcc Os", false, []string{"gcc", "-Os"}},
	{"gcc CET", false, []string{"gcc", "-O2", "-fcf-protection=full"}},
	{"gcc LTO", false, []string{"gcc", "-O2", "-flto"}},
	{"gcc static", false, []string{"gcc", "-O2", "-static"}},
	{"gcc no frame pointer, stack clash", false,
		[]string{"gcc", "-O2", "-fstack-clash-protection", "-fomit-frame-pointer"}},
	{"gcc frame pointer", false, []string{"gcc", "-O2", "-fno-omit-frame-pointer", "-mno-red-zone"}},
	{"clang O0", false, []string{clang, "-O0"}},
	{"clang O2", true, []string{clang, "-O2"}},
	{"clang O3 haswell", false, []string{clang, "-O3", "-march=haswell"}},
	{"clang Oz", false, []string{clang, "-Oz"}},
	{"clang synchronous", false,
		[]string{clang, "-O2", "-funwind-tables", "-fno-asynchronous-unwind-tables"}},
	{"clang synchronous, frame pointer", false,
		[]string{clang, "-O1", "-fno-omit-frame-pointer", "-funwind-tables",
			"-fno-asynchronous-unwind-tables"}},
	{"clang CET", false, []string{clang, "-O2", "-fcf-protection=full"}},
	{"clang LTO", false, []string{clang, "-O2", "-flto", fuseLLD}},
	{"musl static O2", true, []string{"musl-gcc", "-O2", "-static"}},
	{"musl static O0", false, []string{"musl-gcc", "-O0", "-static"}},
	{"musl Os", false, []string{"musl-gcc", "-Os"}},
}

// each steps the chosen builds, one after the other.
func each(t *testing.T, builds []build, step func(*testing.T, *build)) {
	left := 0
	for i := range builds {
		b := &builds[i]
		if !b.few && !*all {
			left++
			continue
		}
		t.Run(b.name, func(t *testing.T) { step(t, b) })
	}
	if left > 0 {
		t.Run("all", func(t *testing.T) { t.Skipf("SKIPPED-CHECK: %d builds more are stepped by make stepped", left) })
	}
}

// make compiles the program, and skips the test if there is no such compiler.
func (b *build) make(t *testing.T, source string) string {
	t.Helper()
	b.need(t)
	bin := filepath.Join(t.TempDir(), "program")
	args := append(b.cc[1:len(b.cc):len(b.cc)], "-w", "-o", bin, source)
	must.Run(t, exec.Command(b.cc[0], args...))
	return bin
}

func options(bin string) Options {
	o := Options{Entry: true, Every: 5, Max: 1 << 30, From: bin}
	if *all {
		o.Every = 1
	}
	if *every > 0 {
		o.Every = *every
	}
	return o
}

// silent are builds without unwind data, with functions in the order of the source.
var silent = []build{
	{"gcc O1", true, []string{"gcc", "-O1", "-no-pie", "-fno-pie", "-fno-toplevel-reorder",
		"-fno-asynchronous-unwind-tables"}},
	{"gcc Os", true, []string{"gcc", "-Os", "-fno-toplevel-reorder", "-fno-asynchronous-unwind-tables"}},
	{"gcc O2", false, []string{"gcc", "-O2", "-fno-toplevel-reorder", "-fno-asynchronous-unwind-tables"}},
	{"clang O1", false, []string{clang, "-O1", "-fno-asynchronous-unwind-tables"}},
}

// TestSilentSwitches: a jump through a register or memory proves no caller.
func TestSilentSwitches(t *testing.T) { each(t, silent, stepped("testdata/switches.c", 1000)) }

// TestSilentNoReturn: code behind a call that never returns proves no caller.
func TestSilentNoReturn(t *testing.T) { each(t, silent, stepped("testdata/noreturn.c", 1000)) }

// TestShapes walks at the instructions of a program of many shapes.
func TestShapes(t *testing.T) { each(t, builds, stepped(shapes, 1000)) }

// stepped returns a test of a program's builds. Each build must have at least the given number of points.
func stepped(source string, least int) func(*testing.T, *build) {
	return func(t *testing.T, b *build) {
		bin := b.make(t, source)
		j := NewJudge()
		must.Do(t, Run(exec.Command(bin), options(bin), j.Visit))
		note(t, &j.Tally)
		expect.True(t, j.SureWrong == 0 && j.Points >= least, "wrong without doubt:\n%s", Worst(j.Bad, 30))
		if len(j.Ends) > 0 {
			t.Logf("ends:\n%s", Worst(j.Ends, 12))
		}
	}
}

// TestStripped walks the same programs, and those of a C library that never had
// any, without unwind data: by the code alone.
func TestStripped(t *testing.T) {
	each(t, builds, func(t *testing.T, b *build) {
		bin := b.make(t, shapes)
		j := NewJudge()
		j.Guess = true
		j.Edit = func(m *module.Module) { m.CFI = nil }
		if !strings.HasPrefix(b.name, "musl") { // the C library keeps its own
			j.Edit = func(m *module.Module) {
				if m.Path == bin {
					m.CFI = nil
				}
			}
		}
		must.Do(t, Run(exec.Command(bin), options(bin), j.Visit))
		note(t, &j.Tally)
		right := j.Complete + j.Right
		if share := float64(right) / float64(j.Points); j.SureWrong > 0 || j.Points < 1000 || share < 0.99 {
			t.Errorf("%.4f right; wrong without doubt:\n%s", share, Worst(j.Bad, 30))
		}
		t.Logf("doubtful and wrong:\n%sends:\n%s", Worst(j.Doubts, 20), Worst(j.Ends, 20))
	})
}

// realigned are builds of functions that realign their stack. gcc describes RBP as saved
// where RBP points, in epilogs that have restored it too.
var realigned = []build{
	{"gcc O2, DRAP", true, []string{"gcc", "-O2", "-mforce-drap"}},
	{"gcc O1, DRAP, no PLT", true,
		[]string{"gcc", "-O1", "-mforce-drap", "-fno-plt", "-foptimize-sibling-calls"}},
	{"gcc Os, DRAP", true, []string{"gcc", "-Os", "-mforce-drap", "-fno-pie", "-no-pie"}},
	{"gcc O3, no PLT", true, []string{"gcc", "-O3", "-fno-plt"}},
	{"gcc O2, dynamic realign", false, []string{"gcc", "-O2", "-mstackrealign", "-fno-pie", "-no-pie"}},
	{"gcc O2, stack protector", false,
		[]string{"gcc", "-O2", "-fstack-protector-all", "-fcf-protection=full"}},
	{"clang O2", false, []string{clang, "-O2"}},
}

// TestRealigned walks at the instructions of epilogs that end in a tail call.
func TestRealigned(t *testing.T) { each(t, realigned, stepped("testdata/realigned.c", 300)) }

// thunks are builds whose returns and indirect calls go through thunks. At the return of a return thunk,
// gcc's call frame information has a wrong CFA.
var thunks = []build{
	{"gcc return thunks", true, []string{"gcc", "-O2", "-mfunction-return=thunk"}},
	{"gcc inline return thunks", true,
		[]string{"gcc", "-O1", "-mfunction-return=thunk-inline", "-mindirect-branch=thunk-inline"}},
	{"gcc retpolines", true, []string{"gcc", "-O2", "-mindirect-branch=thunk", "-fcf-protection=none"}},
	{"clang retpolines", false, []string{clang, "-O2", "-mretpoline"}},
}

// TestThunks walks at the instructions of return thunks and retpolines.
func TestThunks(t *testing.T) { each(t, thunks, stepped(shapes, 1000)) }

// sums are the tallies of all builds by test, in the order in which tests began.
var sums []*sum

type sum struct {
	test   string
	builds int
	Tally
}

// note prints a build's tally, and adds it to its test's.
func note(t *testing.T, c *Tally) {
	t.Helper()
	t.Log(c.String())
	test, _, _ := strings.Cut(t.Name(), "/")
	if len(sums) == 0 || sums[len(sums)-1].test != test {
		sums = append(sums, &sum{test: test})
	}
	s := sums[len(sums)-1]
	s.builds++
	s.Points += c.Points
	s.Right += c.Right + c.Complete
	s.Short += c.Short
	s.Doubtful += c.Doubtful
	s.SureWrong += c.SureWrong
}

// TestMain prints the tally of each test after a run of all builds.
func TestMain(m *testing.M) {
	code := m.Run()
	if *all {
		fmt.Printf("%-24s %6s %8s %8s %6s %8s %s\n", "", "builds", "points", "right", "short",
			"doubtful", "wrong without doubt")
		for _, s := range sums {
			fmt.Printf("%-24s %6d %8d %8d %6d %8d %d\n", s.test, s.builds, s.Points, s.Right,
				s.Short, s.Doubtful, s.SureWrong)
		}
	}
	os.Exit(code)
}

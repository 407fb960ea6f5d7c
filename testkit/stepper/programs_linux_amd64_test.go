package stepper

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

var (
	all   = flag.Bool("all", false, "step through every build, not only a few")
	every = flag.Int("every", 0, "compare each n-th instruction; 0: all with -all, else each 5th")
)

// The newest of a tool that there is.
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

// build is a program in one of its shapes. Few are built without -all.
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
	{"gcc no frame pointer, stack clash", false, []string{"gcc", "-O2", "-fstack-clash-protection", "-fomit-frame-pointer"}},
	{"gcc frame pointer", false, []string{"gcc", "-O2", "-fno-omit-frame-pointer", "-mno-red-zone"}},
	{"clang O0", false, []string{clang, "-O0"}},
	{"clang O2", true, []string{clang, "-O2"}},
	{"clang O3 haswell", false, []string{clang, "-O3", "-march=haswell"}},
	{"clang Oz", false, []string{clang, "-Oz"}},
	{"clang synchronous", false, []string{clang, "-O2", "-funwind-tables", "-fno-asynchronous-unwind-tables"}},
	{"clang synchronous, frame pointer", false, []string{clang, "-O1", "-fno-omit-frame-pointer", "-funwind-tables", "-fno-asynchronous-unwind-tables"}},
	{"clang CET", false, []string{clang, "-O2", "-fcf-protection=full"}},
	{"clang LTO", false, []string{clang, "-O2", "-flto", fuseLLD}},
	{"musl static O2", true, []string{"musl-gcc", "-O2", "-static"}},
	{"musl static O0", false, []string{"musl-gcc", "-O0", "-static"}},
	{"musl Os", false, []string{"musl-gcc", "-Os"}},
}

// each steps the builds that are wanted, one after the other.
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

// make compiles the program, and skips where there is no such compiler.
func (b *build) make(t *testing.T, source string) string {
	t.Helper()
	b.need(t)
	bin := filepath.Join(t.TempDir(), "program")
	args := append(b.cc[1:len(b.cc):len(b.cc)], "-w", "-o", bin, source)
	if out, err := exec.Command(b.cc[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", b.cc, err, out)
	}
	return bin
}

func options(bin string) Options {
	o := Options{Every: 5, Max: 1 << 30, From: bin}
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
	{"gcc O1", true, []string{"gcc", "-O1", "-no-pie", "-fno-pie", "-fno-toplevel-reorder", "-fno-asynchronous-unwind-tables"}},
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

// stepped is a test of a program's builds. least is how many points each must have.
func stepped(source string, least int) func(*testing.T, *build) {
	return func(t *testing.T, b *build) {
		bin := b.make(t, source)
		j := NewJudge()
		must.Do(t, Run(exec.Command(bin), options(bin), j.Visit))
		note(t, &j.Tally)
		if j.SureWrong > 0 || j.Points < least {
			t.Errorf("wrong without doubt:\n%s", Worst(j.Bad, 30))
		}
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

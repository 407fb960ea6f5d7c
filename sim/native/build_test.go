//go:build linux && amd64

package native

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// result is what an exploration found.
type result struct {
	Executions, Cut, Events, Longest, Failures int
	Whole                                      bool
	Why                                        string   // of the first failure
	Trace                                      []string // its steps
	Outcomes                                   []string
	Races                                      []string // "function kind - function kind", sorted
	Time                                       time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("%d executions, %d cut by sleep sets, %d steps, at most %d steps each, %d outcomes, %d races, %d failures, %.2f s",
		r.Executions, r.Cut, r.Events, r.Longest, len(r.Outcomes), len(r.Races), r.Failures, r.Time.Seconds())
}

// machine is a processor for which worlds are compiled, and how its programs run here.
type machine struct {
	tools string   // prefix of the compiler and its tools
	link  string   // linker option
	run   []string // emulator and its arguments
}

var (
	x64   = &machine{"", "-no-pie", nil}
	arm64 = &machine{"aarch64-linux-gnu-", "-static", []string{"qemu-aarch64"}}
)

// machine returns the processor that the world is compiled for.
func (w *world) machine() *machine {
	if w.arm64 {
		return arm64
	}
	return x64
}

// explorers compile the explorer once for each machine, and return its folder.
var explorers = map[*machine]func() (string, error){x64: explorerOf(x64), arm64: explorerOf(arm64)}

func explorerOf(m *machine) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "native")
		if err != nil {
			return "", err
		}
		made = append(made, dir)
		for _, name := range []string{"search", "memory", "kernel"} {
			cmd := exec.Command(m.tools+"gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-c",
				filepath.Join("src", name+".c"), "-o", filepath.Join(dir, name+".o"))
			if out, err := cmd.CombinedOutput(); err != nil {
				return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
			}
		}
		return dir, nil
	})
}

var made []string // folders of explorers

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range made {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// sources copies a folder of the product's C, with a fault in it.
func sources(t *testing.T, from string, f fault) string {
	t.Helper()
	dir, applied := t.TempDir(), false
	files, err := filepath.Glob(filepath.Join(needs.Root(t), from, "*.[ch]"))
	must.True(t, err == nil && len(files) != 0, "no sources in  %v %v", from, err)
	for _, path := range files {
		b := must.Get(os.ReadFile(path))(t)
		text, name := string(b), filepath.Base(path)
		for i := 0; name == f.file && i < len(f.edits); i++ {
			if at, ok := strings.CutPrefix(f.edits[i][0], "@"); ok {
				offset, _ := strconv.Atoi(at)
				was, now, _ := strings.Cut(f.edits[i][1], ">")
				text, applied = text[:offset]+strings.Replace(text[offset:], was, now, 1), true
				continue
			}
			if n := strings.Count(text, f.edits[i][0]); n != 1 {
				t.Fatalf("%q occurs %d times in %s", f.edits[i][0], n, f.file)
			}
			text = strings.Replace(text, f.edits[i][0], f.edits[i][1], 1)
			applied = true
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	if f.file != "" && !applied && !strings.Contains(f.file, "=") {
		t.Fatal("no file ", f.file)
	}
	return dir
}

// folder is that of the product's sources.
func (w *world) folder() string {
	if w.from != "" {
		return w.from
	}
	return "sample/probe/src"
}

// explore compiles a world and explores it. mode is "weak" or "strong": all atomics sequentially
// consistent.
func explore(t *testing.T, w world, mode string, f fault) result {
	t.Helper()
	return run(t, w, mode, compile(t, w, f), mostFailures)
}

const mostFailures = 10_000

// compile compiles a world, and returns its program.
func compile(t *testing.T, w world, f fault) (exe string) {
	t.Helper()
	m := w.machine()
	needs.Command(t, append([]string{m.tools + "gcc", m.tools + "addr2line"}, m.run...)...)
	objects := must.Get(explorers[m]())(t)
	dir := sources(t, w.folder(), f)
	exe = filepath.Join(dir, "world")
	args := []string{m.tools + "gcc", "-O1", "-g", "-fno-pie", "-fno-builtin", "-fsanitize=thread",
		"-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror",
		"-Wno-unused-function", "-Wno-tsan", "-Wno-invalid-memory-model", "-Isrc", "-Iworlds/windows",
		"-I" + dir, "-I" + filepath.Join(needs.Root(t), "capi"), "-c",
		filepath.Join("worlds", w.file+".c"), "-o", exe + ".o"}
	defines := w.defines
	if strings.Contains(f.file, "=") {
		defines = append(slices.Clone(defines), f.file)
	}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	needs.Build(t, args...)
	link := []string{m.tools + "gcc", m.link, "-o", exe, exe + ".o"}
	for _, name := range []string{"search.o", "memory.o", "kernel.o"} {
		link = append(link, filepath.Join(objects, name))
	}
	needs.Build(t, link...)
	return exe
}

// run explores a world by its program, up to some number of failures.
func run(t *testing.T, w world, mode, exe string, failures int) result {
	t.Helper()
	limit := w.limit
	if limit == 0 {
		limit = 2_000_000
	}
	start := time.Now()
	argv := append(slices.Clone(w.machine().run), exe, mode, fmt.Sprint(limit), fmt.Sprint(failures))
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	r := result{Time: time.Since(start)}
	must.Equal(t, err, nil, out)
	r.parse(t, w.machine(), exe, string(out))
	return r
}

func (r *result) parse(t *testing.T, m *machine, exe, out string) {
	var races [][]string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "outcome":
			r.Outcomes = append(r.Outcomes, strings.TrimSpace(rest))
		case "why":
			r.Why = rest
		case "step":
			r.Trace = append(r.Trace, rest)
		case "race":
			races = append(races, strings.Fields(rest))
		case "total":
			var outcomes, racy, whole int
			_, err := fmt.Sscan(rest, &r.Executions, &r.Cut, &r.Events, &r.Longest, &r.Failures,
				&outcomes, &racy, &whole)
			must.True(t, err == nil, "%q: %v", line, err)
			r.Whole = whole == 1
		}
	}
	slices.Sort(r.Outcomes)
	var pcs []string
	for _, step := range r.Trace {
		pcs = append(pcs, strings.Fields(step)[2])
	}
	for _, f := range races {
		pcs = append(pcs, f[0], f[2])
	}
	where := map[string]string{}
	if len(pcs) > 0 { // without one, addr2line reads stdin
		where = m.places(exe, pcs)
	}
	for i, step := range r.Trace {
		f := strings.SplitN(step, " ", 4)
		r.Trace[i] = fmt.Sprintf("%3s thread %s  %-44s %s", f[0], f[1], where[f[2]], f[3])
	}
	for _, f := range races {
		a, _, _ := strings.Cut(where[f[0]], " ")
		b, _, _ := strings.Cut(where[f[2]], " ")
		pair := []string{a + " " + f[1], b + " " + f[3]}
		slices.Sort(pair)
		r.Races = append(r.Races, pair[0]+" - "+pair[1])
	}
	slices.Sort(r.Races)
	r.Races = slices.Compact(r.Races)
}

// places names the functions and the lines of instructions.
func (m *machine) places(exe string, pcs []string) map[string]string {
	where := map[string]string{}
	out, _ := exec.Command(m.tools+"addr2line", append([]string{"-f", "-s", "-e", exe}, pcs...)...).Output()
	lines := strings.Split(string(out), "\n")
	for i, pc := range pcs {
		where[pc] = "- -"
		if 2*i+1 < len(lines) && !strings.HasPrefix(lines[2*i], "?") {
			line, _, _ := strings.Cut(lines[2*i+1], " ")
			where[pc] = lines[2*i] + " " + line
		}
	}
	return where
}

// The explorer finds exactly the outcomes that C11 permits, but for load buffering.
func TestLitmus(t *testing.T) {
	machines := 1
	if *long {
		machines = 2
	}
	const relaxed, release, acquire, seqCst = "__ATOMIC_RELAXED", "__ATOMIC_RELEASE",
		"__ATOMIC_ACQUIRE", "__ATOMIC_SEQ_CST"
	for _, c := range []struct {
		name, test, stores, loads string
		weak                      string // the outcome that only weak memory has
		has                       bool
		outcomes                  int
		define                    string
	}{
		{"store buffering", "SB", relaxed, relaxed, "0000 x1 y1", true, 4, ""},
		{"store buffering, release", "SB", release, acquire, "0000 x1 y1", true, 4, ""},
		{"store buffering, seq_cst", "SB", seqCst, seqCst, "0000 x1 y1", false, 3, ""},
		{"message passing", "MP", relaxed, relaxed, "1000 x1 y1", true, 4, ""},
		{"message passing, release alone", "MP", release, relaxed, "1000 x1 y1", true, 4, ""},
		{"message passing, acquire alone", "MP", relaxed, acquire, "1000 x1 y1", true, 4, ""},
		{"message passing, release", "MP", release, acquire, "1000 x1 y1", false, 3, ""},
		{"message passing, fence", "MP", relaxed, acquire, "1000 x1 y1", false, 3, "FENCE"},
		{"load buffering (a known gap)", "LB", relaxed, relaxed, "1100 x1 y1", false, 3, ""},
		{"independent reads", "IRIW", relaxed, relaxed, "1010 x1 y1", true, 16, ""},
		{"independent reads, release", "IRIW", release, acquire, "1010 x1 y1", true, 16, ""},
		{"independent reads, seq_cst", "IRIW", seqCst, seqCst, "1010 x1 y1", false, 15, ""},
		{"two stores each", "TWO_TWO_W", relaxed, relaxed, "0000 x1 y1", true, 4, ""},
		{"two stores each, seq_cst", "TWO_TWO_W", seqCst, seqCst, "0000 x1 y1", false, 3, ""},
		{"coherence", "CORR", relaxed, relaxed, "2100 x2 y0", false, 6, ""},
		{"read-modify-write", "RMW", relaxed, relaxed, "0000 x1 y0", false, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world{file: "litmus",
				defines: []string{"TEST=" + c.test, "ORDER_S=" + c.stores, "ORDER_L=" + c.loads}}
			if c.define != "" {
				w.defines = append(w.defines, c.define)
			}
			for _, w.arm64 = range []bool{false, true}[:machines] {
				r := explore(t, w, "weak", fault{})
				expect.True(t, r.Whole && r.Failures == 0 && slices.Contains(r.Outcomes, c.weak) == c.has &&
					len(r.Outcomes) == c.outcomes,
					"ARM64 %v: %v; want %d outcomes, %q among them: %v; got %q", w.arm64, r, c.outcomes,
					c.weak, c.has, r.Outcomes)
			}
		})
	}
}

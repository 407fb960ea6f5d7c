package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// What the threads of a program can have on their stacks: its source says how many frames
// of each method and function there are, so that a stack which lost some or has some twice
// is seen whatever the CLR and RtlVirtualUnwind say.

// windowsProgram is such a program, and how it is recorded.
type windowsProgram struct {
	name    string            // of its runtime
	says    string            // the begin of its output
	class   string            // whose methods the grammar names
	letters map[string]string // of native code by the image's name; n is all other
	threads []grammar
	record  func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result)
	command func(t *testing.T) []string // runs it without a recorder
	// hijack cuts the oracle's walks where it is wrong; nil: nowhere.
	hijack func(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk)
}

// grammar says which stacks a thread can have, root last: a name for a method of the
// program, c for one of the class library, s for a stub, n for the system's code, X for its
// RaiseException, other letters for the images of the program.
type grammar struct {
	thread string
	stack  *regexp.Regexp
}

// runtimes are the threads, and the times of others, without a method of the program.
const runtimes = "the runtime"

// of is a thread's grammar between whatever the runtime has put on top, and its
// own first method.
func of(stack string) *regexp.Regexp {
	return regexp.MustCompile(`^([rnscX] )*(get_Running )?` + stack + `[A-Z]\w+ (c ){2,3}(r )+n n $`)
}

// shapes judges the complete stacks of a program.
type shapes struct {
	*windowsProgram
	o      *opinion // knows the images
	m      *matrix
	stacks map[string]int // by thread
	thrown int            // recursions that must have every frame
	faults faulted
}

// faulted counts the samples of the thread that raises null references.
type faulted struct{ all, whole, outside int }

func newShapes(p *windowsProgram) *shapes {
	return &shapes{windowsProgram: p, o: newOpinion(), m: newMatrix(), stacks: map[string]int{}}
}

// ran fails the test unless the program ended as it does alone.
func (p *windowsProgram) ran(t *testing.T, res result) {
	t.Helper()
	if res.code != 0 || !strings.HasPrefix(res.stdout, p.says) {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
}

// all judges a run's samples.
func (x *shapes) all(t *testing.T, samples []*raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	for _, s := range samples {
		x.m.add(t, s)
		x.add(t, s, names)
	}
	x.addFaults(samples, names)
}

// add holds a complete stack against the grammar of its thread: that of its outermost
// method of ours.
func (x *shapes) add(t *testing.T, s *raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	if !s.Result.Complete() {
		return
	}
	words := make([]string, len(s.Frames))
	for i := range s.Frames {
		words[i] = x.word(t, s, i, names)
	}
	thread, why := x.wrong(words)
	x.stacks[thread]++
	if why != "" {
		x.m.impossible++
		stack := strings.Join(words, " ")
		x.m.show(t, s, thread+": "+stack)
		t.Errorf("%s: %s: %s", thread, why, stack)
	}
}

// wrong reports whose stack it is, and what is wrong with it, "" if nothing.
func (x *shapes) wrong(words []string) (thread, why string) {
	thread = runtimes
	for _, w := range words {
		if len(w) > 1 {
			thread = w
		}
	}
	i := slices.IndexFunc(x.threads, func(g grammar) bool { return g.thread == thread })
	if why = x.recursion(words); i < 0 || !x.threads[i].stack.MatchString(strings.Join(words, " ")+" ") {
		why = "no such stack"
	}
	return thread, why
}

// addFaults counts a run's samples of the thread that raises null references, whatever
// became of each: some samples of the thread show the methods.
func (x *shapes) addFaults(samples []*raw.Sample, names map[clr.FunctionID]string) {
	threads := map[uint64]bool{}
	for _, s := range samples {
		for i := range s.Frames {
			switch method, _ := strings.CutPrefix(names[s.Frames[i].Function], x.class); method {
			case "Touch", "Peek", "NullReferences":
				threads[s.Capture.Thread.TID] = true
			}
		}
	}
	for _, s := range samples {
		switch {
		case !threads[s.Capture.Thread.TID]:
		case inWine(s):
			x.faults.outside++
		default:
			x.faults.all++
			if s.Result.Complete() {
				x.faults.whole++
			}
		}
	}
}

// word is a frame as the grammar calls it.
func (x *shapes) word(t *testing.T, s *raw.Sample, i int, names map[clr.FunctionID]string) string {
	t.Helper()
	f := &s.Frames[i]
	switch {
	case f.Kind == unwind.KindStub:
		return "s"
	case f.Function != 0:
		if method, ok := strings.CutPrefix(names[f.Function], x.class); ok {
			return method
		}
		return "c"
	case f.Module < 0 || int(f.Module) >= len(s.Images):
		return "?"
	}
	im := &s.Images[f.Module]
	name := im.Path[strings.LastIndexByte(im.Path, '\\')+1:]
	if name == "kernelbase.dll" && x.letters[name] == "X" && raises(x.o.open(t, im), uint32(unwind.Address{IP: f.IP, Exact: f.Exact}.Lookup()-im.Bias)) {
		return "X"
	}
	if letter := x.letters[name]; letter != "" && letter != "X" {
		return letter
	}
	return "n"
}

// met fails the test where a thread has no complete stack.
func (x *shapes) met(t *testing.T) {
	t.Helper()
	t.Logf("complete stacks as their threads call, by thread: %v; %d recursions under an exception, each frame there", x.stacks, x.thrown)
	for _, g := range x.threads {
		if x.stacks[g.thread] == 0 && g.thread != runtimes {
			t.Errorf("no complete stack of %s", g.thread)
		}
	}
	f := x.faults
	t.Logf("the thread that raises null references: %d of %d stacks complete, %d more in Wine's system calls", f.whole, f.all, f.outside)
}

// recordAll records the program at least twice, until there are enough samples, and judges
// them. In every second run RtlVirtualUnwind walks too.
func (x *shapes) recordAll(t *testing.T, want int) {
	t.Helper()
	for n := 0; n < leastRuns || x.m.total < want && n < maxWindowsRuns; n++ {
		x.run(t, n)
	}
	x.m.print(t, x.name)
	x.m.verdict(t, want)
	x.o.print(t)
	x.o.verdict(t, want/4)
	x.met(t)
}

func (x *shapes) run(t *testing.T, n int) {
	t.Helper()
	var env []string
	flags, file := []string{"--json"}, filepath.Join(tempdir.New(t), "oracle")
	second := n%leastRuns == 1
	if second {
		flags = append(flags, "--profiler", need(t, "out", "windows", "seedwalk_profiler_oracle.dll"))
		env = append(env, "SEEDWALK_ORACLE="+file)
	}
	samples, rd, res := x.record(t, env, flags)
	x.ran(t, res)
	x.all(t, samples, rd.Names())
	f := figuresOf(t, res)
	x.m.count(&f)
	var b strings.Builder
	fmt.Fprintf(&b, "run %d: %d samples, %d suspensions\n%-16s %v", n+1, len(samples), f.Suspended.Count, "suspended", f.Suspended)
	for _, p := range f.Parts {
		fmt.Fprintf(&b, "\n%-16s %v", p.Name, p.quantiles)
	}
	if t.Log(b.String()); second {
		tries := readOracle(t, file)
		if x.hijack != nil {
			x.hijack(t, samples, tries)
		}
		x.o.all(t, samples, tries)
	}
}

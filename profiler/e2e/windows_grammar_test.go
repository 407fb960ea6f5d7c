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

// The possible stacks of a program's threads. From its source we know how many frames of each method and
// function there are. So a stack that lacks a frame or has one twice is found, whatever the CLR and
// RtlVirtualUnwind report.

// windowsProgram is such a program, and how it is recorded.
type windowsProgram struct {
	name    string            // of its runtime
	says    string            // the beginning of its output
	class   string            // whose methods the grammar names
	letters map[string]string // letter of native code by the image's name; n: any other image
	threads []grammar
	record  func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result)
	command func(t *testing.T) []string // runs it without a recorder
	// hijack cuts the oracle's walks at the place where they are wrong; nil: nowhere.
	hijack func(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk)
}

// grammar describes the possible stacks of a thread, root last: a name for a method of the program, c for one
// of the class library, s for a stub, n for the system's code, X for its RaiseException, other letters for
// the images of the program.
type grammar struct {
	thread string
	stack  *regexp.Regexp
}

// runtimes are the runtime's threads, and others at times without a method of the program.
const runtimes = "the runtime"

// of is a thread's grammar, with any frames of the runtime above, and below its first method.
func of(stack string) *regexp.Regexp {
	return regexp.MustCompile(`^([rnscX] )*(get_Running )?` + stack + `[A-Z]\w+ (c ){2,3}(r )+n n $`)
}

// shapes checks the complete stacks of a program.
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

// ran fails the test unless the program ended as it does without us.
func (p *windowsProgram) ran(t *testing.T, res result) {
	t.Helper()
	if res.code != 0 || !strings.HasPrefix(res.stdout, p.says) {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
}

// all checks a run's samples.
func (x *shapes) all(t *testing.T, samples []*raw.Sample, names map[clr.FunctionID]string) {
	t.Helper()
	for _, s := range samples {
		x.m.add(t, s)
		x.add(t, s, names)
	}
	x.addFaults(samples, names)
}

// add compares a complete stack with the grammar of its thread, which the outermost method of the program
// identifies.
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

// wrong identifies the thread of a stack, and describes its fault, "" if none.
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

// addFaults counts a run's samples of the thread that raises null references, complete or not. The methods in
// a sample identify the thread.
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

// word is the grammar's word for a frame.
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

// met fails the test if a thread has no complete stack.
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

// recordAll records the program at least twice, until there are enough samples, and checks them. In every
// second run RtlVirtualUnwind walks too.
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
	if len(samples) == 0 {
		return // nor figures
	}
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

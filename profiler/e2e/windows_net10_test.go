package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// .NET 10 for Windows is published as somebody's single-file program only; our sample
// is in the place of its own assembly. The CLR is in the program itself, so that
// the launcher repairs Wine's GetThreadContext there.

const single10 = ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe"

// recordSingle records SingleFile.exe for tens of seconds.
func recordSingle(t *testing.T, tens int, env, flags []string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "raw")
	need(t, single10)
	need(t, "out", "windows", "seedwalk_profiler.dll")
	limit := time.Duration(tens)*20*time.Second + time.Minute
	env = append(env, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds())))
	argv := append([]string{"record", "--json", "--rate", "100", "--raw", file, "--output", filepath.Join(tempdir.New(t), "out.json")}, flags...)
	argv = append(argv, "--", need(t, "out", "windows", "launch.exe"), need(t, "out", "windows", "shim.dll"),
		need(t, "out", "windows", "SingleFile.exe"), fmt.Sprint(tens))
	r := run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", argv...)...)
	samples, rd := readRaw(t, file, r.stderr)
	return samples, rd, r
}

// net10Samples are judged at least; a busy machine needs more than two runs.
const net10Samples, maxNet10Runs = 3000, 12

func TestWindowsNet10(t *testing.T) {
	m, o, shapes := newMatrix(), newOpinion(), map[string]int{}
	for n := 0; n < leastRuns || m.total < net10Samples && n < maxNet10Runs; n++ {
		runNet10(t, n, m, o, shapes)
	}
	m.print(t, ".NET 10.0.9")
	m.verdict(t, net10Samples)
	o.print(t)
	o.verdict(t, net10Samples/4)
	t.Logf("stacks as their threads call, by thread: %v", shapes)
	for _, g := range grammar {
		if shapes[g.thread] == 0 {
			t.Errorf("no complete stack of %s", g.thread)
		}
	}
}

// runNet10 records once and judges. In every second run RtlVirtualUnwind walks
// too.
func runNet10(t *testing.T, n int, m *matrix, o *opinion, shapes map[string]int) {
	t.Helper()
	var env, flags []string
	file := filepath.Join(tempdir.New(t), "oracle")
	second := n%leastRuns == 1
	if second {
		flags = append(flags, "--profiler", need(t, "out", "windows", "seedwalk_profiler_oracle.dll"))
		env = append(env, "SEEDWALK_ORACLE="+file)
	}
	samples, rd, res := recordSingle(t, 1, env, flags)
	if res.code != 0 || !strings.HasPrefix(res.stdout, "singlefile: 12 threads") {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
	for _, s := range samples {
		m.add(t, s)
		shapeOf(t, m, s, rd.Names(), shapes)
	}
	f := figuresOf(t, res)
	m.count(&f)
	t.Logf("run %d: %d samples, %d suspensions: %v", n+1, len(samples), f.Suspended.Count, f.Suspended)
	if second {
		tries := readOracle(t, file)
		aboveHijack(t, samples, tries)
		o.all(t, samples, tries)
	}
}

// aboveHijack cuts the oracle's walks at the CLR's return-hijack stub, whose
// unwind data in .NET 10 is wrong by a word: from there on it walks elsewhere.
func aboveHijack(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk) {
	t.Helper()
	f, err := pe.Open(need(t, "out", "windows", "SingleFile.exe"))
	if err != nil {
		t.Fatal(err)
	}
	var base uint64
	for i := range samples[0].Images {
		if im := &samples[0].Images[i]; strings.HasSuffix(im.Path, `\SingleFile.exe`) {
			base = im.Start
		}
	}
	isStub := func(ip uint64) bool {
		fn, ok := f.AMD64().Lookup(uint32(ip - base))
		return ok && ip-base < 1<<32 && bytes.HasPrefix(f.Tail(fn.Begin, 5), []byte{0x48, 0x8b, 0xd4, 0x50, 0x52}) // mov rdx, rsp; push rax; push rdx
	}
	for _, try := range tries {
		for i := range try {
			at := slices.IndexFunc(try[i].Frames, func(r [10]uint64) bool { return isStub(r[0]) })
			if at >= 0 {
				try[i].Frames = try[i].Frames[:at+1]
			}
		}
	}
}

// grammar says which stacks a thread of SingleFile.cs can have, root last: a
// letter for each frame that is not its own, c for a method of the library, s
// for a stub, d for demo.dll, r for the program's native code, which is the CLR,
// n for the system's. Below a handler stands the dispatch of its exception, which
// the CLR does not report, and what that has unwound.
var grammar = []struct {
	thread string
	stack  *regexp.Regexp
}{
	{"Recursion", of(`(Fibonacci ){0,24}`)},
	{"Callbacks", of(`(Compare (s )?(d )+s |(d )*(s )?)`)}, // without s where the CLR has taken Compare's return address
	{"NativeLoop", of(`(d )*(s )?`)},
	{"NativeSleeper", of(`(s )?`)},
	{"Sleeper", of(`(c )*`)},
	{"Contend", of(`(HoldTheLock |Contend )?`)}, // its finally is a function of its own
	{"Allocate", of(``)},
	{"Exceptions", of(`((Descend|Exceptions [crns]) ((Descend|[crns]) )*)?`)},
	{"Handlers", of(`((Pause )?Handlers (r )+(c )*(r )+Raise |Raise (r )+(c )*(r )*Raise |Raise )?`)},
	{"NullReferences", of(`(((Fibonacci ){0,8}Wanted )?([crns] )*(NullReferences ([crns] )*)*)?`)},
	{"Jit", of(``)},
	{"Main", regexp.MustCompile(`^([rnsc] )*(\.cctor (r )+|(Fibonacci ){0,20})Main (r )+n n $`)},
	{runtimes, regexp.MustCompile(`^([rnsc] )+n n $`)},
}

// runtimes are the threads, and the times of others, without a method of ours.
const runtimes = "the runtime"

// of is a thread's grammar between whatever the runtime has put on top, and its
// own first method.
func of(stack string) *regexp.Regexp {
	return regexp.MustCompile(`^([rnsc] )*(get_Running )?` + stack + `[A-Z]\w+ (c ){2,3}(r )+n n $`)
}

// shapeOf holds a complete stack against the grammar of its thread: that of its
// outermost method of ours.
func shapeOf(t *testing.T, m *matrix, s *raw.Sample, names map[clr.FunctionID]string, shapes map[string]int) {
	t.Helper()
	if !s.Result.Complete() {
		return
	}
	var stack strings.Builder
	thread := runtimes
	for i := range s.Frames {
		word := wordOf(s, i, names)
		if len(word) > 1 {
			thread = word
		}
		stack.WriteString(word + " ")
	}
	for _, g := range grammar {
		if g.thread == thread {
			shapes[thread]++
			if g.stack.MatchString(stack.String()) {
				return
			}
		}
	}
	why := fmt.Sprintf("%s cannot have the stack %s", thread, stack.String())
	m.impossible++
	m.show(t, s, why)
	t.Error(why)
}

// wordOf is a frame as the grammar calls it.
func wordOf(s *raw.Sample, i int, names map[clr.FunctionID]string) string {
	f := &s.Frames[i]
	switch {
	case f.Kind == unwind.KindStub:
		return "s"
	case f.Function != 0:
		if method, ok := strings.CutPrefix(names[f.Function], "SingleFile."); ok {
			return method
		}
		return "c"
	case f.Module < 0 || int(f.Module) >= len(s.Images):
		return "?"
	}
	switch path := s.Images[f.Module].Path; path[strings.LastIndexByte(path, '\\')+1:] {
	case "demo.dll":
		return "d"
	case "SingleFile.exe":
		return "r"
	}
	return "n"
}

// TestSingleFileGrammar: what SingleFile.cs can do is taken, a frame more is not.
func TestSingleFileGrammar(t *testing.T) {
	fibonacci := func(n int) string { return strings.Repeat("Fibonacci ", n) }
	for _, c := range []struct {
		name, thread, stack string
		want                bool
	}{
		{"Main at its check", "Main", fibonacci(20) + "Main r r n n ", true},
		{"Main, a call too many", "Main", fibonacci(21) + "Main r r n n ", false},
		{"the type's initializer", "Main", "c r .cctor r r Main r r n n ", true},
		{"the deepest recursion", "Recursion", fibonacci(24) + "Recursion c c r r n n ", true},
		{"a call too many", "Recursion", fibonacci(25) + "Recursion c c r r n n ", false},
		{"no root", "Recursion", fibonacci(24) + "Recursion r r n n ", false},
		{"a filter at work", "NullReferences", fibonacci(8) + "Wanted NullReferences r c c r n n NullReferences c c r r n n ", true},
		{"the filter, compiling", "NullReferences", "n r r NullReferences r c r n n NullReferences c c r r n n ", true},
		{"a recursion without its caller", "NullReferences", fibonacci(8) + "NullReferences r n n NullReferences c c r r n n ", false},
		{"a handler", "Exceptions", "Exceptions r c c r r Descend Descend Exceptions c c r r n n ", true},
		{"a method twice", "Exceptions", "Exceptions Exceptions c c r r n n ", false},
	} {
		for _, g := range grammar {
			if g.thread == c.thread && g.stack.MatchString(c.stack) != c.want {
				t.Errorf("%s: taken %v, want %v: %s", c.name, !c.want, c.want, c.stack)
			}
		}
	}
}

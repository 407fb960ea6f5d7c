package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/internal/raw"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// .NET 10 for Windows is had as somebody's single-file program only; our sample
// is in the place of its own assembly. The CLR is in the program itself, so that
// the launcher repairs Wine's GetThreadContext there.

const single10 = ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe"

// recordSingle records SingleFile.exe for tens of seconds.
func recordSingle(t *testing.T, tens int) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "raw")
	need(t, single10)
	need(t, "out", "windows", "seedwalk_profiler.dll")
	limit := time.Duration(tens)*20*time.Second + time.Minute
	env := []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds()))}
	r := run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", "record", "--rate", "100", "--raw", file,
		"--output", filepath.Join(t.TempDir(), "out.json"), "--", need(t, "out", "windows", "launch.exe"),
		need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "SingleFile.exe"), fmt.Sprint(tens))...)
	samples, rd := readRaw(t, file, r.stderr)
	return samples, rd, r
}

// net10Samples are judged at least; a busy machine needs more than one run.
const net10Samples, maxNet10Runs = 3000, 6

func TestWindowsNet10(t *testing.T) {
	m, shapes := newMatrix(), map[string]int{}
	for runs := 0; m.total < net10Samples && runs < maxNet10Runs; runs++ {
		samples, rd, res := recordSingle(t, 2)
		if res.code != 0 || !strings.HasPrefix(res.stdout, "singlefile: 12 threads") {
			t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
		}
		for _, s := range samples {
			m.add(t, s)
			shapeOf(t, m, s, rd.Names(), shapes)
			if s.Result.Verdict == seed.NotNeeded && s.Capture.Result != clr.S_OK {
				m.show(t, s, "managed code on top, and the CLR refuses: "+namesOf(s, rd.Names()))
			}
		}
		t.Logf("run %d: %d samples\n%s", runs+1, len(samples), res.stderr)
	}
	m.print(t, ".NET 10.0.9")
	m.verdict(t, net10Samples)
	t.Logf("stacks as their threads call, by thread: %v", shapes)
	for _, g := range grammar {
		if shapes[g.thread] == 0 {
			t.Errorf("no complete stack of %s", g.thread)
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
	{"Recursion", of(`(Fibonacci ){0,25}`)},
	{"Callbacks", of(`(Compare s (d )+s |(d )*(s )?)`)},
	{"NativeLoop", of(`(d )*(s )?`)},
	{"NativeSleeper", of(`(s )?`)},
	{"Sleeper", of(`(c )*`)},
	{"Contend", of(`(HoldTheLock |Contend )?`)}, // its finally is a function of its own
	{"Allocate", of(``)},
	{"Exceptions", of(`(Descend ((Descend|[crns]) )*)?`)},
	{"Handlers", of(`((Pause )?Handlers (r )+(c )*(r )+Raise |Raise (r )+(c )*(r )*Raise |Raise )?`)},
	{"NullReferences", of(`((Fibonacci ){0,9}Wanted ([crns] )*(NullReferences ([crns] )*)*)?`)},
	{"Jit", of(``)},
	{"Main", regexp.MustCompile(`^([rnsc] )*Main (r )+n n $`)},
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
	m.show(t, s, why)
	t.Error(why)
}

// namesOf are the methods of a stack.
func namesOf(s *raw.Sample, names map[clr.FunctionID]string) string {
	var out []string
	for i := range s.Frames {
		if f := s.Frames[i].Function; f != 0 {
			out = append(out, names[f])
		}
	}
	return strings.Join(out, " < ")
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

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// mixOn is Mix.cs on a .NET Core 2 for Windows.
func mixOn(runtime string) *windowsProgram {
	return &windowsProgram{
		name: ".NET Core " + runtime[strings.LastIndexByte(runtime, '/')+1:], says: "mix: 13 threads",
		class: "Mix.", threads: mixGrammar,
		letters: map[string]string{"mix.dll": "d", "coreclr.dll": "r", "kernelbase.dll": "X"},
		record: func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result) {
			return recordWindows(t, 4*time.Minute, env, append(flags, "--rate", "50"), runtime,
				"Mix.exe", fmt.Sprint(windowsRun))
		},
		command: func(t *testing.T) []string {
			return []string{"swhost.exe", need(t, runtime), need(t, "out", "windows", "Mix.exe"),
				samplerLength(fmt.Sprint(windowsRun))}
		},
	}
}

var mixGrammar = []grammar{
	{"Spin", of(`(Collatz ){0,2}`)},
	{"NativeSpin", of(`(d )?(s )?`)},
	{"NativeSleep", of(`(d )?(s )?`)},
	{"Stackalloc", of(`((d )?(s )?Grow )?`)},
	{"Nested", of(nested())},
	{"Allocate", of(``)},
	{"Jit", of(``)},
	{"Exceptions", of(`((Descend ([crnsX] )*)*(Exceptions ([crnsX] )+(Descend ([crnsX] )*){9})?)?`)},
	{"ThrowingRecursion", of(`((Fall|Fall2|FallToFinally|ThrowingRecursion) ([crnsX] )*)*`)},
	{"Contend", of(`(HoldTheLock )?`)},
	{"NullReferences", of(`(Peek |(Touch ){0,6}|NullReferences ([crnsX] )+(Peek |(Touch ){6}))`)},
	{"Sleeper", of(``)},
	{"Main", regexp.MustCompile(`^([rnscX] )*(\.cctor (r )+)?Main (r )+(n ){5}$`)},
	{runtimes, regexp.MustCompile(`^([rnscX] )+n n $`)},
}

// nested is the stack of Down(8): each level calls one frame of mix_down less, and its last calls the next
// level through a stub. The top level may be at any point.
func nested() string {
	var levels []string
	for top := range 9 {
		s := `([rnscd] )*(Collatz ){0,4}Down `
		for depth := top + 1; depth <= 8; depth++ {
			s += fmt.Sprintf(`s (r )+(d ){%d}(s )?Down `, depth+1)
		}
		levels = append(levels, s)
	}
	return "(" + strings.Join(levels, "|") + ")?"
}

// recursion describes faults in the frames of Fall and Touch that an exception was thrown over: it is thrown
// only at the bottom, 20 or 5 calls down.
func (x *shapes) recursion(words []string) string {
	thrown := false
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case w == "X":
			thrown = true
		case (w == "Fall" || w == "Touch") && thrown:
			n := 0
			for ; words[i] == w; i++ { // a root is below
				n++
			}
			want := map[string]int{"ThrowingRecursion": 21, "FallToFinally": 6, "Fall2": n,
				"NullReferences": 6}[words[i]]
			if n != want {
				return fmt.Sprintf("%d frames of %s above %s, want %d", n, w, words[i], want)
			}
			x.thrown++
			thrown = false
		case len(w) > 1:
			thrown = false
		}
	}
	return ""
}

// raises reports whether rva is in RaiseException.
func raises(f *pe.File, rva uint32) bool {
	fn, why := f.AMD64().Find(rva)
	exports, _ := f.Exports()
	for i := range exports {
		if exports[i].Name == "RaiseException" {
			return why == peamd64.OK && exports[i].RVA == fn.Begin
		}
	}
	return false
}

// mixMet requires stacks of every thread, of exceptions, and of the thread with null references.
func (x *shapes) mixMet(t *testing.T) {
	t.Helper()
	if f := x.faults; x.thrown == 0 || f.all == 0 || f.whole*100 < f.all*95 {
		t.Errorf("%d recursions under an exception; %d of %d stacks of the thread that raises null references are complete, want 95 %%", x.thrown, f.whole, f.all)
	}
}

// TestMixGrammar: a stack that lacks one of its frames is recognised.
func TestMixGrammar(t *testing.T) {
	nested := "Collatz Collatz Down "
	for depth := 1; depth <= 8; depth++ {
		nested += "s r " + strings.Repeat("d ", depth+1) + "s Down "
	}
	nested += "Nested c c r r n n "
	thrown := "n X r r " + strings.Repeat("Fall ", 21) + "ThrowingRecursion c c r r n n "
	whole := func(stack string) bool {
		_, why := newShapes(mixOn(core222)).wrong(strings.Fields(stack))
		return why == ""
	}
	touched := "n X r r r " + strings.Repeat("Touch ", 6) + "NullReferences c c r r n n "
	caught := "NullReferences r r n X r r " + strings.Repeat("Touch ", 6) + "NullReferences c c r r n n "
	peeked := "n X r r Peek NullReferences c c r r n n "
	for _, stack := range []string{nested, thrown, touched, caught, peeked} {
		expect.True(t, whole(stack), "not taken: %s", stack)
		words := strings.Fields(stack)
		for i, w := range words {
			if w != "d" && w != "Down" && w != "Fall" && w != "Touch" {
				continue
			}
			without := strings.Join(slices.Delete(slices.Clone(words), i, i+1), " ") + " "
			expect.True(t, !whole(without), "not missed: %s, word %d", w, i)
		}
	}
}

var churnTime = flag.Duration("churn", 8*time.Second, "length of the churn of threads on Windows runtimes")

// leastChurn is how many threads a second must come and go. mostChurns is the number of runs in which a slow
// machine may take the samples.
const leastChurn, mostChurns = 300, 3

// invalidThread is CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD, with which the CLR ends the process when it
// walks a thread that is gone.
const invalidThread = "8013135e"

// Threads are created and end while they are sampled; ThreadDestroyed waits for the walk of its thread.
func TestWindowsChurn(t *testing.T) {
	samples, want := 0, int(5*churnTime.Seconds())
	for range mostChurns {
		perSecond, more := churned(t, *churnTime, tortured{})
		if perSecond < leastChurn {
			slow(t, perSecond)
		}
		if samples += more; samples >= want {
			return
		}
	}
	t.Errorf("%d samples, want %d", samples, want)
}

// The same with a sampler that is delayed between its claim of a thread and the suspension, until that thread
// is in ThreadDestroyed.
func TestWindowsChurnLate(t *testing.T) {
	_, samples := churned(t, 5*time.Second, torture(t, "late"))
	expect.True(t, samples != 0, "no samples")
}

// churned runs the churn under a profiler: it must end as without one.
func churned(t *testing.T, length time.Duration, p tortured) (perSecond float64, samples int) {
	t.Helper()
	all, _, res := recordWindows(t, length+time.Minute, p.env, append(p.flags, "--rate", "1000"), core222,
		"Churn.exe", fmt.Sprint(length.Seconds()))
	perSecond = churn(t, res, length)
	t.Logf("%d samples, %.0f threads made a second\n%s", len(all), perSecond, res.stderr)
	return perSecond, len(all)
}

// churn reads the number of threads per second.
func churn(t *testing.T, res result, length time.Duration) float64 {
	t.Helper()
	var made int
	if _, err := fmt.Sscanf(res.stdout, "churn: %d threads", &made); err != nil || res.code != 0 {
		t.Fatalf("the program ended with %d and said %q\n%s", res.code, res.stdout, res.stderr)
	}
	return float64(made) / length.Seconds()
}

// slow handles a churn that was too slow: the machine is the cause only if it is also too slow without a
// profiler.
func slow(t *testing.T, perSecond float64) {
	t.Helper()
	const length = 5 * time.Second
	res := run(t, time.Minute, []string{"SWHOST_LIMIT=40"},
		wine(t, "swhost.exe", need(t, core222), need(t, "out", "windows", "Churn.exe"),
			fmt.Sprint(length.Seconds()))...)
	plain := churn(t, res, length)
	expect.Figures(t, plain <= 2*leastChurn && perSecond >= plain/4,
		"TOO SLOW A MACHINE: %.0f threads a second, without a profiler %.0f; want %d", perSecond, plain,
		leastChurn)
}

// unguardedTries limits the attempts to meet the rare moment.
const unguardedTries = 8

// With a profiler that ignores ThreadDestroyed, the CLR ends the process or it hangs. This proves that the
// churn tests can fail. A thread must be walked at the very moment of its end, which depends on chance and
// load, so there are several attempts.
func TestWindowsChurnUnguarded(t *testing.T) {
	p := torture(t, "unguarded")
	for try := 1; try <= unguardedTries; try++ {
		res := runWindows(t, 15*time.Second, append(p.env, "WINEDEBUG=err+eventlog"),
			append(p.flags, "--rate", "1000"), core222, "Churn.exe", "10")
		if unguardedEnd(t, res) {
			t.Logf("it happened in try %d of at most %d", try, unguardedTries)
			return
		}
	}
	t.Errorf("in %d tries without the guard nothing happened", unguardedTries)
}

// unguardedEnd reports whether the missing guard ended a run.
func unguardedEnd(t *testing.T, res result) bool {
	t.Helper()
	t.Logf("exit code %d after %v: %s", res.code, res.took.Round(100*time.Millisecond),
		lineWith(res.stderr, invalidThread))
	switch {
	case res.code == 124:
		t.Log("it hung")
		return true
	case res.code == 0:
		return false
	}
	return native || strings.Contains(res.stderr, invalidThread) // Windows has its own event log
}

// .NET 10 for Windows is only available to us inside a published single-file program; our sample replaces its
// assembly. The CLR is part of the program, so the launcher repairs Wine's GetThreadContext there.

const single10 = ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe"

// recordSingle records SingleFile.exe for tens of seconds.
func recordSingle(t *testing.T, tens int, env, flags []string) ([]*raw.Sample, *raw.Reader, result) {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "raw")
	need(t, single10)
	need(t, "out", "windows", "seedwalk_profiler.dll")
	limit := time.Duration(tens)*20*time.Second + time.Minute
	env = append(env, fmt.Sprintf("SWHOST_LIMIT=%d", int(limit.Seconds())))
	argv := append([]string{"record", "--json", "--rate", "100", "--raw", file, "--output",
		filepath.Join(tempdir.New(t), "out.json")}, flags...)
	argv = append(argv, "--", need(t, "out", "windows", "launch.exe"), need(t, "out", "windows", "shim.dll"),
		need(t, "out", "windows", "SingleFile.exe"), fmt.Sprint(tens))
	r := run(t, limit+time.Minute, env, wine(t, "seedwalk.exe", argv...)...)
	samples, rd := readRawOf(t, file, r)
	return samples, rd, r
}

func TestWindowsNet10(t *testing.T) {
	newShapes(singleFile).recordAll(t, *windowsJudged/2)
}

// singleFile is SingleFile.cs on .NET 10.
var singleFile = &windowsProgram{
	name: ".NET 10.0.9", says: "singlefile: 12 threads", class: "SingleFile.", threads: singleGrammar,
	letters: map[string]string{"demo.dll": "d", "SingleFile.exe": "r"},
	record: func(t *testing.T, env, flags []string) ([]*raw.Sample, *raw.Reader, result) {
		return recordSingle(t, 1, env, flags)
	},
	command: func(t *testing.T) []string {
		return []string{"launch.exe", need(t, "out", "windows", "shim.dll"),
			need(t, "out", "windows", "SingleFile.exe"), samplerLength("1")}
	},
	hijack: aboveHijack,
}

// aboveHijack cuts the oracle's walks at the CLR's return-hijack stub. In .NET 10 the stub's unwind data is
// wrong by one word, so frames below it are wrong.
func aboveHijack(t *testing.T, samples []*raw.Sample, tries [][]oracleWalk) {
	t.Helper()
	f := must.Get(pe.Open(need(t, "out", "windows", "SingleFile.exe")))(t)
	var base uint64
	for i := range samples[0].Images {
		if im := &samples[0].Images[i]; strings.HasSuffix(im.Path, `\SingleFile.exe`) {
			base = im.Start
		}
	}
	isStub := func(ip uint64) bool {
		fn, ok := f.AMD64().Lookup(uint32(ip - base))
		// mov rdx, rsp; push rax; push rdx
		return ok && ip-base < 1<<32 &&
			bytes.HasPrefix(f.Tail(fn.Begin, 5), []byte{0x48, 0x8b, 0xd4, 0x50, 0x52})
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

// singleGrammar is of SingleFile.cs. Below a handler are the dispatch of its exception, which the CLR does
// not report, and the frames that the exception has unwound.
var singleGrammar = []grammar{
	{"Recursion", of(`(Fibonacci ){0,24}`)},
	// without s if the CLR has replaced Compare's return address
	{"Callbacks", of(`(Compare (s )?(d )+s |(d )*(s )?)`)},
	{"NativeLoop", of(`(d )*(s )?`)},
	{"NativeSleeper", of(`(s )?`)},
	{"Sleeper", of(`(c )*`)},
	{"Contend", of(`(HoldTheLock |Contend )?`)}, // its finally is a separate function
	{"Allocate", of(``)},
	{"Exceptions", of(`((Descend|Exceptions [crns]) ((Descend|[crns]) )*)?`)},
	{"Handlers", of(`((Pause )?Handlers (r )+(c )*(r )+Raise |Raise (r )+(c )*(r )*Raise |Raise )?`)},
	{"NullReferences", of(`(((Fibonacci ){0,8}Wanted )?([crns] )*(NullReferences ([crns] )*)*)?`)},
	{"Jit", of(``)},
	{"Main", regexp.MustCompile(`^([rnsc] )*(\.cctor (r )+|(Fibonacci ){0,20})Main (r )+n n $`)},
	{runtimes, regexp.MustCompile(`^([rnsc] )+n n $`)},
}

// TestSingleFileGrammar: possible stacks of SingleFile.cs are accepted; one more frame is not.
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
		{"a filter at work", "NullReferences",
			fibonacci(8) + "Wanted NullReferences r c c r n n NullReferences c c r r n n ", true},
		{"the filter, compiling", "NullReferences",
			"n r r NullReferences r c r n n NullReferences c c r r n n ", true},
		{"a recursion without its caller", "NullReferences",
			fibonacci(8) + "NullReferences r n n NullReferences c c r r n n ", false},
		{"a handler", "Exceptions", "Exceptions r c c r r Descend Descend Exceptions c c r r n n ", true},
		{"a method twice", "Exceptions", "Exceptions Exceptions c c r r n n ", false},
	} {
		for _, g := range singleGrammar {
			if g.thread == c.thread && g.stack.MatchString(c.stack) != c.want {
				t.Errorf("%s: taken %v, want %v: %s", c.name, !c.want, c.want, c.stack)
			}
		}
	}
}

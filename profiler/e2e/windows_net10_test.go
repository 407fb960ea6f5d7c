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

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

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
	argv := append([]string{"record", "--json", "--rate", "100", "--raw", file, "--output", filepath.Join(tempdir.New(t), "out.json")}, flags...)
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
		return []string{"launch.exe", need(t, "out", "windows", "shim.dll"), need(t, "out", "windows", "SingleFile.exe"), samplerLength("1")}
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
		return ok && ip-base < 1<<32 && bytes.HasPrefix(f.Tail(fn.Begin, 5), []byte{0x48, 0x8b, 0xd4, 0x50, 0x52})
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
		{"a filter at work", "NullReferences", fibonacci(8) + "Wanted NullReferences r c c r n n NullReferences c c r r n n ", true},
		{"the filter, compiling", "NullReferences", "n r r NullReferences r c r n n NullReferences c c r r n n ", true},
		{"a recursion without its caller", "NullReferences", fibonacci(8) + "NullReferences r n n NullReferences c c r r n n ", false},
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

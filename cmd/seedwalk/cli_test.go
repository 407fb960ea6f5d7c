package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/fakeprof"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/unwind"
)

// The test binary is also the tool itself, and the command that it records.
func TestMain(m *testing.M) {
	switch os.Getenv("SEEDWALK_TEST_AS") {
	case "tool":
		os.Setenv("SEEDWALK_TEST_AS", "target")
		os.Exit(dispatch(os.Args[1:]))
	case "target":
		os.Exit(fakeTarget())
	}
	code := m.Run()
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}

// atEnd lists functions that remove what several tests share. TestMain calls them at the end.
var atEnd []func()

// withSignals is a target that reports signals, on systems that have them.
var withSignals func() int

// fakeTarget plays the part of the profiler for a moment.
func fakeTarget() int {
	c, err := fakeprof.Dial(os.Getenv(options.EnvSocket))
	if err != nil {
		return 97
	}
	w := wire.NewWriter(nil)
	w.Hello(&wire.Hello{PID: uint64(os.Getpid()), Arch: "amd64", Runtime: ".NET 9.0.5",
		StartUnixNano: 1e9, RateMilliHz: 99_000})
	w.Method(&wire.Method{ID: 1, Name: "App.Program.Main", Module: "App"})
	w.Method(&wire.Method{ID: 2, Name: "App.Program.Work", Module: "App"})
	w.Thread(&wire.Thread{TID: 5, Name: "main"})
	for i := 0; i < 7; i++ {
		w.Sample(&wire.Sample{TID: 5, TimeUnixNano: 1e9 + int64(i)*1e7, WallNanos: 1e7, Frames: []wire.Frame{
			{Kind: unwind.KindManaged, Trust: unwind.TrustCLR, Method: 2},
			{Kind: unwind.KindManaged, Trust: unwind.TrustCLR, Method: 1}}})
	}
	if os.Getenv("SEEDWALK_TEST_SIGNALS") != "" {
		c.Write(w.Bytes())
		return withSignals()
	}
	w.Bye("exit")
	c.Write(w.Bytes())
	os.Stdout.WriteString("the command's own output\n")
	return 42
}

// tool runs the tool in a fresh directory.
func tool(t *testing.T, args ...string) (stdout, stderr string, code int, dir string) {
	t.Helper()
	exe, err := os.Executable()
	must.Do(t, err)
	dir = tempdir.New(t)
	for try := 0; ; try++ {
		cmd := exec.Command(exe, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SEEDWALK_TEST_AS=tool", "SEEDWALK_PROFILER="+exe)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		err = cmd.Run()
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) {
			return out.String(), errOut.String(), cmd.ProcessState.ExitCode(), dir
		}
		must.True(t, try != 2 && errors.Is(err, wineNotNow), "%v", err)
		t.Log("Wine did not start a process: once more")
	}
}

// wineNotNow is ERROR_INTERNAL_ERROR of Windows, with which Wine sometimes fails to start a process.
const wineNotNow = syscall.Errno(1359)

// self is this program as a command for the tool to record.
func self(t *testing.T) string {
	return must.Get(os.Executable())(t)
}

func TestRecordFolded(t *testing.T) {
	out, errOut, code, _ := tool(t, "record", "--quiet", "--output", "-", "--format", "folded", "--", self(t))
	expect.True(t, code == 42 && errOut == "the command's own output\n",
		"exit code %d\nstderr %s", code, errOut)
	for line := range strings.Lines(out) { // only data
		expect.True(t, strings.Contains(line, "App.Program.Main;App.Program.Work") &&
			strings.HasSuffix(line, " 7\n"), "stdout %q", line)
	}
	expect.True(t, out != "", "no data")
}

func TestRecordEveryFormat(t *testing.T) {
	names := "a.swrec"
	for _, f := range export.Formats() {
		names += ",a" + f.Extensions[0]
	}
	_, errOut, code, dir := tool(t, "record", "--tree", "--output", names, "--", self(t))
	expect.Equal(t, code, 42, "exit code, %s", errOut)
	for _, n := range strings.Split(names, ",") {
		info, err := os.Stat(filepath.Join(dir, n))
		expect.True(t, err == nil && info.Size() != 0, "%s: %v", n, err)
		expect.True(t, strings.Contains(errOut, "wrote "+n+"\n"), "no line for %s:\n%s", n, errOut)
	}
	expect.True(t, strings.Contains(errOut, "App.Program.Work") && !strings.Contains(errOut, "\x1b"),
		"no tree, or colours where there is no terminal:\n%s", errOut)
}

func TestRecordDefaultsAndJSON(t *testing.T) {
	_, errOut, code, dir := tool(t, "record", "--json", "--", self(t))
	var s jsonSummary
	err := json.Unmarshal([]byte(errOut), &s)
	must.True(t, err == nil, "%v in %q", err, errOut)
	expect.True(t, code == 42 && s.ExitCode == 42 && s.Samples == 7 && s.Complete == 7 && s.Threads == 1 &&
		len(s.Outputs) == 3 && len(s.Connected) == 1, "%d %+v", code, s)
	for _, n := range []string{"seedwalk.html", "seedwalk.pb.gz", "seedwalk.swrec"} {
		_, err := os.Stat(filepath.Join(dir, n))
		expect.Equal(t, err, nil)
	}
}

// wrongUse is a command that is refused: the exit code, and a part of the one line that says why.
type wrongUse struct {
	name string
	args []string
	code int
	want string
}

// refused runs commands. Each must say what is wrong in one line, print nothing else, and leave no file.
func refused(t *testing.T, cases []wrongUse) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, errOut, code, dir := tool(t, c.args...)
			expect.True(t, code == c.code && strings.Contains(errOut, c.want) && out == "",
				"exit code %d, want %d\nstdout %q\nstderr %q, want %q", code, c.code, out, errOut, c.want)
			if c.args != nil && strings.Count(errOut, "\n") != 1 {
				t.Errorf("not one line: %q", errOut)
			}
			left, _ := os.ReadDir(dir)
			expect.True(t, len(left) == 0, "left behind: %v", left)
		})
	}
}

func TestWrongUse(t *testing.T) {
	refused(t, []wrongUse{
		{"nothing", nil, 2, "Commands:"},
		{"no such command", []string{"xylophone"}, 2, "the commands are record, "},
		{"no command to record", []string{"record", "--rate", "5"}, 2, "put it after --"},
		{"no such flag", []string{"record", "--speed", "5", "--", "x"}, 2, "there is no flag --speed"},
		{"rate of words", []string{"record", "--rate", "abc", "--", "x"}, 2,
			"seedwalk record: --rate abc: not a number; see"},
		{"pid of words", []string{"record", "--pid", "abc"}, 2,
			"--pid abc: not a process ID; see"},
		{"waits of no process", []string{"waits", "--pid", "4194305"}, 3, "there is no such process"},
		{"pid 0", []string{"waits", "--pid", "0"}, 2, "--pid 0: not a process ID; see"},
		{"async without a probe", []string{"record", "--mode", "snapshot", "--async", "--", "x"}, 2,
			"--async and --clock need --mode probe"},
		{"pid too large", []string{"record", "--pid", "99999999999999999999"}, 2,
			"--pid 99999999999999999999: not a process ID; see"},
		{"quiet of words", []string{"record", "--quiet=abc", "--", "x"}, 2,
			"--quiet abc: not true or false; see"},
		{"flag without a value", []string{"record", "--rate"}, 2, "--rate needs a value; see"},
		{"no such event", []string{"record", "--events", "foo", "--", "x"}, 2,
			"and exception, separated by commas; see seedwalk record --help"},
		{"no such clock", []string{"record", "--clock", "foo", "--", "x"}, 2,
			`there is no clock "foo"; choose one of auto, perf, random, timer; see`},
		{"no such mode", []string{"record", "--mode", "foo", "--", "x"}, 2,
			"choose probe or snapshot; see seedwalk record --help"},
		{"wait below 0", []string{"record", "--wait-min", "-1s", "--", "x"}, 2, "--wait-min"},
		{"rate of zero", []string{"record", "--rate", "0", "--", "x"}, 2, "--rate"},
		{"rate beyond", []string{"record", "--rate", "99999", "--", "x"}, 2, "choose 0.1 to 10000"},
		{"rate not a number", []string{"record", "--rate", "NaN", "--", "x"}, 2, "out of range"},
		{"stack beyond", []string{"record", "--stack-bytes", "999999999", "--", "x"}, 2, "out of range"},
		{"duration without sense", []string{"record", "--duration", "soon", "--", "x"}, 2,
			"not a time such as 3, 30s, or 2m"},
		{"duration with two points",
			[]string{"record", "--duration", "1.2.3h", "--", "x"}, 2, "not a time such as"},
		{"duration without end", []string{"record", "--duration", "99999999h", "--", "x"}, 2,
			"too long: a time is at most 2562047h"},
		{"of waits too", []string{"waits", "--duration", "soon", "x.nettrace"}, 2,
			"not a time such as 3, 30s, or 2m"},
		{"a plain number of seconds is one",
			[]string{"waits", "--until", "3", "--since", "1", "none.nettrace"}, 3, "none.nettrace"},
		{"duration below 0", []string{"record", "--duration", "-3", "--", "x"}, 2,
			"--duration cannot be negative"},
		{"command misspelled", []string{"recrd"}, 2, "did you mean record?"},
		{"flag misspelled", []string{"record", "--ouput", "x.html", "--", "x"}, 2, "did you mean --output?"},
		{"info without a file", []string{"info"}, 2, "no file; name"},
		{"info with two", []string{"info", "a", "b"}, 2, "more than one file"},
		{"info with two questions", []string{"info", "a", "--check", "--at", "x"}, 2, "not both"},
		{"version of what", []string{"version", "x"}, 2, "version --help"},
		{"unknown ending", []string{"record", "--output", "a.xyz", "--", "x"}, 2, "--format"},
		{"unknown format", []string{"record", "--format", "svg", "--", "x"}, 2, `there is no format "svg"`},
		{"output twice", []string{"record", "--output", "a.html,a.html", "--", "x"}, 2, "named twice"},
		{"formats that do not pair",
			[]string{"record", "--output", "a,b,c", "--format", "html,pprof", "--", "x"},
			2, "2 formats for 3 outputs"},
		{"capture of nothing", []string{"capture"}, 2, "name either a command or --pid"},
		{"agent of no process", []string{"agent", "--pid", "4194305"}, 2,
			"--pid 4194305: there is no such process"},
		{"capture of two", []string{"capture", "--pid", "1", "--", "x"}, 2, "name either a command or --pid"},
		{"capture too fast", []string{"capture", "--rate", "2000", "--", "x"}, 2, "choose 0.1 to 1000"},
		{"capture of too little", []string{"capture", "--stack-bytes", "1", "--", "x"}, 2, "choose 4096 to"},
		{"no directory", []string{"record", "--output", "none/a.html", "--", "x"}, 125,
			"make the directory first: mkdir "},
		{"no such program", []string{"record", "--", "no-such-program"}, 127, "command not found"},
		{"no such profiler", []string{"record", "--profiler", "none.so", "--", "x"}, 125, "none.so"},
	})
}

// The help of record explains every clock.
func TestHelpNamesClocks(t *testing.T) {
	for _, c := range sampler.Clocks {
		expect.True(t, strings.Contains(recordHelp, "  "+string(c)+":"),
			"recordHelp does not explain --clock %s", c)
	}
}

func TestHelpGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
	}{{"help", []string{"help"}}, {"record", []string{"record", "--help"}},
		{"doctor", []string{"help", "doctor"}},
		{"replay", []string{"help", "replay"}}, {"info", []string{"info", "--help"}},
		{"stack", []string{"help", "stack"}}, {"hang", []string{"help", "hang"}},
		{"tasks", []string{"help", "tasks"}}, {"capture", []string{"capture", "--help"}},
		{"report", []string{"report", "--help"}}, {"diff", []string{"diff", "--help"}},
		{"convert", []string{"convert", "--help"}}} {
		t.Run(c.file, func(t *testing.T) {
			out, errOut, code, _ := tool(t, c.args...)
			expect.True(t, code == 0 && errOut == "", "exit code %d, stderr %q", code, errOut)
			for i, line := range strings.Split(out, "\n") {
				expect.True(t, len(line) <= 100, "line %d has %d columns", i+1, len(line))
			}
			file := filepath.Join("testdata", c.file+".txt")
			if runtime.GOOS == "windows" && (c.file == "record" || c.file == "doctor") {
				out = otherLines(t, file, out) // these two have another text there
				file = filepath.Join("testdata", c.file+"-help-windows.txt")
			}
			golden.Check(t, file, out)
		})
	}
}

// otherLines returns the lines of text that differ from those at the same place in a file.
func otherLines(t *testing.T, path, text string) (other string) {
	lines := strings.Split(string(must.Get(os.ReadFile(path))(t)), "\n")
	got := strings.Split(text, "\n")
	must.Equal(t, len(got), len(lines), "number of lines in %s", path)
	for i, line := range got {
		if line != lines[i] {
			other += line + "\n"
		}
	}
	return other
}

func TestVersion(t *testing.T) {
	out, _, code, _ := tool(t, "--version")
	expect.True(t, code == 0 && strings.HasPrefix(out, "seedwalk ") && strings.Count(out, "\n") == 1,
		"exit code %d, %q", code, out)
	out, _, code, _ = tool(t, "version", "--json")
	var v versions
	err := json.Unmarshal([]byte(out), &v)
	expect.True(t, err == nil && code == 0 && v.Stream == wire.Version && v.OS == runtime.GOOS &&
		v.Version != "", "%v, exit code %d, %q", err, code, out)
}

func TestTopUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"x"}, {"-5"}, {"1", "2"}, {"--interval", "1ms", "1"},
		{"--duration", "-1s", "--json", "1"}, {"1"}} {
		_, errOut, code, _ := tool(t, append([]string{"top"}, args...)...)
		expect.True(t, code == cli.ExitUsage && strings.Contains(errOut, "seedwalk top --help"),
			"%q: exit code %d, %s", args, code, errOut)
	}
}

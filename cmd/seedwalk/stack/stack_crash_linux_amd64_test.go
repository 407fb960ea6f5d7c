package stack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/report/hang"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A dump of a program that has ended by an exception names the exception and the thread, the first one.
// createdump --triage (3) removes the text.
func TestCrashOfDump(t *testing.T) {
	for kind, message := range map[int]string{1: "the end", 2: "the end", 3: "", 4: "the end"} {
		needs.File(t, ".cache", "dotnet-9.0.5", "package", "dist", "createdump")
		file := filepath.Join(tempdir.New(t), "core")
		cmd := exec.Command(needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
			needs.File(t, "out", "samples", "Ending.exe"), "unhandled")
		cmd.Env = append(os.Environ(), "DOTNET_DbgEnableMiniDump=1", "DOTNET_DbgMiniDumpName="+file,
			fmt.Sprintf("DOTNET_DbgMiniDumpType=%d", kind))
		cmd.Run() // it aborts
		v := must.Get((&stackFlags{core: file}).ofCore())(t)
		want := paused.Exception{Type: "System.InvalidOperationException", Message: message}
		c := v.Crash
		must.True(t, c != nil && c.TID == v.Threads[0].TID && c.Signal == "SIGABRT" && c.Unhandled &&
			len(c.Exceptions) == 1 && c.Exceptions[0] == want, "kind %d: %+v", kind, c)
		var text strings.Builder
		must.Do(t, v.write(&text, false))
		expect.True(t, strings.Contains(text.String(), "SIGABRT: unhandled System.InvalidOperationException"),
			"kind %d: %s", kind, text.String())
		p := processOf(v, &tasks.Result{})
		p.Once = true
		evidence := strings.Join(hang.Judge(p)[0].Evidence, "\n")
		expect.True(t, strings.Contains(evidence, "received SIGABRT, in Ending.Inner"),
			"kind %d: %s", kind, evidence)
	}
}

// A core of a program whose stack overflowed says so, and its first stack is complete: it has as many frames
// of the recursion as the runtime counted, and then Main. The runtime handles the overflow on a stack of its
// own.
func TestCrashOfOverflow(t *testing.T) {
	program := func(name string) string { return needs.File(t, "out", "samples", name) }
	host := []string{needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t), program("Hang.exe"),
		"overflow"}
	for _, c := range []struct {
		name string
		kind int // of createdump, 0 for the kernel
		args []string
	}{
		{"kernel", 0, host}, {"heap", 2, host}, {"full", 4, host},
		{"single file", 0, []string{program("Hang10"), "overflow"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, want := overflow(t, c.kind, c.args)
			v := must.Get((&stackFlags{core: core}).ofCore())(t)
			first := v.Threads[0]
			must.True(t, v.Crash != nil && v.Crash.Overflow && v.Crash.TID == first.TID, "%+v", v.Crash)
			var names []string
			for _, f := range first.Frames {
				names = append(names, f.Name)
			}
			start := slices.Index(names, "Hang.Recurse")
			must.True(t, first.Complete && start > 0 && len(names) > start+want, "%d frames", len(names))
			other := func(s string) bool { return s != "Hang.Recurse" }
			rest := names[start+want:]
			expect.True(t, !slices.ContainsFunc(names[start:start+want], other) && other(rest[0]) &&
				slices.Contains(rest, "Hang.Main"), "%d frames of the recursion, then %v", want, rest)
			var text strings.Builder
			must.Do(t, v.write(&text, false))
			line := fmt.Sprintf("\n  ... the line above repeats %d more times\n", want-1)
			expect.True(t, strings.Contains(text.String(), line) &&
				strings.Contains(text.String(), "received SIGABRT: stack overflow\n"),
				"%.2000s", text.String())
		})
	}
}

// overflow runs a program whose stack overflows. It returns the core, and how many frames of the recursion
// the runtime counted.
func overflow(t *testing.T, kind int, args []string) (core string, frames int) {
	t.Helper()
	limits := "ulimit -s 1024; ulimit -c 0" // createdump is slow on deep stacks
	if kind == 0 {
		limits = "ulimit -s 1024; ulimit -c unlimited"
		pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
		if err != nil || strings.ContainsAny(string(pattern), "|/%") {
			t.Skipf("SKIPPED-CHECK: the kernel writes cores elsewhere: kernel.core_pattern is %q", pattern)
		}
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", limits + `; exec "$@"`, "sh"}, args...)...)
	cmd.Dir = tempdir.New(t)
	if kind != 0 {
		cmd.Env = append(os.Environ(), "DOTNET_DbgEnableMiniDump=1",
			"DOTNET_DbgMiniDumpName="+cmd.Dir+"/core", fmt.Sprintf("DOTNET_DbgMiniDumpType=%d", kind))
	}
	out, _ := cmd.CombinedOutput() // it aborts
	_, count, _ := strings.Cut(string(out), "Repeated ")
	count, _, _ = strings.Cut(count, " times")
	frames, err := strconv.Atoi(count)
	must.True(t, err == nil, "%s", out)
	files := must.Get(filepath.Glob(cmd.Dir + "/core*"))(t)
	must.True(t, len(files) == 1, "cores: %v", files)
	return files[0], frames
}

// The text of a crash has the address, and each inner exception in a line of its own. Control characters are
// quoted.
func TestWriteCrash(t *testing.T) {
	for _, c := range []struct {
		crash *crash
		want  string
	}{
		{nil, ""},
		{&crash{TID: 7, Signal: "SIGSEGV", Address: "0x10"},
			"crash: thread 7 received SIGSEGV at address 0x10\n"},
		{&crash{TID: 7, Signal: "SIGSEGV", Address: "0x10", Overflow: true},
			"crash: thread 7 received SIGSEGV at address 0x10: stack overflow\n"},
		{&crash{TID: 7, Signal: "SIGABRT", Unhandled: true,
			Exceptions: []paused.Exception{{Type: "A", Message: "x\ny", Cut: true}, {Type: "B"}}},
			"crash: thread 7 received SIGABRT: unhandled A: \"x\\ny\" (the message is longer)\n" +
				"  inner exception B\n"},
		{&crash{TID: 7, Signal: "SIGSEGV", Exceptions: []paused.Exception{{Type: "A"}}},
			"crash: thread 7 received SIGSEGV, exception in progress: A\n"},
	} {
		var text strings.Builder
		c.crash.write(&text)
		expect.True(t, text.String() == c.want, "%q", text.String())
	}
}

// If the heap of a truncated core cannot be read, the message names the damage and no other kind of core.
func TestTasksOfTruncatedCore(t *testing.T) {
	whole := createdump(t, "full")
	file := filepath.Join(tempdir.New(t), "core")
	must.Do(t, os.WriteFile(file, whole[:len(whole)/3], 0o600))
	f := tasksFlags{stackFlags: stackFlags{core: file}}
	_, err := f.read()
	must.True(t, err != nil, "it was read")
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	expect.True(t, says("bytes of memory at") && says(dump.Truncated.Remedy()) && !says("--withheap"),
		"%v", err)
}

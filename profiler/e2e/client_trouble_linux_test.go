package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// helpers are programs that the client library starts instead of the tool.
var helpers = []struct {
	name, script string
	code         int    // what the profiler receives
	problem      string // a part of its text
	seconds      string
}{
	{"missing", "", -20, "missing: No such file", "3"},
	{"old", "exit 2", -21, "is it the seedwalk", "3"},
	{"garbage", "exec cat /bin/sh >&3", -21, "is it the seedwalk", "3"},
	{"endless", "while :; do tr '\\0' '~' </dev/zero >&3; done", -21, "not answered for 10 s", "13"},
	{"newer", `printf '\1\2\2\1' >&3; exec tail -f "$0" >/dev/null`, -21, "is it the seedwalk", "3"},
	{"torn", `printf '\5\377\377\177' >&3`, -21, "is it the seedwalk", "3"},
	{"silent", `exec tail -f "$0" >/dev/null`, -21, "not answered for 10 s", "13"},
}

// Whatever the helper is, the program ends as without a profiler, and the profiler receives an error in time.
func TestClientHelpers(t *testing.T) {
	dir := tempdir.New(t)
	library := vendor(t, filepath.Join("capi", "examples", "client.c"), "libseedwalk_client.a")
	for _, h := range helpers {
		t.Run(h.name, func(t *testing.T) {
			if h.seconds != "3" {
				t.Parallel() // they wait
			}
			out, engine := filepath.Join(dir, h.name+".out"), filepath.Join(dir, h.name)
			if h.script != "" {
				must.Do(t, os.WriteFile(engine, []byte("#!/bin/sh\n"+h.script+"\n"), 0o755))
			}
			res := run(t, time.Minute, profiled(library, "SEEDWALK_ENGINE="+engine, "SAMPLER_OUT="+out),
				app(t, "Truth", h.seconds)...)
			truthDone(t, res)
			saw := readClient(t, out)
			expect.True(t, saw.failed == h.code && strings.Contains(saw.problem, h.problem) &&
				saw.samples == 0, "the profiler got %d, %q", saw.failed, saw.problem)
			noHelper(t, engine)
		})
	}
}

// A helper that is killed or stopped is replaced, and the program works as without it.
func TestClientHelperLost(t *testing.T) {
	dir := tempdir.New(t)
	out, library := filepath.Join(dir, "out"),
		vendor(t, filepath.Join("capi", "examples", "client.c"), "libseedwalk_client.a")
	p := startIn(t, clientEnv(t, library, out), app(t, "Truth", endless)...)
	pattern := "seedwalk engine --pid " + p.id + " "
	// sampled waits until the helper number n has sent samples.
	sampled := func(n int) {
		t.Helper()
		before := -1
		until(t, fmt.Sprint("samples by helper ", n), func() bool {
			var s clientSaw
			b, _ := os.ReadFile(out)
			if s.scan(string(b)); s.opened == n && before < 0 {
				before = s.samples
			}
			return s.opened == n && s.samples > before+20
		})
	}
	for i, signal := range []string{"KILL", "STOP"} {
		sampled(i + 1)
		pids := helpersLike(pattern)
		must.Equal(t, len(pids), 1, "helpers %v", pids)
		status := readFile(t, "/proc/"+pids[0]+"/status")
		expect.True(t, strings.Contains(status, "\nSeccomp:\t2\n"), "the helper has no sandbox: %s", status)
		expect.Equal(t, readFile(t, "/proc/"+pids[0]+"/environ"), "", "the tool executed itself again")
		exec.Command("kill", "-"+signal, pids[0]).Run()
	}
	sampled(3)
	p.truthDone()
	expect.Equal(t, p.errs.String(), "", "the program's errors")
	noHelper(t, pattern)
}

// filters are system calls that fail in the program. They fail in its helper too, which inherits the filter.
var filters = []struct {
	name    string
	calls   []int
	code    int    // what the profiler receives
	problem string // a part of its text
}{
	{"no perf events", []int{unix.SYS_PERF_EVENT_OPEN}, 0, ""},
	{"as without CAP_SYS_PTRACE",
		[]int{unix.SYS_PERF_EVENT_OPEN, unix.SYS_PROCESS_VM_READV, unix.SYS_PTRACE}, 0, ""},
	{"no new system calls",
		[]int{unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_CLOSE_RANGE}, 0, ""},
	{"no sandbox", []int{unix.SYS_SECCOMP}, 0, ""},
	{"no sockets", []int{unix.SYS_SOCKETPAIR}, -20, "Operation not permitted"},
	{"no memfd_create", []int{unix.SYS_MEMFD_CREATE}, 0, ""},
	{"no memory files", []int{unix.SYS_MEMFD_CREATE, unix.SYS_FALLOCATE}, -16,
		"no memory that can be shared"},
}

// Under a filter of system calls (seccomp), the profiler has complete stacks or receives an error, and the
// program works as without it.
func TestClientFilters(t *testing.T) {
	dir := tempdir.New(t)
	library := vendor(t, filepath.Join("capi", "examples", "client.c"), "libseedwalk_client.a")
	for _, f := range filters {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(dir, f.name)
			p := startIn(t, clientEnv(t, library, out),
				append(forbidding(t, f.calls...), app(t, "Truth", "6")...)...)
			select {
			case <-p.over:
			case <-time.After(5 * time.Second):
				logLate(t, out, p.id)
			}
			p.truthDone()
			expect.Equal(t, p.errs.String(), "", "the program's errors")
			saw := readClient(t, out)
			t.Log(saw.samples, saw.complete, saw.copies, saw.failed, saw.problem)
			expect.True(t, saw.failed == f.code && strings.Contains(saw.problem, f.problem),
				"the profiler got %d, %q", saw.failed, saw.problem)
			if f.code == 0 && (saw.samples < 50 || saw.complete*100 < saw.samples*99 || saw.copies == 0) {
				t.Errorf("%d samples, %d complete, %d copies", saw.samples, saw.complete, saw.copies)
			}
		})
	}
}

// logLate tells what the threads of a helper do if the helper has sent no sample.
func logLate(t *testing.T, out, pid string) {
	var s clientSaw
	if b, _ := os.ReadFile(out); s.scan(string(b)) == nil && (s.samples > 0 || s.failed != 0) {
		return
	}
	pids := helpersLike("seedwalk engine --pid " + pid + " ")
	t.Log("no samples after 5 s by the helpers ", pids)
	for _, pid := range pids {
		tasks, _ := filepath.Glob("/proc/" + pid + "/task/*")
		for _, task := range tasks {
			stat, _ := os.ReadFile(task + "/stat")
			call, _ := os.ReadFile(task + "/syscall")
			where, _ := os.ReadFile(task + "/wchan")
			t.Logf("%s: in the system call %s, waiting in %q", stat, call, where)
		}
	}
}

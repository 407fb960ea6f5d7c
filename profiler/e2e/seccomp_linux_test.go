package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A seccomp filter refuses system calls of the probe or the tool: the tool reports it or uses another way,
// and the program ends as without us.
func TestRefusedCalls(t *testing.T) {
	filter := withoutCall(t)
	if run(t, time.Minute, nil, filter, fmt.Sprint(unix.SYS_PTRACE), "true").code != 0 {
		t.Skip("SKIPPED-CHECK: there is no seccomp here")
	}
	for _, c := range []struct {
		name         string
		target, tool int    // the call that is refused there, -1: none
		command      string // record or stack, and its flags
		code         int
		says         string
	}{
		{"no timers", unix.SYS_TIMER_CREATE, -1, "record --clock timer", 0, "threads without a timer: the kernel refused it"},
		{"no perf events", -1, unix.SYS_PERF_EVENT_OPEN, "record", 0, "clock: random, by the tool"},
		{"no ring", unix.SYS_MEMFD_CREATE, -1, "record", 125, "the probe was loaded and did not connect"},
		{"no ptrace", -1, unix.SYS_PTRACE, "stack", 3, "a seccomp filter that allows ptrace"},
		{"no process_vm_readv", -1, unix.SYS_PROCESS_VM_READV, "stack", 0, "T.Run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := attached(t, append([]string{filter, fmt.Sprint(c.target)}, app(t, "Truth", "9")...)...)
			args := append([]string{filter, fmt.Sprint(c.tool), tool(t)}, strings.Fields(c.command)...)
			if c.command != "stack" {
				args = append(args, "--duration", "1s", "--output", filepath.Join(tempdir.New(t), "o.folded"), "--pid")
			}
			r := run(t, time.Minute, nil, append(args, p.id)...)
			if r.code != c.code || !strings.Contains(r.stderr+r.stdout, c.says) || c.code != 0 && strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%d, not %q:\n%s%s", r.code, c.says, r.stderr, r.stdout)
			}
			p.truthDone()
		})
	}
}

// doctor prints which clock a recording would use.
func TestDoctorClock(t *testing.T) {
	filter := withoutCall(t)
	if run(t, time.Minute, nil, filter, fmt.Sprint(unix.SYS_PTRACE), "true").code != 0 {
		t.Skip("SKIPPED-CHECK: there is no seccomp here")
	}
	if r := run(t, time.Minute, nil, tool(t), "doctor"); !strings.Contains(r.stdout, "perf events, with high-resolution timers") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	r := run(t, time.Minute, nil, filter, fmt.Sprint(unix.SYS_PERF_EVENT_OPEN), tool(t), "doctor")
	if !strings.Contains(r.stdout, "NOTE  clock") || !strings.Contains(r.stdout, "random moments of seedwalk") || !strings.Contains(r.stdout, "perf_event_open") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A starved pool, a lock convoy, and spinning threads are named in a recording, in the kept trace of waits,
// and in their time lines; each only by its own name.
func TestTrouble(t *testing.T) {
	findings := map[string]string{"starve": "thread pool starvation: ",
		"convoy": "lock convoy in Trouble.Hold: ", "spin": "spinning: "}
	lanes := map[string]string{"starve": `"thread pool queue"`, "convoy": `"locks"`, "spin": `"spinning"`}
	judge := func(how, mode, summary, page string) {
		for other, name := range findings {
			if strings.Contains(summary, "finding") && strings.Contains(summary, name) != (other == mode) {
				t.Errorf("%s of %s: %q\n%s", how, mode, name, summary)
			}
		}
		if !strings.Contains(summary, findings[mode]) || !strings.Contains(page, `"name":`+lanes[mode]) {
			t.Errorf("%s of %s: no %q, or no lane %s\n%s", how, mode, findings[mode], lanes[mode], summary)
		}
	}
	for mode := range findings {
		dir := tempdir.New(t)
		page, keep := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.nettrace")
		recorded := record(t, "--events cpu,wall,waits,locks --output "+page, app(t, "Trouble", mode)...)
		recorded.ok(t)
		judge("record", mode, recorded.stderr, readFile(t, page))
		if mode == "spin" {
			continue // a trace of waits has no samples
		}
		seedwalk(t, append([]string{"waits", "--keep", keep, "--"}, app(t, "Trouble", mode)...)...)
		reported := seedwalk(t, "report", keep)
		reported.ok(t)
		seedwalk(t, "convert", keep, "--output", page).ok(t)
		judge("the trace", mode, reported.stdout, readFile(t, page))
	}
}

// asNobody is the command line that runs a program as another user.
func asNobody(t *testing.T, argv ...string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root records the processes of others")
	}
	needs.Command(t, "setpriv")
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "TMPDIR"}
	for _, file := range argv[:3] { // the host, the runtime, the program
		if exec.Command(nobody[0], append(nobody[1:], "test", "-r", file)...).Run() != nil {
			t.Skipf("SKIPPED-CHECK: user 65534 may not read %s", file)
		}
	}
	return append(nobody, argv...)
}

// Root records a process of another user, whose files cannot be in root's own temporary folder; in the
// process's namespaces too.
func TestRootRecordsOthers(t *testing.T) {
	argv := asNobody(t, app(t, "Truth", "120")...)
	t.Run("here", func(t *testing.T) {
		p := start(t, argv...)
		until(t, "it opens its diagnostics port", func() bool {
			s, _ := filepath.Glob("/tmp/dotnet-diagnostic-" + p.id + "-*-socket")
			return len(s) > 0
		})
		recordOther(t, p.id)
	})
	t.Run("container", func(t *testing.T) {
		pid := contained(t, argv...)
		// a change of user cancels the kernel's promise to end it together with unshare
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
		recordOther(t, fmt.Sprint(pid))
	})
}

func recordOther(t *testing.T, pid string) {
	closed := filepath.Join(tempdir.New(t), "closed")
	must.Do(t, os.Mkdir(closed, 0o700))
	t.Setenv("TMPDIR", closed)
	for range 2 { // the second recording finds the probe of the first
		r := record(t, "--duration 2s --pid "+pid)
		t.Logf("%d samples, %d complete", r.Samples, r.Complete)
		expect.True(t, r.code == 0 && r.Samples != 0 && r.has("T.Run"),
			"exit code %d, or no method of the program's is named\n%s", r.code, r.stderr)
	}
	stack, doctor := seedwalk(t, "stack", pid), seedwalk(t, "doctor", "--pid", pid)
	stack.ends(t, 0, stack.stdout, "T.Run")
	doctor.ends(t, 0, doctor.stdout, "Everything works with this process.")
}

// A seccomp filter refuses system calls of the probe or the tool: the tool reports it or uses another way,
// and the program ends as without us.
func TestRefusedCalls(t *testing.T) {
	for _, c := range []struct {
		name         string
		target, tool []int  // the calls that are refused there
		command      string // record or stack, and its flags
		code         int
		says         string
	}{
		{"no timers", []int{unix.SYS_TIMER_CREATE}, nil, "record --clock timer", 0,
			"threads without a timer: the kernel refused it"},
		{"no perf events", nil, []int{unix.SYS_PERF_EVENT_OPEN}, "record", 0, "clock: random moments"},
		{"no memfd_create", []int{unix.SYS_MEMFD_CREATE}, nil, "record", 0, "clock: "},
		{"no memory files", []int{unix.SYS_MEMFD_CREATE, unix.SYS_FALLOCATE}, nil, "record", 125,
			"neither in memory nor in /dev/shm"},
		{"no ptrace", nil, []int{unix.SYS_PTRACE}, "stack", 3, "a seccomp filter that allows ptrace"},
		{"no process_vm_readv", nil, []int{unix.SYS_PROCESS_VM_READV}, "stack", 0, "T.Run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := attached(t, append(forbidding(t, c.target...), app(t, "Truth", endless)...)...)
			args := slices.Concat(forbidding(t, c.tool...), []string{tool(t)}, strings.Fields(c.command))
			if c.command != "stack" {
				args = append(args, "--duration", "1s", "--output",
					filepath.Join(tempdir.New(t), "o.folded"), "--pid")
			}
			r := run(t, time.Minute, nil, append(args, p.id)...)
			r.ends(t, c.code, r.stderr+r.stdout, c.says)
			expect.True(t, c.code == 0 || strings.Count(r.stderr, "\n") == 1, "not one line: %q", r.stderr)
			p.truthDone()
		})
	}
}

// The kernel refuses each file that the probe could share with the tool: record and doctor name the remedy.
func TestNoSharedFile(t *testing.T) {
	filter := forbidding(t, unix.SYS_MEMFD_CREATE, unix.SYS_FALLOCATE)
	const remedy = "let the seccomp filter allow memfd_create"
	file := filepath.Join(tempdir.New(t), "o.folded")
	r := run(t, time.Minute, nil, slices.Concat([]string{tool(t), "record", "--output", file, "--"}, filter,
		app(t, "Truth", "1"))...)
	expect.Contains(t, r.stderr, "loaded the probe, which did not connect", remedy)
	d := run(t, time.Minute, nil, append(filter, tool(t), "doctor")...)
	d.ends(t, 1, d.stdout, "BAD   shared file", remedy)
}

// doctor prints which clock a recording would use.
func TestDoctorClock(t *testing.T) {
	forbidden := forbidding(t, unix.SYS_PERF_EVENT_OPEN)
	expect.Contains(t, seedwalk(t, "doctor").stdout, "perf events, with high-resolution timers")
	r := run(t, time.Minute, nil, append(forbidden, tool(t), "doctor")...)
	expect.Contains(t, r.stdout, "NOTE  clock", "random moments of seedwalk", "perf_event_open")
}

// No probe can be put into a process whose diagnostics are off. Its threads are stopped one by one, and the
// stacks agree with the threads' own records. The program ends as without us.
func TestRecordOutside(t *testing.T) {
	t.Setenv("DOTNET_EnableDiagnostics", "0")
	p := attached(t, app(t, "Truth", endless)...)
	refused := seedwalk(t, "record", "--pid", p.id, "--duration", "1s", "--output",
		filepath.Join(t.TempDir(), "o.folded"))
	refused.ends(t, 125, refused.stderr, "--outside")
	r := recordRaw(t, "--outside --duration 6s --pid "+p.id)
	t.Log(r.stderr)
	must.Equal(t, r.code, 0, "exit code")
	c := newChecker(t)
	c.recorded(t, r)
	c.few(t, 0, 97)
	p.truthDone()
}

// A native program is sampled the same way.
func TestRecordOutsideNative(t *testing.T) {
	p := attached(t, "/bin/sh", "-c", "while :; do :; done")
	r := record(t, "--outside --duration 2s --pid "+p.id)
	expect.True(t, r.code == 0 && r.Samples != 0 && r.Complete == r.Samples && r.has("__libc_start_main"),
		"exit code %d\n%s", r.code, r.stderr)
}

// The library that a program runs is cut off during its recording. The program dies of it. The recording ends
// as usual, and says that names may be missing: they are read from that library at the end.
func TestLibraryIsCutOff(t *testing.T) {
	needs.Command(t, "gcc")
	dir := tempdir.New(t)
	library, program := filepath.Join(dir, "libspin.so"), filepath.Join(dir, "spin")
	source := filepath.Join(dir, "spin.c")
	must.Do(t, os.WriteFile(source, []byte("void spin(void) { for (volatile int i = 0;; i++); }"), 0o600))
	needs.Build(t, "gcc", "-shared", "-fPIC", "-o", library, source)
	must.Do(t, os.WriteFile(source, []byte("void spin(void); int main() { spin(); }"), 0o600))
	needs.Build(t, "gcc", "-o", program, source, library)
	p, out := start(t, "env", "-C", dir, program), filepath.Join(dir, "out.swrec")
	r := start(t, tool(t), "record", "--outside", "--pid", p.id, "--output", out)
	size, grown := int64(0), 0
	until(t, "the recording has samples", func() bool { // it grows once a second
		if info, err := os.Stat(out + ".partial"); err == nil && info.Size() > size {
			size, grown = info.Size(), grown+1
		}
		return grown > 4
	})
	must.Do(t, os.Truncate(library, 1))
	expect.Equal(t, p.wait(), 128+int(unix.SIGBUS), "the program's exit code")
	r.ended("were cut off")
}

// A program in another time namespace has another monotonic clock. It is recorded like any other program: its
// CPU time is in the profile, and the times of its samples are those of this machine.
func TestTimeNamespace(t *testing.T) {
	by := []string{"unshare", "--time", "--monotonic", "100000"}
	if exec.Command(by[0], append(by[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: no time namespaces here (they need root)")
	}
	p := attached(t, append(by, app(t, "Truth", endless)...)...)
	r := recordRaw(t, "--duration 4s --pid "+p.id)
	t.Log("\n" + r.stderr)
	must.Equal(t, r.code, 0, "exit code")
	c := newChecker(t)
	c.recorded(t, r)
	c.few(t, 0, 97)
	expect.True(t, !strings.Contains(r.stderr, "WARNING: only"), "samples are missing")
	p.truthDone()
}

// refusing returns the first words of a command line. They start the rest without the given capabilities, so
// that the kernel refuses it the memory of processes that have them.
func refusing(t *testing.T, capabilities string) []string {
	t.Helper()
	lacks := "-" + strings.ReplaceAll(capabilities, ",", ",-")
	cmd := []string{"setpriv", "--bounding-set=" + lacks, "--inh-caps=" + lacks, "--"}
	if os.Geteuid() != 0 || exec.Command(cmd[0], append(cmd[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: capabilities cannot be given up here (it needs root and setpriv)")
	}
	mem := fmt.Sprintf("/proc/%d/mem", os.Getpid())
	if exec.Command(cmd[0], append(cmd[1:], "head", "-c0", mem)...).Run() == nil {
		t.Skip("SKIPPED-CHECK: the kernel refuses no memory here")
	}
	return cmd
}

// The kernel refuses the tool everything that needs ptrace's permission: process_vm_readv, /proc/PID/mem,
// where threads wait, and finally the list of mappings. The probe in the target reads instead, and the stacks
// agree with the threads' own records. The same if the target may not even read itself.
func TestProbeReads(t *testing.T) {
	for _, c := range []struct {
		name, lacks, runtime string
		filtered             bool
	}{
		{"memory", "sys_ptrace", needs.Net9, false},
		{"memory and mappings", "sys_ptrace,perfmon,sys_admin", needs.Net9, true},
		{"net10", "sys_ptrace,perfmon,sys_admin", needs.Net10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			by, argv := refusing(t, c.lacks), on(t, c.runtime, "Truth", endless)
			if c.filtered {
				argv = append(forbidding(t, unix.SYS_PROCESS_VM_READV), argv...)
			}
			p := attached(t, argv...)
			d := run(t, time.Minute, nil, append(by, tool(t), "doctor", "--pid", p.id)...)
			expect.Contains(t, d.stdout, "the probe reads the program's memory")
			r := recordRawBy(t, by, "--rate 200 --duration 4s --pid "+p.id)
			t.Log("\n" + r.stderr)
			r.ends(t, 0, r.stderr, "memory read through the probe: ")
			judge := newChecker(t)
			judge.want, judge.first, judge.last, judge.whole = 300, 1, 0, 100
			judge.recorded(t, r)
			judge.verdict(t)
			checkReads(t, r.jsonProfile, judge.sum().checked)
			p.truthDone()
		})
	}
}

// checkReads checks the counters of reads, and that stacks were compared at all.
func checkReads(t *testing.T, p *jsonProfile, checked int) {
	t.Helper()
	c := p.Counters
	expect.Figures(t, p.Way == "probe" && c["reads"] != 0 && c["reads_lost"]*50 <= c["reads"] &&
		checked >= 200 && c["hidden"] != 0,
		"%d stacks compared; %d reads, %d us each, %d us of them in the handler; %d of what was held, %d given up, %d signals, %d hidden, by the %s",
		checked, c["reads"], c["read_ns"]/max(1, c["reads"])/1000, c["read_copy_ns"]/max(1, c["reads"])/1000,
		c["reads_held"], c["reads_lost"], c["read_signals"], c["hidden"], p.Way)
}

// forbidding returns the first words of a command line. They start the rest, to which the kernel refuses some
// system calls, as a container's seccomp filter does.
func forbidding(t *testing.T, calls ...int) []string {
	t.Helper()
	needs.Command(t, "gcc")
	argv := []string{built(t, "forbid", func(path string) []string {
		return []string{"gcc", "-Wall", "-Wextra", "-Werror", "-o", path,
			filepath.Join(root, "profiler", "testdata", "forbid.c")}
	})}
	for _, call := range calls {
		argv = append(argv, fmt.Sprint(call))
	}
	argv = append(argv, "--")
	if run(t, time.Minute, nil, append(argv, "true")...).code != 0 {
		t.Skip("SKIPPED-CHECK: there is no seccomp here")
	}
	return argv
}

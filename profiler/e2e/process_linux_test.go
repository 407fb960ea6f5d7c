package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// process is a program that runs during a test and is killed at its end. If the test failed, the program's
// standard error is shown.
type process struct {
	*exec.Cmd
	t         *testing.T
	pid       int
	id        string // pid in decimal
	in        io.WriteCloser
	out, errs text
	passed    int // bytes of out that until has returned
	over      chan struct{}
	err       error // of its end
}

// text is the output of a program so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// start starts a program.
func start(t *testing.T, argv ...string) *process { return startIn(t, nil, argv...) }

// startIn starts a program with additional environment. Its standard input stays open.
func startIn(t *testing.T, env []string, argv ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(argv[0], argv[1:]...), t: t, over: make(chan struct{})}
	p.Env, p.Stdout, p.Stderr, p.WaitDelay = append(os.Environ(), env...), &p.out, &p.errs, 5*time.Second
	in, err := p.StdinPipe()
	if err == nil {
		err = p.Start()
	}
	must.Do(t, err)
	p.in, p.pid, p.id = in, p.Process.Pid, fmt.Sprint(p.Process.Pid)
	go func() {
		if p.err = p.Cmd.Wait(); errors.Is(p.err, exec.ErrWaitDelay) {
			p.err = nil // a child still has its output open
		}
		close(p.over)
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		if <-p.over; t.Failed() && p.errs.String() != "" {
			t.Logf("%s:\n%s", filepath.Base(argv[0]), p.errs.String())
		}
	})
	return p
}

// until waits until the program writes a line, and returns the lines before it.
func (p *process) until(line string) (before []string) {
	p.t.Helper()
	until(p.t, fmt.Sprintf("%s says %q", filepath.Base(p.Path), line), func() bool {
		all := strings.ReplaceAll(p.out.String(), "\r", "") // a Windows program's lines
		said, _, found := strings.Cut("\n"+all[p.passed:], "\n"+line+"\n")
		if found {
			p.passed += len(said) + len(line) + 1
			before = strings.FieldsFunc(said, func(r rune) bool { return r == '\n' })
		} else if p.gone() {
			p.t.Fatalf("the program has ended with %v and said %q", p.err, all)
		}
		return found
	})
	return before
}

// say writes a line to the program.
func (p *process) say(line string) { io.WriteString(p.in, line+"\n") }

func (p *process) gone() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// wait waits for the program's end, at most three minutes, and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.over:
	case <-time.After(limitOfCommand):
		p.t.Fatalf("%s: no end after %v", filepath.Base(p.Path), limitOfCommand)
	}
	return exitCode(p.ProcessState)
}

// ended fails the test unless the program ends by itself with exit code 0, and its errors have a text.
func (p *process) ended(text string) {
	p.t.Helper()
	code, said := p.wait(), p.errs.String()
	expect.True(p.t, code == 0 && strings.Contains(said, text), "%s: exit code %d, want %q in\n%s",
		filepath.Base(p.Path), code, text, said)
}

// stop sends a signal, and fails the test unless the program ends well.
func (p *process) stop(sig os.Signal) {
	p.t.Helper()
	p.Process.Signal(sig)
	p.wait()
	expect.True(p.t, p.err == nil, "%s: %v", filepath.Base(p.Path), p.err)
}

// freeze stops the process by a signal, and waits until all its threads are stopped: a thread stops only when
// it next runs.
func (p *process) freeze() {
	p.t.Helper()
	syscall.Kill(p.pid, syscall.SIGSTOP)
	until(p.t, "the process stands", func() bool {
		tasks, _ := os.ReadDir("/proc/" + p.id + "/task")
		return len(standing(p.t, p.pid)) == len(tasks)
	})
}

// freezeWithoutSignals freezes the process at a moment when no thread has a signal to take. A debugger that
// attaches later would let the thread take it: then its stack has the frame of a signal more.
func (p *process) freezeWithoutSignals() {
	p.t.Helper()
	until(p.t, "no thread has a signal to take", func() bool {
		p.freeze()
		if !p.signaled() {
			return true
		}
		syscall.Kill(p.pid, syscall.SIGCONT)
		return false
	})
}

// signaled reports whether a signal is pending for a thread, except the one that stopped it.
func (p *process) signaled() bool {
	files, _ := filepath.Glob("/proc/" + p.id + "/task/*/status")
	for _, name := range files {
		text, _ := os.ReadFile(name)
		mask := map[string]uint64{}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":\t"); ok {
				mask[key], _ = strconv.ParseUint(value, 16, 64)
			}
		}
		if (mask["SigPnd"]|mask["ShdPnd"])&^(mask["SigBlk"]|1<<(syscall.SIGSTOP-1)) != 0 {
			return true
		}
	}
	return false
}

// endless is how many seconds the truth program runs for a test that ends it.
const endless = "600"

// truthDone ends the truth program, and fails the test unless that is as it is without us.
func (p *process) truthDone() {
	p.t.Helper()
	p.say("")
	if p.wait(); p.err != nil || p.out.String() != "TRUTH DONE\n" {
		p.t.Errorf("the program ended with %v and said %q", p.err, p.out.String())
	}
}

// attached starts a program and waits until it has all its threads.
func attached(t *testing.T, argv ...string) *process {
	t.Helper()
	p := start(t, argv...)
	// A CLR has some threads of its own before the program's first.
	const clrThreads, looks, pause, usual, longest = 8, 10, 100 * time.Millisecond,
		3 * time.Second, 15 * time.Second
	begin, last, same := time.Now(), 0, 0
	for took := time.Duration(0); took < longest; took = time.Since(begin) {
		time.Sleep(pause)
		tasks, _ := os.ReadDir("/proc/" + p.id + "/task")
		if same++; len(tasks) != last {
			last, same = len(tasks), 0
		}
		if same >= looks && (last >= clrThreads || took >= usual) {
			break
		}
	}
	return p
}

// demo starts the demo program and waits for its runtime.
func demo(t *testing.T) *process {
	t.Helper()
	p := start(t, app(t, "Demo", "120")...)
	until(t, "the runtime starts", func() bool { _, err := diagnostics.Process(p.pid); return err == nil })
	return p
}

// waiting starts a program of waits, and returns once it has printed a line, with the lines before it.
func waiting(t *testing.T, line string, argv ...string) (*process, []string) {
	t.Helper()
	// A core contains what glibc has reserved, 64 MB per thread.
	p := startIn(t, []string{"MALLOC_ARENA_MAX=1",
		"LD_LIBRARY_PATH=" + filepath.Dir(need(t, "out", "samples", "libwaits.so"))}, argv...)
	return p, p.until(line)
}

// until waits for a condition, at most a minute.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("not within a minute: " + what)
}

// coreOf writes a core of a process: by gcore, or by the runtime's createdump ("full",
// "withheap", "normal", "triage").
func coreOf(t *testing.T, pid, kind string) string {
	t.Helper()
	dir := tempdir.New(t)
	core := filepath.Join(dir, "core."+pid)
	argv := []string{filepath.Join(runtime9(t), "createdump"), "--" + kind, "-f", core, pid}
	if kind == "gcore" {
		argv = []string{"gcore", "-o", filepath.Join(dir, "core"), pid}
	}
	path := needs.Command(t, argv[0])
	tempdir.Room(t, 2000)
	must.Run(t, exec.Command(path, argv[1:]...))
	t.Cleanup(func() { os.Remove(core) }) // half a gigabyte
	return core
}

// ownTemp is the beginning of a script that gives a mount namespace its own /tmp. The checkout, its first
// argument, stays where it is, even below /tmp.
const ownTemp = `mount --bind "$1" /mnt && mount -t tmpfs none /tmp && mkdir -p "$1" && mount --move /mnt "$1" && cd "$1/profiler/e2e" && shift`

// contained starts a program in its own pid and mount namespaces, with its own /tmp, and returns its number
// here.
func contained(t *testing.T, argv ...string) int {
	t.Helper()
	unshare := []string{"unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
		ownTemp + ` && exec "$@"`, "sh", needs.Root(t)}
	if os.Geteuid() != 0 || exec.Command(unshare[0], append(unshare[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: no namespaces can be made here (they need root and unshare)")
	}
	return child(t, start(t, append(unshare, argv...)...), func(pid int) bool {
		_, err := diagnostics.Process(pid) // the folder may still be ours, with the ports of other programs
		return err == nil
	})
}

// child waits until a process has a child that is ready, and returns its number.
func child(t *testing.T, p *process, ready func(pid int) bool) (pid int) {
	t.Helper()
	until(t, "the program is ready", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.pid, p.pid))
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil && ready(pid)
	})
	return pid
}

// A process in a container has other files and process numbers. It is recorded and examined from here
// nevertheless, and nothing of ours stays in its /tmp.
func TestOtherNamespaces(t *testing.T) {
	pid := contained(t, app(t, "Truth", "120")...)
	before := settled(t, pid)
	for range 2 {
		r := record(t, fmt.Sprint("--duration 2s --pid ", pid))
		r.whole(t, 100, leastWhole)
		expect.True(t, r.code == 0 && r.Counters["timed"] != 0 && r.has("T.Run"),
			"exit code %d, %d by timers, or no method of the program's is named\n%s", r.code,
			r.Counters["timed"], r.stderr)
		clean(t, pid, before)
	}
	left, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/tmp/seedwalk*", pid))
	expect.True(t, len(left) == 0, "left in its /tmp: %v", left)
	l := stacks(t, fmt.Sprint(pid))
	if whole := l.whole(t); !l.Runtime || len(l.Threads) < 15 || len(l.Threads)-whole > 1 {
		t.Errorf("runtime %v, %d of %d whole, problems %v", l.Runtime, whole, len(l.Threads), l.Problems)
	}
}

// The runtime frees dynamic methods and collectible assemblies, and gives their addresses to other code at
// once. Each method has its own name and its own CPU time in the profile all the same. The program measures
// the truth with the clock of its thread.
func TestReusedCode(t *testing.T) {
	r := record(t, "--rate 499", app(t, "Reused", "10", "40")...)
	seen := map[string]float64{}
	for i := range r.Stacks {
		names := r.stackNames(i)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			seen[strings.TrimSuffix(name, ".Run")] += float64(r.Stacks[i].CPU) / 1e6
		}
	}
	count := 0
	for line := range strings.Lines(r.stdout) {
		var name string
		var ms float64
		if n, _ := fmt.Sscan(line, &name, &ms); n < 2 {
			continue
		}
		count++
		expect.Figures(t, math.Abs(seen[name]-ms) <= ms/3, "%s: %.0f ms, in the profile %.0f ms", name, ms,
			seen[name])
	}
	expect.True(t, count == 9, "%d methods, want 9; %s", count, r.stderr)
}

// A program that a signal has ended is distinguished from one that ended by itself.
func TestExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 3": 3, "kill -SEGV $$": 139, "kill -KILL $$": 137} {
		expect.Equal(t, run(t, time.Minute, nil, "sh", "-c", script).code, want, script)
	}
}

package record

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func init() {
	otherTargets["killed"] = killed
	otherTargets["patient"] = patient
	otherTargets["terminated"] = terminated
}

// killed ends in the middle of a message.
func killed() int {
	send(greet, samples(10)).Write([]byte{byte(wire.TypeNote), 9, 'h', 'a'})
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	time.Sleep(time.Minute)
	return 98
}

// terminated ends by a signal before it connects. It is not SIGHUP, which a test run under nohup ignores.
func terminated() int {
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.Sleep(time.Minute)
	return 98
}

// A command that a signal ends at once gives no advice about runtimes.
func TestEndedBeforeItConnects(t *testing.T) {
	opt, said := fakeRun(t, "terminated")
	res := mustRun(t, opt)
	const want = "no samples: the command was ended by signal 15 (terminated) before a .NET runtime"
	expect.True(t, res.ExitCode == 128+15 && strings.HasPrefix(said.String(), want), "exit code %d, said %q",
		res.ExitCode, said)
}

// A command that ran for a long time before a signal ended it gets the likely reasons.
func TestEndedLate(t *testing.T) {
	for _, c := range []struct {
		code   int
		lasted time.Duration
		want   bool
	}{
		{130, time.Second, true}, {130, time.Hour, false}, {1, time.Second, false},
		{128 + 65, time.Second, false},
	} {
		r := &run{code: c.code, lasted: c.lasted}
		got := r.endedAtOnce()
		expect.True(t, (got != "") == c.want, "exit code %d after %v: %q", c.code, c.lasted, got)
	}
}

// patient survives INT, echoes every signal, and ends at TERM.
func patient() int {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM)
	conn := send(greet, samples(4))
	defer conn.Close()
	for s := range c {
		fmt.Println(s)
		if s == syscall.SIGTERM {
			return 7
		}
	}
	return 98
}

func TestKilledTarget(t *testing.T) {
	opt, _ := fakeRun(t, "killed")
	res := mustRun(t, opt)
	expect.Equal(t, res.ExitCode, 128+9, "exit code")
	got := content(t, opt.Outputs[0].Path)
	expect.True(t, strings.Contains(got, "x10"), "samples lost: %s", got)
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	expect.True(t, strings.Contains(notes, "was cut off") &&
		res.Profile.Stats.ExitNote == "the command was ended by signal 9 (killed)",
		"notes %q, %q", notes, res.Profile.Stats.ExitNote)
}

// follow runs a patient target. It returns once five samples have arrived, with the result to come and
// the target's output.
func follow(t *testing.T, opt options.Options) (<-chan *options.Result, *os.File) {
	t.Helper()
	outR, out, err := os.Pipe()
	must.Do(t, err)
	opt.Stdout = out
	t.Cleanup(func() { outR.Close() }) // not earlier, by the garbage collector: SIGPIPE would end the command
	connected := make(chan struct{})
	var once sync.Once
	opt.Progress = func(p options.Progress) {
		if p.Samples == 5 {
			once.Do(func() { close(connected) })
		}
	}
	done := make(chan *options.Result, 1)
	go func() {
		res, err := Run(opt)
		expect.Equal(t, err, nil)
		out.Close()
		done <- res
	}()
	<-connected
	return done, outR
}

func readLine(t *testing.T, r io.Reader) string {
	t.Helper()
	var line bytes.Buffer
	b := make([]byte, 1)
	for {
		if _, err := r.Read(b); err != nil || b[0] == '\n' {
			return line.String()
		}
		line.Write(b)
	}
}

func TestSignalsGoOn(t *testing.T) {
	if inForeground() {
		t.Skip("SKIPPED-CHECK: the test is in a terminal's foreground, where INT is not passed on")
	}
	opt, _ := fakeRun(t, "patient")
	pidFile := filepath.Join(tempdir.New(t), "pid")
	opt.PIDFile = pidFile
	done, out := follow(t, opt)
	_, err := os.Stat(pidFile)
	expect.Equal(t, err, nil)
	for _, c := range []struct {
		sig  syscall.Signal
		want string
	}{{syscall.SIGUSR1, "user defined signal 1"}, {syscall.SIGTERM, "terminated"}} {
		syscall.Kill(os.Getpid(), c.sig)
		expect.Equal(t, readLine(t, out), c.want, "%v: the command", c.sig)
	}
	res := <-done
	expect.True(t, res.ExitCode == 7 && strings.Contains(content(t, opt.Outputs[0].Path), "x4"),
		"exit code %d", res.ExitCode)
	_, err = os.Stat(pidFile)
	expect.True(t, err != nil, "the pid file is left")
}

// A terminal that closes ends a recording of a process, as Ctrl-C does.
func TestEndsRecording(t *testing.T) {
	for _, c := range []struct {
		sig         syscall.Signal
		commandRuns bool
		want        bool
	}{
		{syscall.SIGINT, false, true}, {syscall.SIGTERM, false, true}, {syscall.SIGHUP, false, true},
		{syscall.SIGQUIT, false, false}, {syscall.SIGUSR1, false, false},
		{syscall.SIGINT, true, true}, {syscall.SIGTERM, true, false}, {syscall.SIGHUP, true, false},
	} {
		expect.Equal(t, endsRecording(c.sig, c.commandRuns), c.want,
			"%v, command runs: %v", c.sig, c.commandRuns)
	}
}

// One INT ends the recording. If the command has not ended after Grace, the tool writes the result, and then
// waits for the command.
func TestInterruptOnce(t *testing.T) {
	opt, _ := fakeRun(t, "patient")
	opt.Grace = time.Millisecond
	wrote := make(chan struct{}, 8)
	opt.Outputs[0].Format.Write = func(w io.Writer, p *export.Profile) error {
		defer func() { wrote <- struct{}{} }()
		return plain.Write(w, p)
	}
	done, _ := follow(t, opt)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	<-wrote // without names
	<-wrote // with
	select {
	case <-done:
		t.Fatal("the tool did not wait for the command")
	default:
	}
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	res := <-done
	expect.True(t, res.ExitCode == 7 && strings.Contains(content(t, opt.Outputs[0].Path), "bb!500"),
		"exit code %d, %s", res.ExitCode, content(t, opt.Outputs[0].Path))
}

// A second INT while names are looked up ends at once, and the file is whole.
func TestInterruptTwice(t *testing.T) {
	opt, _ := fakeRun(t, "patient")
	opt.Grace = time.Millisecond
	n := &slowNamer{entered: make(chan struct{}), release: make(chan struct{})}
	opt.Namer = n
	done, _ := follow(t, opt)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	<-n.entered
	pid := childPID(t)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	res := <-done
	expect.Equal(t, res.ExitCode, 130, "exit code")
	got := content(t, opt.Outputs[0].Path)
	expect.True(t, strings.Contains(got, "libc.so.6+0x500") && strings.Contains(got, "x4"), "got %s", got)
	left, _ := os.ReadDir(filepath.Dir(opt.Outputs[0].Path))
	expect.Equal(t, len(left), 1, "left behind: %v", left)
	close(n.release)
	syscall.Kill(pid, syscall.SIGKILL) // the tool does not end the command
}

type slowNamer struct {
	once             sync.Once
	entered, release chan struct{}
}

func (n *slowNamer) Name(string, string, uint64) (string, bool) {
	n.once.Do(func() { close(n.entered) })
	<-n.release
	return "late", true
}

func (n *slowNamer) Function(string, string, uint64) (uint64, uint64, bool) { return 0, 0, false }

// childPID returns the only child of this test process.
func childPID(t *testing.T) int {
	t.Helper()
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		var pid int
		if n, _ := fmt.Sscan(string(b), &pid); n == 1 {
			return pid
		}
	}
	t.Fatal("no child")
	return 0
}

func TestDuration(t *testing.T) {
	opt, _ := fakeRun(t, "patient")
	opt.Duration = time.Millisecond
	wrote := make(chan struct{}, 1)
	opt.Outputs[0].Format.Write = func(w io.Writer, p *export.Profile) error {
		defer func() { wrote <- struct{}{} }()
		return plain.Write(w, p)
	}
	done, _ := follow(t, opt)
	<-wrote
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	res := <-done
	expect.True(t, res.ExitCode == 7 && len(res.Profile.Stats.Notes) == 0 && res.Profile.Stats.Samples == 5,
		"%+v", res)
}

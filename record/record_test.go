package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/export"
)

// plain is a format that the tests can read.
var plain = Format{Name: "plain", Write: func(w io.Writer, p *export.Profile) error {
	if err := p.Check(); err != nil {
		return err
	}
	for _, s := range p.Stacks {
		var names []string
		for _, f := range s.Frames {
			fr := &p.Frames[f]
			mark := ""
			if fr.Doubtful {
				mark = "?"
			}
			names = append(names, fmt.Sprintf("%s%s[%s]", fr.Name, mark, fr.Class))
		}
		t := p.Threads[s.Thread]
		fmt.Fprintf(w, "%d %s: %s x%d %s\n", t.ID, t.Name, strings.Join(names, " "), s.Count, s.Gap)
	}
	return nil
}}

type fakeNamer struct{}

func (fakeNamer) Name(path, buildID string, addr uint64) (string, bool) {
	return fmt.Sprintf("%s!%x", buildID, addr), path == "/lib/libc.so.6"
}

// Function: functions are 256 bytes long.
func (fakeNamer) Function(path, buildID string, addr uint64) (start, end uint64, ok bool) {
	return addr &^ 0xff, addr&^0xff + 0x100, strings.Contains(path, "coreclr")
}

// lines collects what Run says.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) say(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// options are those of a run of the test binary as a target.
func options(t *testing.T, what string) (Options, *lines) {
	t.Helper()
	profiler, err := filepath.EvalSymlinks("/proc/self/exe") // any ELF file of this machine
	if err != nil {
		t.Fatal(err)
	}
	l := &lines{}
	return Options{Command: []string{os.Args[0]}, Env: append(os.Environ(), envTarget+"="+what), Profiler: profiler,
		Outputs: []Output{{filepath.Join(t.TempDir(), "out.plain"), plain}}, Namer: fakeNamer{}, Say: l.say, SocketDir: t.TempDir()}, l
}

func mustRun(t *testing.T, opt Options) *Result {
	t.Helper()
	res, err := Run(opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	wantStack = "70 worker: bb!500[native] libcoreclr.so+0x800?[runtime] stub of the CLR[stub] App.Program.Main[managed] x%d \n"
	wantGap   = "71 : unknown code at 0x5[native] no-unwind-info[gap] x1 no-unwind-info\n"
)

func TestRecord(t *testing.T) {
	opt, said := options(t, "exit")
	res := mustRun(t, opt)
	if res.ExitCode != 3 || said.String() != "" {
		t.Errorf("exit code %d, said %q", res.ExitCode, said)
	}
	if got, want := content(t, opt.Outputs[0].Path), fmt.Sprintf(wantStack, 10)+wantGap; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	p := res.Profile
	if p.Runtime != ".NET 9.0.5" || p.RateHz != 50 || p.Duration != 180*time.Millisecond || !p.Start.Equal(time.Unix(1, 0)) {
		t.Errorf("header: %q %v Hz %v %v", p.Runtime, p.RateHz, p.Duration, p.Start)
	}
	s := p.Stats
	if s.Samples != 11 || s.Complete != 10 || s.Gaps["no-unwind-info"] != 1 || s.Retries != 2 || s.Suspended.Max != time.Millisecond ||
		s.ExitNote != "the command ended with exit code 3" || len(s.Notes) != 0 {
		t.Errorf("stats %+v", s)
	}
	if len(s.Parts) != 1 || s.Parts[0].Name != "own walk" || s.Parts[0].Time != s.Suspended ||
		!slices.Equal(s.Tries, []export.Tries{{Verdict: "no-managed", Result: "E_FAIL", Count: 9}, {Verdict: "found", Result: "S_OK", Count: 5}}) {
		t.Errorf("parts %+v, tries %+v", s.Parts, s.Tries)
	}
	if st := p.Stacks[0]; st.WallNanos != 200_000_000 || st.CPUNanos != 10_000 || !st.Complete {
		t.Errorf("stack %+v", st)
	}
	left, _ := os.ReadDir(opt.SocketDir)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestKilledTarget(t *testing.T) {
	opt, _ := options(t, "killed")
	res := mustRun(t, opt)
	if res.ExitCode != 128+9 {
		t.Errorf("exit code %d", res.ExitCode)
	}
	if got := content(t, opt.Outputs[0].Path); !strings.Contains(got, "x10") {
		t.Errorf("samples lost: %s", got)
	}
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	if !strings.Contains(notes, "without a farewell") || res.Profile.Stats.ExitNote != "the command was ended by signal 9 (killed)" {
		t.Errorf("notes %q, %q", notes, res.Profile.Stats.ExitNote)
	}
}

func TestGarbage(t *testing.T) {
	opt, _ := options(t, "garbage")
	res := mustRun(t, opt)
	if notes := strings.Join(res.Profile.Stats.Notes, "\n"); res.Profile.Stats.Samples != 3 || !strings.Contains(notes, "bad Text") {
		t.Errorf("%d samples, notes %q", res.Profile.Stats.Samples, notes)
	}
}

func TestNeverConnected(t *testing.T) {
	opt, said := options(t, "silent")
	res := mustRun(t, opt)
	if res.ExitCode != 5 || !strings.Contains(said.String(), "the profiler never connected") || strings.Contains(said.String(), "\n") {
		t.Errorf("exit code %d, said %q", res.ExitCode, said)
	}
	if _, err := os.Stat(opt.Outputs[0].Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty profile was written: %v", err)
	}
	opt, said = options(t, "silent")
	opt.Env = append(opt.Env, "DOTNET_EnableDiagnostics_Profiler=0")
	mustRun(t, opt)
	if strings.Count(said.String(), "DOTNET_EnableDiagnostics_Profiler=0 is set") != 2 { // before and after
		t.Errorf("said %q", said)
	}
}

func TestSeveralProcesses(t *testing.T) {
	opt, _ := options(t, "parent")
	res := mustRun(t, opt)
	got := content(t, opt.Outputs[0].Path)
	if len(res.PIDs) != 2 || res.Profile.Stats.Samples != 2+11 {
		t.Fatalf("processes %v, %d samples", res.PIDs, res.Profile.Stats.Samples)
	}
	for _, pid := range res.PIDs {
		if want := fmt.Sprintf(" (%d)[native] x", pid); strings.Count(got, want) != 2 {
			t.Errorf("no root %q in\n%s", want, got)
		}
	}
}

func TestStdio(t *testing.T) {
	opt, _ := options(t, "echo")
	in, inW, _ := os.Pipe()
	outR, out, _ := os.Pipe()
	errR, errW, _ := os.Pipe()
	opt.Stdin, opt.Stdout, opt.Stderr = in, out, errW
	fmt.Fprint(inW, "through and through")
	inW.Close()
	res := mustRun(t, opt)
	out.Close()
	errW.Close()
	o, _ := io.ReadAll(outR)
	e, _ := io.ReadAll(errR)
	if res.ExitCode != 0 || string(o) != "through and through" || string(e) != "to stderr\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", res.ExitCode, o, e)
	}
}

// follow runs a patient target and returns its output line by line.
func follow(t *testing.T, opt Options) (<-chan *Result, *os.File) {
	t.Helper()
	outR, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	opt.Stdout = out
	connected := make(chan struct{})
	var once sync.Once
	opt.Progress = func(p Progress) {
		if p.Samples == 5 {
			once.Do(func() { close(connected) })
		}
	}
	done := make(chan *Result, 1)
	go func() {
		res, err := Run(opt)
		if err != nil {
			t.Error(err)
		}
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
	opt, _ := options(t, "patient")
	pidFile := filepath.Join(t.TempDir(), "pid")
	opt.PIDFile = pidFile
	done, out := follow(t, opt)
	if _, err := os.Stat(pidFile); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		sig  syscall.Signal
		want string
	}{{syscall.SIGUSR1, "user defined signal 1"}, {syscall.SIGTERM, "terminated"}} {
		syscall.Kill(os.Getpid(), c.sig)
		if got := readLine(t, out); got != c.want {
			t.Errorf("%v: the command got %q", c.sig, got)
		}
	}
	res := <-done
	if res.ExitCode != 7 || !strings.Contains(content(t, opt.Outputs[0].Path), "x4") {
		t.Errorf("exit code %d", res.ExitCode)
	}
	if _, err := os.Stat(pidFile); err == nil {
		t.Error("the pid file is left")
	}
}

// One INT writes the result though the command goes on, and the tool then
// waits for it.
func TestInterruptOnce(t *testing.T) {
	opt, _ := options(t, "patient")
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
	if res.ExitCode != 7 || !strings.Contains(content(t, opt.Outputs[0].Path), "bb!500") {
		t.Errorf("exit code %d, %s", res.ExitCode, content(t, opt.Outputs[0].Path))
	}
}

// A second INT while names are looked up ends at once, and the file is whole.
func TestInterruptTwice(t *testing.T) {
	opt, _ := options(t, "patient")
	opt.Grace = time.Millisecond
	n := &slowNamer{entered: make(chan struct{}), release: make(chan struct{})}
	opt.Namer = n
	done, _ := follow(t, opt)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	<-n.entered
	pid := childPID(t)
	syscall.Kill(os.Getpid(), syscall.SIGINT)
	res := <-done
	if res.ExitCode != 130 {
		t.Errorf("exit code %d", res.ExitCode)
	}
	if got := content(t, opt.Outputs[0].Path); !strings.Contains(got, "libc.so.6+0x500") || !strings.Contains(got, "x4") {
		t.Errorf("got %s", got)
	}
	left, _ := os.ReadDir(filepath.Dir(opt.Outputs[0].Path))
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	close(n.release)
	syscall.Kill(pid, syscall.SIGKILL) // the tool leaves the command alone
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

// childPID is the one child this test process has.
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
	opt, _ := options(t, "patient")
	opt.Duration = time.Millisecond
	wrote := make(chan struct{}, 1)
	opt.Outputs[0].Format.Write = func(w io.Writer, p *export.Profile) error {
		defer func() { wrote <- struct{}{} }()
		return plain.Write(w, p)
	}
	done, _ := follow(t, opt)
	<-wrote
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	if res := <-done; res.ExitCode != 7 || len(res.Profile.Stats.Notes) != 0 || res.Profile.Stats.Samples != 5 {
		t.Errorf("%+v", res)
	}
}

// A profiler that goes on sending does not make the recording longer.
func TestDurationOfAnEndlessTarget(t *testing.T) {
	opt, _ := options(t, "endless")
	opt.Duration = 20 * time.Millisecond
	began := time.Now()
	res := mustRun(t, opt)
	if res.ExitCode != 11 || len(res.Profile.Stats.Notes) != 0 || res.Profile.Stats.Samples < 5 {
		t.Errorf("exit code %d, %+v", res.ExitCode, res.Profile.Stats)
	}
	if last := res.Profile.Start.Add(res.Profile.Duration); last.After(time.Now()) || last.Before(began) {
		t.Errorf("the last sample is of %v", last)
	}
}

package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// plain is a format that the tests can read.
var plain = options.Format{Name: "plain", Write: func(w io.Writer, p *export.Profile) error {
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

// lines collects the lines that Run reports.
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

// fakeRun returns the options of a run with the test binary as the target.
func fakeRun(t *testing.T, what string) (options.Options, *lines) {
	t.Helper()
	profiler, err := os.Executable() // any program on this machine
	must.Do(t, err)
	l := &lines{}
	return options.Options{Mode: options.ModeSnapshot, Command: []string{os.Args[0]},
		Env: append(os.Environ(), envTarget+"="+what), Profiler: profiler,
		Outputs: []options.Output{{Path: filepath.Join(tempdir.New(t), "out.plain"), Format: plain}},
		Namer:   fakeNamer{}, Say: l.say, SocketDir: tempdir.New(t)}, l
}

func mustRun(t *testing.T, opt options.Options) *options.Result {
	t.Helper()
	return must.Get(Run(opt))(t)
}

func content(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}

const (
	wantStack = "70 worker: bb!500[native] libcoreclr.so+0x800?[runtime] stub of the CLR[stub] App.Program.Main[managed] x%d \n"
	wantGap   = "71 : unknown code at 0x5[native] no-unwind-info[gap] x1 no-unwind-info\n"
)

func TestRecord(t *testing.T) {
	opt, said := fakeRun(t, "exit")
	res := mustRun(t, opt)
	expect.True(t, res.ExitCode == 3 && said.String() == "", "exit code %d, said %q", res.ExitCode, said)
	got, want := content(t, opt.Outputs[0].Path), fmt.Sprintf(wantStack, 10)+wantGap
	expect.True(t, got == want, "got\n%swant\n%s", got, want)
	p := res.Profile
	expect.True(t, p.Runtime == ".NET 9.0.5" && p.RateHz == 50 && p.Duration == 180*time.Millisecond &&
		p.Start.Equal(time.Unix(1, 0)), "header: %q %v Hz %v %v", p.Runtime, p.RateHz, p.Duration, p.Start)
	s := p.Stats
	if s.Samples != 11 || s.Complete != 10 || s.Gaps["no-unwind-info"] != 1 || s.Retries != 2 ||
		s.Suspended.Max != time.Millisecond ||
		s.ExitNote != "the command ended with exit code 3" || len(s.Notes) != 0 {
		t.Errorf("stats %+v", s)
	}
	if len(s.Parts) != 1 || s.Parts[0].Name != "own walk" || s.Parts[0].Quantiles != s.Suspended ||
		!slices.Equal(s.Tries, []export.Tries{{Verdict: "no-managed", Result: "E_FAIL", Count: 9},
			{Verdict: "found", Result: "S_OK", Count: 5}}) {
		t.Errorf("parts %+v, tries %+v", s.Parts, s.Tries)
	}
	st := p.Stacks[0]
	expect.True(t, st.WallNanos == 200_000_000 && st.CPUNanos == 10_000 && st.Complete, "stack %+v", st)
	left, _ := os.ReadDir(opt.SocketDir)
	expect.Equal(t, len(left), 0, "left behind: %v", left)
}

func TestGarbage(t *testing.T) {
	opt, _ := fakeRun(t, "garbage")
	res := mustRun(t, opt)
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	expect.True(t, res.Profile.Stats.Samples == 3 && strings.Contains(notes, "bad Text"),
		"%d samples, notes %q", res.Profile.Stats.Samples, notes)
}

// Threads that could not be sampled are reported in words.
func TestDenied(t *testing.T) {
	opt, _ := fakeRun(t, "denied")
	res := mustRun(t, opt)
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	expect.Contains(t, notes, "12 samples not taken: the system refused to suspend the thread",
		"5 samples of threads that a collection or a debugger had already suspended")
}

// The time of a recording begins when samples can come. Preparations do not count.
func TestDurationBegins(t *testing.T) {
	opt, said := fakeRun(t, "late")
	opt.Duration = 200 * time.Millisecond
	expect.True(t, mustRun(t, opt).Profile.Stats.Samples != 0, "no samples, said %q", said)
}

// A recording that ends before its command has the figures of all its samples, and no sample later than its
// end.
func TestLastFigures(t *testing.T) {
	defer func(d time.Duration) { drainWait = d }(drainWait)
	drainWait = time.Minute // of a busy machine
	opt, _ := fakeRun(t, "lingering")
	opt.Duration = 100 * time.Millisecond
	res := mustRun(t, opt)
	s := &res.Profile.Stats
	expect.True(t, s.Samples == 5 && len(s.Tries) != 0 && s.Tries[0].Count == 77 && len(s.Notes) == 0,
		"%d samples, answers %+v, notes %q", s.Samples, s.Tries, s.Notes)
}

func TestNeverConnected(t *testing.T) {
	opt, said := fakeRun(t, "silent")
	res := mustRun(t, opt)
	expect.True(t, res.ExitCode == 5 &&
		strings.Contains(said.String(), "no .NET runtime loaded seedwalk's library") &&
		!strings.Contains(said.String(), "\n"), "exit code %d, said %q", res.ExitCode, said)
	_, err := os.Stat(opt.Outputs[0].Path)
	expect.True(t, errors.Is(err, os.ErrNotExist), "an empty profile was written: %v", err)
	opt, said = fakeRun(t, "silent")
	opt.Env = append(opt.Env, "DOTNET_EnableDiagnostics_Profiler=0")
	mustRun(t, opt)
	if strings.Count(said.String(), "DOTNET_EnableDiagnostics_Profiler=0 is set") != 2 { // before and after
		t.Errorf("said %q", said)
	}
}

func TestSeveralProcesses(t *testing.T) {
	opt, _ := fakeRun(t, "parent")
	res := mustRun(t, opt)
	got := content(t, opt.Outputs[0].Path)
	must.True(t, len(res.PIDs) == 2 && res.Profile.Stats.Samples == 2+11,
		"processes %v, %d samples", res.PIDs, res.Profile.Stats.Samples)
	for _, pid := range res.PIDs {
		want := fmt.Sprintf(" (%d)[native] x", pid)
		expect.True(t, strings.Count(got, want) == 2, "no root %q in\n%s", want, got)
	}
}

func TestStdio(t *testing.T) {
	opt, _ := fakeRun(t, "echo")
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
	expect.True(t, res.ExitCode == 0 && string(o) == "through and through" && string(e) == "to stderr\n",
		"exit code %d, stdout %q, stderr %q", res.ExitCode, o, e)
}

// A profiler that continues to send does not make the recording longer.
func TestDurationOfAnEndlessTarget(t *testing.T) {
	opt, _ := fakeRun(t, "endless")
	opt.Duration = 20 * time.Millisecond
	began := time.Now()
	res := mustRun(t, opt)
	expect.True(t, res.ExitCode == 11 && len(res.Profile.Stats.Notes) == 0 && res.Profile.Stats.Samples >= 5,
		"exit code %d, %+v", res.ExitCode, res.Profile.Stats)
	last := res.Profile.Start.Add(res.Profile.Duration)
	expect.True(t, !last.After(time.Now()) && !last.Before(began), "the last sample is of %v", last)
}

// A recording without samples reports the reason in one line, and fails if FailEmpty is set.
func TestEmpty(t *testing.T) {
	for _, c := range []struct {
		what, want string
		failEmpty  bool
		code       int
	}{
		{"empty", "no samples: the profiler connected and sent none", false, 0},
		{"empty", "no samples: the profiler connected and sent none", true, options.ExitRefused},
		{"empty with a note", "no samples: the runtime has no threads yet", true, options.ExitRefused},
		{"silent", "no samples: no .NET runtime loaded seedwalk's library", true, 5},
		{"echo", "", true, 0},
	} {
		opt, said := fakeRun(t, c.what)
		opt.FailEmpty = c.failEmpty
		res := mustRun(t, opt)
		if res.Profile != nil && res.Profile.Stats.Empty != said.String() {
			t.Errorf("%s: the outputs say %q, the terminal %q", c.what, res.Profile.Stats.Empty, said)
		}
		expect.True(t, res.ExitCode == c.code && strings.HasPrefix(said.String(), c.want) &&
			!strings.Contains(said.String(), "\n") && (c.want == "") == (said.String() == ""),
			"%s: exit code %d, said %q", c.what, res.ExitCode, said)
	}
}

// Outputs of an earlier recording stay if nothing was recorded, and the tool names them.
func TestOlderOutputs(t *testing.T) {
	opt, said := fakeRun(t, "silent")
	must.Do(t, os.WriteFile(opt.Outputs[0].Path, []byte("older"), 0o600))
	mustRun(t, opt)
	expect.True(t, strings.Contains(said.String(), "not replaced, from an earlier recording: out.plain") &&
		content(t, opt.Outputs[0].Path) == "older", "said %q", said)
}

// If only events were requested and none happened, the line reports that.
func TestNoEvents(t *testing.T) {
	p := inflow.New(7, "app")
	r := &run{opt: &options.Options{Events: "locks"}, srv: &server{processes: []*inflow.Process{p}}}
	got := r.empty()
	expect.True(t, strings.HasPrefix(got, "no events: nothing that --events locks records"), "%q", got)
	p.Receive(&wire.Event{Kind: wire.EventWait})
	expect.Equal(t, r.empty(), "", "with an event")
}

// The summary says once why a process was sampled with --mode snapshot: with one process in the line "way",
// with several in a note.
func TestFallbackOnce(t *testing.T) {
	const why, note, other = "its runtime is old", "process 7 (app): --mode snapshot, because its runtime is old", "other"
	r := &run{opt: &options.Options{Mode: options.ModeProbe},
		srv: &server{notes: []string{note, other}, fellBack: why, fellNote: note}}
	app := collect.NewProcess(7, "app")
	info := r.info([]*collect.Process{app}, "")
	expect.True(t, info.Way == export.WaySnapshot && strings.HasSuffix(info.WayWhy, why), "%+v", info)
	expect.Slices(t, info.Notes, []string{other})
	info = r.info([]*collect.Process{app, collect.NewProcess(8, "child")}, "")
	expect.Slices(t, info.Notes, []string{note, other})
}

// If only waits were requested and the runtime cannot report them, the line reports that, and the exit
// code of record --pid is not 0.
func TestUnseenWaits(t *testing.T) {
	for _, c := range []struct {
		name, runtime string
		events        options.Events
		pid, code     int
		want          string
	}{
		{"waits", ".NET 8.0.6", "waits", 7, options.ExitRefused, "waits of process 7 are unknown: .NET 8 "},
		{"a command has its own code", ".NET 8.0.6", "waits", 0, 0,
			"waits of process 7 are unknown: .NET 8 "},
		{"locks too", ".NET 8.0.6", "waits,locks", 7, 0, "no events: "},
		{"reported", ".NET 9.0.5", "waits", 7, 0, "no events: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := inflow.New(7, "app")
			p.Receive(&wire.Hello{PID: 7, Runtime: c.runtime})
			r := &run{opt: &options.Options{Events: c.events, PID: c.pid},
				srv: &server{processes: []*inflow.Process{p}}}
			got, code := r.empty(), r.finalCode()
			expect.True(t, strings.HasPrefix(got, c.want) && code == c.code, "%q, exit code %d", got, code)
		})
	}
}

// If the profiler itself reported why it does not work, the tool does not guess.
func TestRefusedToldWhy(t *testing.T) {
	opt, said := fakeRun(t, "refusing")
	res := mustRun(t, opt)
	expect.True(t, res.ExitCode == 5 && said.String() == "", "exit code %d, said %q", res.ExitCode, said)
	left, _ := os.ReadDir(opt.SocketDir)
	expect.True(t, len(left) == 0, "left behind: %v", left)
}

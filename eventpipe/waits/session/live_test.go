//go:build linux

package session_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/sample/blocked"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

var record = flag.Bool("record-trace", false, "keep a trace and its truth in ../testdata")

const everything = "mutex,events,semaphore,join,monitor,task,callback,interrupt,silence,many"

// program is the sample on .NET 9.
func program(t *testing.T, args ...string) *exec.Cmd {
	dist := needs.Runtime9(t)
	return exec.Command(needs.File(t, "out", "bin", "swhost"),
		append([]string{dist, needs.File(t, "out", "samples", "Waits.exe")}, args...)...)
}

// program10 is the same on .NET 10, in the place of a single-file program's own assembly:
// its framework has what that program needed.
func program10(t *testing.T, args ...string) *exec.Cmd {
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	return exec.Command(needs.File(t, "out", "samples", "Waits10"), args...)
}

var programs = []struct {
	runtime string
	start   func(t *testing.T, args ...string) *exec.Cmd
}{{"9.0.5", program}, {"10.0.9", program10}}

// seen is what a live run gave.
type seen struct {
	a       *waits.Analysis
	err     error
	raw     bytes.Buffer
	out     bytes.Buffer
	mu      sync.Mutex
	late    []time.Duration
	unnamed int
	native  blocked.Stats
}

func (s *seen) options() session.Options {
	return session.Options{Keep: &s.raw, Follow: func(w *waits.Wait, frames []waits.Frame) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, time.Since(s.a.Trace.Time(w.Stop)))
		for i := range frames {
			if !frames[i].Named {
				s.unnamed++
			}
		}
	}}
}

// atStart runs a program from its start to its end under a session.
func atStart(t *testing.T, cmd *exec.Cmd) *seen {
	t.Helper()
	port := must.Get(diagnostics.Listen(filepath.Join(tempdir.New(t), "p")))(t)
	defer port.Close()
	s := &seen{a: waits.New()}
	cmd.Env = append(os.Environ(), port.Variable())
	cmd.Stdout, cmd.Stderr = &s.out, os.Stderr
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	select {
	case c := <-port.Runtimes():
		opt := s.options()
		opt.AtStart = true
		b, err := blocked.New(c.PID, 50*time.Millisecond, s.a)
		if err != nil {
			t.Error(err)
			break
		}
		opt.Blocked = b
		defer func() { s.native = b.Close() }()
		s.err = session.Run(ctx, c, s.a, opt)
	case <-ctx.Done():
		t.Error("the runtime did not come")
		cmd.Process.Kill()
	}
	s.a.Finish()
	return s
}

// attached runs a program that has compiled its methods before we come. What
// happens between its ready and the end is up to do.
func attached(t *testing.T, cmd *exec.Cmd,
	do func(s *seen, in io.Writer, c *diagnostics.Client, read func(until string))) *seen {
	t.Helper()
	s := &seen{a: waits.New()}
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer kill.Stop()
	lines := bufio.NewScanner(out)
	read := func(until string) {
		for lines.Scan() && lines.Text() != until {
			s.out.WriteString(lines.Text() + "\n")
		}
	}
	read("ready")
	c := must.Get(diagnostics.Process(cmd.Process.Pid))(t)
	do(s, in, c, read)
	s.a.Finish()
	return s
}

// normal is an attach, the scenarios, a detach, and the program's end after it.
func normal(s *seen, in io.Writer, c *diagnostics.Client, read func(string)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	opt, began := s.options(), make(chan struct{})
	opt.Began = func() { close(began) }
	go func() { done <- session.Run(ctx, c, s.a, opt) }()
	select {
	case <-began:
	case <-time.After(30 * time.Second): // the truth fails
	}
	io.WriteString(in, "go\n")
	read("done")
	stop()
	s.err = <-done
	io.WriteString(in, "end\n")
	read("")
}

func (s *seen) check(t *testing.T, many int) *waittruth.Result {
	t.Helper()
	truth, err := waittruth.Lines(&s.out)
	must.True(t, err == nil && len(truth) >= many, "%d waits in the truth, %v", len(truth), err)
	expect.True(t, s.err == nil && len(s.a.Partial()) == 0, "%v, %v", s.err, s.a.Partial())
	r := waittruth.Judge(truth, s.a)
	for _, p := range r.Problems {
		t.Error(p)
	}
	s.keepsTruth(t, truth)
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		for _, f := range s.a.Frames(w.Stack, w.Start) {
			if !f.Named && w.Stack != waits.NoStack {
				t.Errorf("%#x of a %v of thread %d has no name", f.Addr, w.Kind, w.Thread)
			}
		}
	}
	t.Logf("%d of %d waits, %d of %d frames named; %d waits in all; %d told as they ended, the latest %v after, %d frames without a name then", r.Found, len(truth), r.Frames-r.Unnamed, r.Frames,
		len(s.a.Waits), len(s.late), latest(s.late), s.unnamed)
	return r
}

// keepsTruth: the trace that was kept gives the same.
func (s *seen) keepsTruth(t *testing.T, truth []waittruth.Wait) {
	t.Helper()
	again := waits.New()
	var maps bytes.Buffer // as the tool keeps them beside a trace
	for _, im := range s.a.Names.Images {
		fmt.Fprintf(&maps, "%x-%x r-xp %08x 00:00 0 %s\n", im.Start, im.End, im.Offset, im.Path)
	}
	expect.Equal(t, session.ReadMaps(again.Names, &maps, ""), nil)
	expect.Equal(t, again.Read(bytes.NewReader(s.raw.Bytes())), nil, "the kept trace")
	again.Finish()
	for _, p := range waittruth.Judge(truth, again).Problems {
		t.Errorf("the kept trace: %s", p)
	}
	if *record {
		name := "../testdata/" + strings.ToLower(strings.NewReplacer("/", "-", "Test", "").Replace(t.Name()))
		raw, _ := json.Marshal(struct {
			PID   int              `json:"pid"`
			Trace string           `json:"trace"`
			Waits []waittruth.Wait `json:"waits"`
		}{s.a.Trace.ProcessID, filepath.Base(name) + ".nettrace", truth})
		lines := bytes.ReplaceAll(raw, []byte(`{"scenario"`), []byte("\n"+`{"scenario"`)) // a wait a line
		os.WriteFile(name+".truth.json", append(lines, '\n'), 0o644)
		os.WriteFile(name+".nettrace", anonymous(s.raw.Bytes()), 0o644)
	}
}

// anonymous replaces the path of this tree by another of its length.
func anonymous(trace []byte) []byte {
	root, _ := filepath.Abs("../../..")
	wide := func(s string) (b []byte) {
		for _, c := range utf16.Encode([]rune(s)) {
			b = append(b, byte(c), byte(c>>8))
		}
		return b
	}
	return bytes.ReplaceAll(trace, wide(root), wide("/"+strings.Repeat("x", len(root)-1)))
}

func latest(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Max(d)
}

func TestLiveStart(t *testing.T) {
	for _, p := range programs {
		t.Run(p.runtime, func(t *testing.T) {
			s := atStart(t, p.start(t, everything))
			s.check(t, 38)
			expect.True(t, len(s.late) >= 36, "%d waits were printed as they ended", len(s.late))
		})
	}
}

// TestLiveAttach: all methods were compiled before we came.
func TestLiveAttach(t *testing.T) {
	for _, p := range programs {
		t.Run(p.runtime, func(t *testing.T) {
			attached(t,
				p.start(t, everything, "pause"), normal).check(t, 38)
		})
	}
}

// TestLiveExample: an owner has a mutex for three seconds. Each wait for it is
// there once, its duration within 10 ms of the program's own clock, and its stack
// ends in the thread's method.
func TestLiveExample(t *testing.T) {
	s := atStart(t, program(t, "example"))
	truth, _ := waittruth.Lines(bytes.NewReader(s.out.Bytes()))
	r := s.check(t, 3)
	must.Equal(t, len(r.Matched), 3, "waits")
	for i, w := range r.Matched {
		own := time.Duration(truth[i].After - truth[i].Before)
		if diff := own - time.Duration(w.Nanos); diff < 0 || diff > 10*time.Millisecond {
			t.Errorf("%v, the program says %v", time.Duration(w.Nanos), own)
		}
		frames := s.a.Frames(w.Stack, w.Start)
		expect.True(t, frames[0].Name == "System.Threading.WaitHandle.WaitOneNoCheck" &&
			frames[1].Name == "Waits.Waiter" &&
			strings.HasPrefix(frames[len(frames)-1].Name, "Waits+<RunExample>"), "%v", frames)
		t.Logf("%v, the program says %v", time.Duration(w.Nanos), own)
	}
}

// TestLiveKilled: the process dies in the middle. What was seen stands.
func TestLiveKilled(t *testing.T) {
	cmd := program(t, "mutex,open,example", "pause")
	s := attached(t, cmd, func(s *seen, in io.Writer, c *diagnostics.Client, read func(string)) {
		done := make(chan error, 1)
		opt, began := s.options(), make(chan struct{})
		opt.Began = func() { close(began) }
		go func() { done <- session.Run(context.Background(), c, s.a, opt) }()
		select {
		case <-began:
		case <-time.After(30 * time.Second):
		}
		io.WriteString(in, "go\n")
		time.Sleep(1500 * time.Millisecond)
		cmd.Process.Kill()
		s.err = <-done
	})
	expect.True(t, s.err != nil && len(s.a.Partial()) > 0, "%v, %v", s.err, s.a.Partial())
	complete, open := 0, 0
	for i := range s.a.Waits {
		switch w := &s.a.Waits[i]; w.State {
		case waits.Complete:
			complete++
		case waits.StillOpen:
			open++
		}
	}
	expect.True(t, complete != 0 && open != 0,
		"%d waits that ended, %d still open; %v", complete, open, s.a.Partial())
	t.Logf("%d waits that ended, %d still open: %v", complete, open, s.a.Partial())
}

// TestLiveOpen: a wait that does not end is a lower bound, in a session that is
// stopped and in one that ends with the program.
func TestLiveOpen(t *testing.T) {
	s := atStart(t, program(t, "open"))
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		frames := s.a.Frames(w.Stack, w.Start)
		if w.State == waits.StillOpen && len(frames) > 1 && frames[1].Name == "Waits.WaitEvent" &&
			w.Nanos > int64(150*time.Millisecond) {
			return
		}
	}
	t.Errorf("not found among %d waits; %v", len(s.a.Waits), s.err)
}

// TestLiveNet10: on .NET 10 a single-file program from its start: sessions begin
// with the newest command, and every managed frame has a name.
func TestLiveNet10(t *testing.T) {
	cmd := exec.Command(needs.File(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp"), "tools", "list")
	t.Setenv("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
	s := atStart(t, cmd)
	frames, unnamed := 0, 0
	for i := range s.a.Waits {
		for _, f := range s.a.Frames(s.a.Waits[i].Stack, s.a.Waits[i].Start) {
			if frames++; !f.Named &&
				f.Module != "azmcp" { // code of the runtime's own, which is in the program, without symbols
				unnamed++
			}
		}
	}
	expect.True(t, s.err == nil && len(s.a.Waits) > 0 && frames != 0 && unnamed == 0 &&
		s.a.Names.Runtime.Version[0] == 10,
		"%v: %d waits, %d of %d frames unnamed, %v", s.err, len(s.a.Waits), unnamed, frames,
		s.a.Names.Runtime.Version)
	t.Logf("%d waits, %d frames, %d unnamed; native frames: %+v", len(s.a.Waits), frames, unnamed, s.native)
}

// The process has the number by which it was found, also if its runtime knows another one.
func TestProcessNumber(t *testing.T) {
	c := diagnostics.NewClient(77, func() (io.ReadWriteCloser, error) { return nil, io.ErrClosedPipe })
	a := waits.New()
	a.Trace.ProcessID = 1
	err := session.Run(context.Background(), c, a, session.Options{})
	expect.True(t, err != nil && a.Trace.ProcessID == 77, "%v, process %d", err, a.Trace.ProcessID)
}

// TestNothingListens: a process without a runtime is refused in words.
func TestNothingListens(t *testing.T) {
	_, err := diagnostics.Process(os.Getpid())
	expect.True(t, err != nil && strings.Contains(err.Error(), "no diagnostics port"), "%v", err)
}

package stopped

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// program is a running program of testdata. bursts knows the exact CPU time of its functions.
type program struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
	exe string
}

func start(t *testing.T, name string) *program {
	t.Helper()
	gcc := needs.Command(t, "gcc")
	b := &program{exe: filepath.Join(tempdir.New(t), name)}
	must.Run(t, exec.Command(gcc, "-O1", "-no-pie", "-pthread", "-o", b.exe, "testdata/"+name+".c"))
	b.cmd = exec.Command(b.exe)
	in, err1 := b.cmd.StdinPipe()
	out, err2 := b.cmd.StdoutPipe()
	must.Do(t, errors.Join(err1, err2, b.cmd.Start()))
	t.Cleanup(func() { b.cmd.Process.Kill(); b.cmd.Wait() })
	b.in, b.out = in, bufio.NewReader(out)
	line, err := b.out.ReadString('\n')
	must.True(t, err == nil && line == "ready\n", "%q %v", line, err)
	return b
}

// end ends the program, and returns the share of its time that burst_a took.
func (b *program) end(t *testing.T) float64 {
	t.Helper()
	b.in.Close()
	var first, second float64
	_, err := fmt.Fscan(b.out, &first, &second)
	must.Do(t, err)
	return first / (first + second)
}

// symbols returns the address ranges of functions of the program.
func (b *program) symbols(t *testing.T, names ...string) (ranges [][2]uint64) {
	t.Helper()
	f := must.Get(elf.Open(b.exe))(t)
	defer f.Close()
	all, _ := f.Symbols()
	for _, name := range names {
		for _, s := range all {
			if s.Name == name {
				ranges = append(ranges, [2]uint64{s.Value, s.Value + s.Size})
			}
		}
	}
	must.Equal(t, len(ranges), len(names), "%v are not all there", names)
	return ranges
}

// recording holds the messages of a Stopper.
type recording struct {
	samples []*wire.Sample
	usage   map[uint64]*wire.Usage
	notes   []string
}

func readRecording(t *testing.T, b []byte) (out recording) {
	t.Helper()
	out.usage = map[uint64]*wire.Usage{}
	r := wire.NewReader(bytes.NewReader(b))
	for {
		m, err := r.Next()
		if err != nil {
			return out
		}
		switch m := m.(type) {
		case *wire.Sample:
			out.samples = append(out.samples, m)
		case *wire.Usage:
			out.usage[m.TID] = m
		case *wire.Note:
			out.notes = append(out.notes, m.Text)
		}
	}
}

// needPerf skips a test where the kernel permits no perf events.
func needPerf(t *testing.T, b *program) {
	t.Helper()
	if s, err := cpuring.New(cpuring.Config{PID: b.cmd.Process.Pid, Period: 1e6,
		Stack: 1 << 12}); errors.Is(err, perfevent.ErrRefused) {
		t.Skip("SKIPPED-CHECK: the kernel permits no perf events here, so their samples were not compared with an exact clock")
	} else if err != nil {
		t.Fatal(err)
	} else {
		s.Close()
	}
}

// A program works in bursts that are as long as the sampling period. Its sampled shares of CPU time
// equal those of an exact clock in the program.
func TestOutsideBursts(t *testing.T) {
	b := start(t, "bursts")
	needPerf(t, b)
	var sent bytes.Buffer
	e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 1000, NoWall: true}, &sent))(t)
	time.AfterFunc(4*time.Second, e.Stop)
	e.Run()
	want := b.end(t)
	got := readRecording(t, sent.Bytes())
	ranges := b.symbols(t, "burst_a", "burst_b")
	hits := countHits(got.samples, ranges)
	n := hits[0] + hits[1]
	if n < 200 {
		t.Skipf("SKIPPED-CHECK: the machine let the program run for %.0f samples only, which say nothing of shares", n)
	}
	share := hits[0] / n
	most := 0.05 + 3*math.Sqrt(want*(1-want)/n)
	t.Logf("burst_a: %.1f %% of %.0f samples, exactly %.1f %%", 100*share, n, 100*want)
	expect.True(t, math.Abs(share-want) <= most, "more than %.1f points apart; %v", 100*most, got.notes)
	process := got.usage[wire.ProcessTID]
	expect.True(t, process != nil && process.CPUNanos != 0 && len(got.usage) >= 3,
		"the CPU time is not accounted for: %v", got.usage)
}

// countHits counts samples of CPU time by the first range that holds one of their frames.
func countHits(samples []*wire.Sample, ranges [][2]uint64) []float64 {
	hits := make([]float64, len(ranges))
	for _, s := range samples {
		if s.CPUNanos == 0 {
			continue
		}
		for i, r := range ranges {
			if inRange(s.Frames, r) {
				hits[i]++
				break
			}
		}
	}
	return hits
}

func inRange(frames []wire.Frame, r [2]uint64) bool {
	for i := range frames {
		if ip := frames[i].IP; ip >= r[0] && ip < r[1] {
			return true
		}
	}
	return false
}

// The kernel's copy of a stack ends before a page that does not exist yet. Stacks above such a page are read
// from the process.
func TestOutsideSparseStack(t *testing.T) {
	b := start(t, "sparse")
	needPerf(t, b)
	var sent bytes.Buffer
	e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 500, NoWall: true}, &sent))(t)
	time.AfterFunc(2*time.Second, e.Stop)
	e.Run()
	got := readRecording(t, sent.Bytes())
	work, whole := b.symbols(t, "work", "main"), 0.0
	for _, s := range got.samples {
		if hits := countHits([]*wire.Sample{s}, work[1:]); merge.Gap(s.Gap) == merge.GapNone {
			whole += hits[0]
		}
	}
	all := countHits(got.samples, work[:1])[0]
	t.Logf("%.0f of %.0f samples in work are whole, %d without a place", whole, all, e.Stats.Uncopied)
	expect.True(t, whole >= 20 && float64(e.Stats.Uncopied) <= whole/10, "%d dropped", e.Stats.Uncopied)
}

// A process that has ended is not called one whose perf events are refused, or whose threads are hidden.
func TestEndedAtOnce(t *testing.T) {
	b := start(t, "bursts")
	needPerf(t, b)
	var sent bytes.Buffer
	e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 100}, &sent))(t)
	b.cmd.Process.Kill()
	for !procstat.Read(b.cmd.Process.Pid).Ended() {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(100*time.Millisecond, e.Stop)
	e.Run()
	notes := readRecording(t, sent.Bytes()).notes
	expect.True(t, len(notes) == 0 && e.denied == 0, "%v, %d threads are hidden", notes, e.denied)
}

// Many threads that must be stopped delay the next round. The rings are read between two stops, before they
// are full.
func TestRingsBetweenStops(t *testing.T) {
	b := start(t, "bursts")
	needPerf(t, b)
	e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 1000, NoWall: true}, io.Discard))(t)
	defer e.Close()
	e.Open()
	e.Base.Refresh()
	e.openRings()
	e.stoppedOne(live.Stop{TID: 1})
	must.Equal(t, e.Stats.Timed, 0, "samples of rings that do not fill up")
	for limit := time.Now().Add(time.Minute); !e.rings.Filling(); time.Sleep(time.Millisecond) {
		must.True(t, time.Now().Before(limit), "the rings do not fill up")
	}
	e.stoppedOne(live.Stop{TID: 1})
	expect.True(t, e.Stats.Timed > 0 && !e.rings.Filling() && e.rings.Lost() == 0, "%d samples, %d lost",
		e.Stats.Timed, e.rings.Lost())
}

// Once Stop was called, no more threads are stopped: there may be thousands.
func TestStopEndsRound(t *testing.T) {
	b := start(t, "bursts")
	for _, want := range []bool{true, false} {
		e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 100}, io.Discard))(t)
		e.Stopped.Store(!want)
		must.Do(t, e.round())
		expect.Equal(t, e.stops > 0, want, "%d threads were stopped", e.stops)
		e.Close()
	}
}

// All CPU time of the process since the recording began is that of its threads, although it took long to
// read the mappings first.
func TestOutsideFromBegin(t *testing.T) {
	b := start(t, "bursts")
	needPerf(t, b)
	var sent bytes.Buffer
	e := must.Get(New(b.cmd.Process.Pid, sampler.Config{RateHz: 500, NoWall: true}, &sent))(t)
	refresh := e.Base.Refresh
	slowly := sync.OnceFunc(func() { time.Sleep(time.Second) })
	e.Base.Refresh = func() bool { slowly(); return refresh() }
	time.AfterFunc(1500*time.Millisecond, e.Stop)
	e.Run()
	var all, threads uint64
	for tid, u := range readRecording(t, sent.Bytes()).usage {
		if tid == wire.ProcessTID {
			all = u.CPUNanos
		} else {
			threads += u.CPUNanos
		}
	}
	expect.True(t, all > 0 && threads >= all*9/10, "%d of %d ns are of threads", threads, all)
}

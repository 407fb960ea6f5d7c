package paused

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

var reported = flag.Int("reported", 1500,
	"how many answers of DoStackSnapshot are compared with our own walks")

// The CLR and seedwalk walk the same copy of a suspended thread's stack. Each frame that the CLR lists is in
// seedwalk's stack, in the same order. The CLR lists no stubs, no methods without metadata, and no frames of
// exception handling.
func TestReported(t *testing.T) {
	seconds := strconv.Itoa(8 + *reported/100)
	t.Run("net9", func(t *testing.T) {
		testReported(t, needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
			needs.File(t, "out", "samples", "Truth.exe"), seconds)
	})
	t.Run("net10", func(t *testing.T) {
		testReported(t, "/usr/bin/env", "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1",
			needs.File(t, "out", "samples", "Truth10"), seconds)
	})
}

func testReported(t *testing.T, argv ...string) {
	c := reportedBy(t, argv...)
	t.Logf("%d stacks, %d frames of the CLR, all found in ours: %d; gaps of ours %v, not whole in the CLR's own answer %d",
		c.stacks, c.frames, c.found, c.gaps, c.refused)
	lost := 0
	for _, n := range c.gaps {
		lost += n
	}
	expect.True(t, c.stacks >= *reported && c.found == c.frames && lost*100 <= c.stacks,
		"%d stacks, %d of %d frames found, %d gaps", c.stacks, c.found, c.frames, lost)
}

// comparison counts frames.
type comparison struct {
	stacks, frames, found, refused int
	gaps                           map[merge.Gap]int
}

func reportedBy(t *testing.T, argv ...string) *comparison {
	dir := tempdir.New(t)
	pipe, pidFile := filepath.Join(dir, "raw"), filepath.Join(dir, "pid")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.Command(needs.File(t, "out", "bin", "seedwalk"),
		append([]string{"record", "--mode", "snapshot", "--rate", "100", "--raw", pipe, "--pid-file", pidFile,
			"--output", filepath.Join(dir, "out.json"), "--"}, argv...)...)
	must.Do(t, cmd.Start())
	stop := time.AfterFunc(2*time.Minute+time.Duration(*reported)*20*time.Millisecond,
		func() { cmd.Process.Kill() })
	defer func() { stop.Stop(); cmd.Process.Signal(os.Interrupt); cmd.Wait() }()
	f, err := os.Open(pipe) // waits for the writer
	must.Do(t, err)
	defer f.Close()
	rd := must.Get(raw.NewReader(f))(t)
	b := must.Get(os.ReadFile(pidFile))(t)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(b))))(t)
	c := &comparison{gaps: map[merge.Gap]int{}}
	j := judgeOf(t, pid)
	for c.stacks < *reported {
		s, err := rd.Next()
		if err == io.EOF {
			break
		}
		must.Do(t, err)
		if !s.Capture.Result.Failed() && !s.Capture.Full && s.Capture.Status == clr.Captured {
			j.compare(t, c, s)
		}
	}
	go io.Copy(io.Discard, f)
	return c
}

// judge walks from outside what the library inside the process has copied.
type judge struct {
	pid int
	t   *target.Process
	w   *walk.Walker
}

func judgeOf(t *testing.T, pid int) *judge {
	t.Helper()
	tg, mem, err := target.Open(pid, context.ArchAMD64)
	must.Do(t, err)
	t.Cleanup(func() { mem.Close() })
	j := &judge{pid: pid, t: tg, w: walk.New(context.ArchAMD64)}
	j.refresh(t)
	return j
}

func (j *judge) refresh(t *testing.T) {
	maps, err := live.Maps(j.pid)
	if err != nil && len(maps) == 0 {
		t.Fatal(err)
	}
	j.t.Set(maps)
	j.w.Unmanaged.SetTable(j.t.Table)
	if j.t.Tables != nil {
		j.w.Code = walk.CodeOf(j.t.Tables, j.t.Steps)
		if j.w.HijackStub == 0 {
			j.w.SetStubs(j.t.Stubs())
		}
	}
}

func (j *judge) compare(t *testing.T, c *comparison, s *raw.Sample) {
	k := walk.Capture{Regs: s.Capture.Regs, Stack: s.Capture.Stack, Low: s.Capture.Thread.StackLow,
		High: s.Capture.Thread.StackHigh,
		Cut:  s.Capture.Truncated}
	if s.Capture.Regs.Arch != context.ArchAMD64 {
		return
	}
	j.t.Verify()
	if j.t.Tables == nil || !j.t.Tables.Proven() {
		j.refresh(t)
		return
	}
	frames, gap, _ := j.w.Walk(&k)
	if gap != merge.GapNone {
		j.refresh(t)
		frames, gap, _ = j.w.Walk(&k)
	}
	c.stacks++
	if gap != merge.GapNone {
		if c.gaps[gap]++; c.gaps[gap] < 3 {
			t.Logf("%v after %d frames, at %#x", gap, len(frames), frames[len(frames)-1].SP)
		}
		return
	}
	at := 0
	for _, want := range s.Capture.Frames {
		if want.Function == 0 {
			continue
		}
		c.frames++
		i := at
		for i < len(frames) && !j.same(&frames[i], &want) {
			i++
		}
		if i == len(frames) {
			t.Errorf("thread %d: the CLR's frame %#x of method %#x, sp %#x, fp %#x is not in ours",
				s.Capture.Thread.TID, want.IP, want.Function, want.SP, want.FP)
			continue
		}
		c.found++
		at = i + 1
	}
}

// same reports whether a frame of ours equals the CLR's: the same place in the same method, as far as jitted
// code identifies its method. The ip may differ slightly, and next to an inlined native call also the sp.
func (j *judge) same(f *merge.Frame, want *clr.SnapshotFrame) bool {
	if f.Function == 0 || f.SP != want.SP && f.FP != want.FP {
		return false
	}
	var m contract.Method
	if j.t.Tables.Find(f.IP, &m) != contract.Found {
		return false
	}
	return m.MethodDesc == 0 || clr.FunctionID(m.MethodDesc) == want.Function
}

package capture

import (
	"bufio"
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

const secret = "the secret of the environment"

// A waiting process is captured once, completely, without its environment, together with the process that it
// has started.
func TestTake(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & echo ready; wait")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "KEPT_TO_ITSELF=" + secret}
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	pid := cmd.Process.Pid
	defer func() {
		for _, p := range family(pid)[1:] {
			_ = exec.Command("kill", "-9", strconv.Itoa(p)).Run()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	must.True(t, err == nil && strings.TrimSpace(line) == "ready", "%v %v", line, err)
	taker := NewTaker(100, 1<<20)
	for range 200 {
		taker.Round(pid)
	}
	if taker.Refused != nil {
		t.Skip("SKIPPED-CHECK: this machine lets no process be looked at: ", taker.Refused)
	}
	f := &taker.File
	last := func() unwind.Result { return walked(f, &f.Stacks[len(f.Stacks)-1]) }
	// A process that has just started is not waiting yet.
	for end := time.Now().Add(20 * time.Second); len(f.Stacks) < 2 || !whole(last()); taker.Round(pid) {
		must.True(t, !time.Now().After(end),
			"%d stacks, and none of a waiting process that is whole and the last", len(f.Stacks))
		time.Sleep(10 * time.Millisecond)
	}
	n := len(f.Stacks)
	expect.True(t, n >= 2 && n <= 20, "%d stacks of two processes that wait", n)
	expect.True(t, len(taker.processes) >= 2, "%d processes, of a shell and a sleep", len(taker.processes))
	b := f.encode()
	expect.True(t, !bytes.Contains(b, []byte(secret)), "the environment is in the file")
	_, err = decode(b)
	expect.Equal(t, err, nil)
}

// whole reports whether a walk reached the end of a waiting process's stack.
func whole(r unwind.Result) bool { return r.Stop == unwind.EndOfStack && r.N >= 3 }

func walked(f *File, s *Stack) unwind.Result {
	w := walker.New(context.ArchAMD64)
	w.SetTable(f.Table(s.Set))
	regs := context.FromAMD64(s.Regs)
	at := unwind.Interrupted(&regs)
	var frames [256]unwind.Frame
	return w.Walk(&at, memory.New(s.Runs...), nil, frames[:])
}

func TestBlank(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end uint64
		want       string
	}{
		{"inside", 0x1002, 0x1004, "ab\x00\x00ef"},
		{"over the end", 0x1004, 0x2000, "abcd\x00\x00"},
		{"over the beginning", 0, 0x1001, "\x00bcdef"},
		{"elsewhere", 0x2000, 0x3000, "abcdef"},
		{"nothing", 0, 0, "abcdef"},
		{"turned round", 0x1004, 0x1002, "abcdef"},
	} {
		run := memory.Run{Addr: 0x1000, Data: []byte("abcdef")}
		blank(run, memory.Range{Start: c.start, End: c.end})
		expect.Equal(t, string(run.Data), c.want, "%s: %q", c.name, run.Data)
	}
}

// A child that ends before it is inspected is no reason to end a capture; a program that is not there is.
func TestEndedChild(t *testing.T) {
	cmd := exec.Command("true")
	must.Do(t, cmd.Run())
	for _, child := range []bool{true, false} {
		taker := NewTaker(1, 1<<10)
		taker.capture(cmd.Process.Pid, child)
		expect.Equal(t, taker.Refused == nil, child)
	}
}

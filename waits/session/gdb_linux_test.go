//go:build amd64

package session_test

import (
	"context"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/diagnostics"
	"github.com/seedwalk/seedwalk/waits"
	"github.com/seedwalk/seedwalk/waits/blocked"
	"github.com/seedwalk/seedwalk/waits/session"
)

var (
	gdbThread  = regexp.MustCompile(`^[^\n]*\(LWP (\d+)\)`)
	gdbAddress = regexp.MustCompile(`(?m)^#\d+ +(0x[0-9a-f]+)`)
)

// gdbStacks are every thread's addresses, leaf first. Without debug information: with it
// gdb shows frames that are on no stack, of inlined functions and tail calls.
func gdbStacks(t *testing.T, gdb string, pid int) map[uint64][]uint64 {
	t.Helper()
	out, err := exec.Command(gdb, "-nx", "-batch", "-iex", "set debug-file-directory /nowhere", "-ex", "set pagination off", "-ex", "set debuginfod enabled off", "-ex", "set print frame-info location-and-address",
		"-ex", "thread apply all bt 40", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Skipf("SKIPPED-CHECK: gdb may not look: %v", err)
	}
	stacks := map[uint64][]uint64{}
	for part := range strings.SplitSeq(string(out), "\nThread ") {
		m := gdbThread.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		tid, _ := strconv.ParseUint(m[1], 10, 64)
		for _, a := range gdbAddress.FindAllStringSubmatch(part, -1) {
			addr, _ := strconv.ParseUint(a[1], 0, 64)
			stacks[tid] = append(stacks[tid], addr)
		}
	}
	return stacks
}

// TestLiveGDB: of every thread that waits while gdb looks, the native frames above the
// managed leaf are gdb's, address by address.
func TestLiveGDB(t *testing.T) {
	gdb, err := exec.LookPath("gdb")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no gdb")
	}
	var stacks map[uint64][]uint64
	cmd := program(t, "blocked", "pause")
	s := attached(t, cmd, func(s *seen, in io.Writer, c *diagnostics.Client, read func(string)) {
		b, err := blocked.New(c.PID, 50*time.Millisecond, s.a)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		opt, began := s.options(), make(chan struct{})
		opt.Blocked, opt.Began = b, func() { close(began) }
		go func() { done <- session.Run(ctx, c, s.a, opt) }()
		select {
		case <-began:
		case <-time.After(30 * time.Second):
		}
		io.WriteString(in, "go\n")
		read("done")
		time.Sleep(500 * time.Millisecond) // those that stay open have been looked at
		stacks = gdbStacks(t, gdb, c.PID)
		stop()
		s.err = <-done
		s.native = b.Close()
		io.WriteString(in, "end\n")
		read("")
	})
	threads, frames := 0, 0
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		leaves := s.a.Leaves(w.Native, w.Start)
		if w.State != waits.StillOpen || len(leaves) == 0 {
			continue
		}
		threads++
		theirs := stacks[w.Thread]
		if len(theirs) < len(leaves) {
			t.Errorf("thread %d: gdb has %d frames, we %d native ones", w.Thread, len(theirs), len(leaves))
			continue
		}
		for j, f := range leaves {
			if frames++; f.Addr != theirs[j] {
				t.Errorf("thread %d, frame %d: %#x %s, gdb has %#x", w.Thread, j, f.Addr, f.Name, theirs[j])
			}
		}
	}
	t.Logf("%d native frames of %d threads that wait are gdb's; %+v", frames, threads, s.native)
	if threads < 10 { // one for each way to wait, and the holder of what two wait for
		t.Errorf("only %d threads were compared, %+v, %v", threads, s.native, s.err)
	}
}

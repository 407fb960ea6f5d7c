//go:build amd64

package session_test

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/sample/blocked"
	"github.com/seedwalk/seedwalk/testkit/gdb"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// TestLiveGDB: for each thread that waits while gdb reads it, the native frames above the managed leaf have
// the addresses that gdb reports.
func TestLiveGDB(t *testing.T) {
	for _, p := range programs {
		t.Run(p.runtime, func(t *testing.T) { liveGDB(t, p.start(t, "blocked", "pause")) })
	}
}

func liveGDB(t *testing.T, cmd *exec.Cmd) {
	var stacks map[uint64][]uint64
	s := attached(t, cmd, func(s *seen, in io.Writer, c *diagnostics.Client, read func(string)) {
		b := must.Get(blocked.New(c.PID, 50*time.Millisecond, s.a))(t)
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
		stacks = gdb.Stacks(t, c.PID)
		stop()
		s.err = <-done
		s.native = b.Close()
		io.WriteString(in, "end\n")
		read("")
	})
	threads, frames, without := 0, 0, 0
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		leaves := s.a.Leaves(w.Native, w.Start)
		if w.State != waits.StillOpen || waits.Idle(s.a.Frames(w.Stack, w.Start)) {
			continue
		}
		if len(leaves) == 0 {
			without++
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
	t.Logf("%d native frames of %d waiting threads equal those of gdb; %+v", frames, threads, s.native)
	// One thread for each way to wait, and the owner of a lock for which two threads wait. On a loaded
	// machine, one of them may be about to run.
	if n := s.native; threads < 10 || without > int(n.Ran+n.Late) {
		t.Errorf("%d threads were compared, %d more wait, %+v, %v", threads, without, n, s.err)
	}
}

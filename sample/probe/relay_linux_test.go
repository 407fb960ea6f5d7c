package probe

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// blockedBy returns the signals that a process's first thread blocks.
func blockedBy(t *testing.T, pid int) uint64 {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status")))(t)
	return must.Get(strconv.ParseUint(regexp.MustCompile(`SigBlk:\s*(\S+)`).FindStringSubmatch(string(b))[1], 16, 64))(t)
}

// startFaults starts testdata/faults.c and returns a function that sends a line and returns the answer.
func startFaults(t *testing.T) (r *target, tell func(what string) string) {
	t.Helper()
	r = startTarget(t, compiled(t, "faults"), built(t, "gcc"), 0, 0)
	said := func() string {
		must.True(t, r.lines.Scan(), "it says nothing: %v", r.lines.Err())
		return r.lines.Text()
	}
	must.Equal(t, said(), "ready", "it says")
	return r, func(what string) string {
		r.in.Write([]byte(what + "\n"))
		return said()
	}
}

func answered(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(time.Millisecond) {
		must.True(t, time.Since(begin) <= 20*time.Second, "no answer: %s", what)
	}
}

// A handler that never returns leaves our signals blocked, so they do not reach the thread. The runtime's own
// signal does, and unblocks them; the runtime still gets its own. At the end its handler is restored, unless
// a signal of ours may still be pending.
func TestRelay(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  uint32 // signals that were sent and never arrived
		after string
	}{
		{"all came", 0, "came 2, own 1"},
		{"one is under way", 1, "came 2, own 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, tell := startFaults(t)
			defer r.f.beating()()
			pid := r.cmd.Process.Pid
			if _, left := r.f.Relay(blockedBy(t, pid)); left {
				t.Fatal("before any fault the thread is said to be left")
			}
			expect.Equal(t, tell("f"), "came 0, own 0", "after a fault")
			blocked := blockedBy(t, pid)
			relay, left := r.f.Relay(blocked)
			if legacy, _ := r.f.Signals(); !left || relay != 34 || blocked&(1<<(legacy-1)) == 0 {
				t.Fatalf("the thread blocks %#x, relay %d, %v", blocked, relay, left)
			}
			slot := must.Get(r.f.Slot(uint32(pid)))(t)
			ask := func() {
				must.Do(t, r.f.Ask(slot, OpSample, relay))
				answered(t, "by the relay", func() bool { return r.f.Answered(slot) })
			}
			tell("b")
			ask()
			tell("u")
			expect.Equal(t, blockedBy(t, pid), blocked, "blocked while a fault is handled")
			ask()
			expect.Equal(t, tell("k"), "came 1, own 0", "the runtime's own signal")
			expect.Equal(t, blockedBy(t, pid), 0, "it still blocks")
			atomic.AddUint32(&r.f.h.relaySent, c.lost)
			must.Do(t, r.f.Ask(slot, OpLeave, int(unix.SIGURG)))
			answered(t, "leaving", r.f.Left)
			expect.Equal[error](t, r.f.Ask(slot, OpSample, relay), unix.ESRCH,
				"after the end a signal is sent")
			expect.Equal[error](t, r.f.signal(Reader{TID: r.f.slots[slot].tid, Signal: relay}), unix.ESRCH,
				"after the end a read is requested")
			expect.Equal(t, tell("k"), c.after, "afterwards")
		})
	}
}

// A mask that blocks anything but our signals is the program's own.
func TestRelayOfMasks(t *testing.T) {
	h := header{legacy: 23, realTime: 64, relay: 34}
	for _, c := range []struct {
		name    string
		blocked uint64
		left    bool
	}{
		{"nothing", 0, false}, {"one of ours", bit(23), true}, {"the other", bit(64), true},
		{"both", bit(23) | bit(64), true},
		{"a fault is being handled", bit(23) | bit(64) | bit(34) | bit(11), false},
		{"all", ^uint64(0), false}, {"another", bit(10), false},
	} {
		f := &File{reader: reader{h: &h}}
		sig, left := f.Relay(c.blocked)
		expect.True(t, left == c.left && sig == 34, "%s: %d %v", c.name, sig, left)
	}
	h.relay = 0
	_, left := (&File{reader: reader{h: &h}}).Relay(bit(23))
	expect.True(t, !left, "there is no relay")
}

// A process that exits waits, up to a second, while the tool holds samples that it cannot walk yet, and no
// longer; not at all if the tool is dead. Each step of the wait is a voluntary switch.
func TestExitHeld(t *testing.T) {
	t.Parallel()
	const steps = 1000
	for _, c := range []struct {
		name     string
		tool     func(f *File)
		held     bool
		switches int64 // at least, if held; at most, otherwise
	}{
		{"for a second", func(*File) {}, true, steps},
		{"until released", func(f *File) { time.Sleep(100 * time.Millisecond); f.Hold(false) }, true, 10},
		{"not", func(f *File) { f.Hold(false) }, false, steps / 2},
		{"by an ending recording", (*File).End, false, steps / 2},
		{"by a dead tool", func(f *File) { f.SetSilence(0) }, false, steps / 2},
	} {
		r, _ := startFaults(t)
		stop := func() {}
		if c.name == "by a dead tool" {
			r.f.Beat()
		} else {
			stop = r.f.beating()
		}
		if c.held {
			r.in.Close()
			c.tool(r.f)
		} else {
			c.tool(r.f)
			r.in.Close()
		}
		must.Do(t, r.cmd.Wait())
		stop()
		n := r.cmd.ProcessState.SysUsage().(*syscall.Rusage).Nvcsw
		expect.True(t, c.held == (n >= c.switches), "%s: %d switches", c.name, n)
		if c.name == "until released" {
			expect.True(t, n < steps, "%s: %d switches", c.name, n)
		}
	}
}

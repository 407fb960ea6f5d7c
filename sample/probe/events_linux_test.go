package probe

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The probe's handling of events, which testdata/runtime.c delivers. The restricted thread may only read a
// clock and a stack, so it never waits for another thread, even if the ring is full. The thread that
// initializes the probe starts the session, another one ends it, and only this provider's session is used. No
// other function of the profiling interface is called; no provider is added.
func TestEvents(t *testing.T) {
	r := startRuntime(t)
	f, lines := r.f, r.lines
	say := func(want string) {
		t.Helper()
		expect.True(t, lines.Scan() && lines.Text() == want, "it says %q, not %q", lines.Text(), want)
	}
	say("mask 0 80")
	say("start 1 c000000c001 5 0")
	say("initialize 0")
	say("started by the caller 1")
	stop := f.beating()
	lines.Scan()
	if s := lines.Text(); s == "delivered 2" {
		t.Skip("SKIPPED-CHECK: there is no seccomp here")
	} else if s != "delivered 1" {
		t.Fatalf("it says %q: a thread in a cooperative event asked the kernel for more than it may", s)
	}
	if n := f.Taken(); n < RingSize/2 || n > RingSize*3/4 {
		t.Errorf("allocations and exceptions take %d bytes of a ring of %d: the rest is for waits and samples", n, RingSize)
	}
	f.records(t)
	c := f.EventCounts()
	want := EventCounts{Waits: 4, WaitStops: 4, Locks: 2001, LockStops: 2001, Allocs: 6001, Exceptions: 2001,
		Brief: c.Brief, Inner: 1, Early: 1,
		BriefNanos: c.BriefNanos, Missed: c.Missed, Copies: c.Copies, Nanos: c.Nanos}
	expect.True(t, c == want && c.Missed != 0 && c.Brief >= 1900, "%+v\nwant %+v", c, want)
	f.dropped(t, c)
	open := 0
	f.Waiting(func(w Waiting) {
		open++
		expect.True(t, w.TID == uint32(r.cmd.Process.Pid) && w.Event == 301 && len(w.Payload) == 11 &&
			w.Payload[0] == 1, "%+v", w)
	})
	expect.True(t, open == 1, "%d waits are open", open)
	for i := range f.waits { // an entry that is being written is skipped
		atomic.StoreUint64(&f.waits[i].open[0].since, 0)
	}
	f.Waiting(func(w Waiting) { t.Errorf("half of a wait: %+v", w) })
	f.EndEvents()
	r.in.Write([]byte("\n"))
	say("shut down at once")
	say("stopped by another 1, detached 1, else 0")
	stop()
}

// startRuntime runs testdata/runtime.c.
func startRuntime(t *testing.T) *target {
	t.Helper()
	return startTarget(t, compiled(t, "runtime"), built(t, "gcc"),
		WaitEvents|LockEvents|AllocEvents|ExceptionEvents, 150*time.Millisecond)
}

// When the tool is gone, the process does not wait for it at its shutdown, and the probe's own thread ends
// the session.
func TestEventsToolGone(t *testing.T) {
	t.Parallel()
	r := startRuntime(t)
	for r.lines.Scan() && !strings.HasPrefix(r.lines.Text(), "delivered") {
	}
	r.f.Beat()
	time.Sleep(time.Second)
	r.f.SetSilence(time.Second / 4) // the probe's own thread is more patient
	r.in.Write([]byte("\n"))
	must.True(t, r.lines.Scan() && r.lines.Text() == "shut down at once", "it says %q", r.lines.Text())
	begin := time.Now()
	for state, _ := r.f.Session(); state != SessionEnded; state, _ = r.f.Session() {
		must.True(t, time.Since(begin) <= time.Minute, "the session goes on without a tool")
		time.Sleep(20 * time.Millisecond)
	}
	expect.True(t, r.lines.Scan() && r.lines.Text() == "stopped by another 1, detached 1, else 0",
		"it says %q", r.lines.Text())
}

// beating keeps the heartbeat current until stop is called. The file may be closed then.
func (f *File) beating() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				f.Beat()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// records checks the records of the first thread.
func (f *File) records(t *testing.T) {
	t.Helper()
	type seen struct {
		event   uint32
		learn   bool
		payload int
	}
	var got []seen
	f.Read(func(r *Record) {
		if r.TID != uint32(f.pid) {
			return
		}
		got = append(got, seen{r.Event, r.Flags&Learn != 0, len(r.Payload)})
		if r.Why != Event || len(r.Stack) == 0 || r.StackAddr != r.Regs[15] || r.Flags&^Learn != 0 {
			t.Errorf("event %d: why %d, %d bytes of stack at %#x, sp %#x, flags %#x", r.Event, r.Why,
				len(r.Stack), r.StackAddr, r.Regs[15], r.Flags)
		}
		if d := r.Time - r.Since; (r.Event == 302 || r.Event == 91) && r.Flags&Learn == 0 &&
			(d < 300e6 || d > 10e9) {
			t.Errorf("event %d lasted %d ns", r.Event, d)
		}
	})
	// The first event of each kind is copied for its stack. A long wait is copied with the payload of its
	// start. A wait inside a lock counts as the lock's.
	want := []seen{{301, true, 0}, {302, false, 11}, {81, true, 0}, {91, false, 27}, {10, false, MaxPayload},
		{80, false, 8}, {4711, true, 0}}
	expect.True(t, slices.Equal(got, want), "records are\n%v, want\n%v", got, want)
}

// dropped checks the sums of events for which the ring was full. The other events were read.
func (f *File) dropped(t *testing.T, c EventCounts) {
	t.Helper()
	got, missed := map[string]Dropped{}, uint64(0)
	f.Dropped(func(d Dropped) { got[d.Type], missed = d, missed+d.Count })
	expect.True(t, missed == c.Missed, "%d events are dropped by type, %d in all", missed, c.Missed)
	size := 5000.0
	weight := uint64(size / -math.Expm1(size*math.Log1p(-1.0/(100*1024))))
	// every other C is truncated
	for name, each := range map[string]uint64{"AB": 1000, "C": weight / 2, "x": 0} {
		d := got[name]
		if d.Count == 0 || d.Exception != (name == "x") ||
			math.Abs(float64(d.Bytes)-float64(each*d.Count)) > float64(each*(d.Count/500+2)) {
			t.Errorf("%s: %+v, each represents %d bytes", name, d, each)
		}
	}
	expect.Equal(t, len(got), 3, got)
}

// caughtBy returns the signals for which a process has handlers.
func caughtBy(t *testing.T, pid int) string {
	t.Helper()
	b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	return regexp.MustCompile(`SigCgt:\s*(\S+)`).FindStringSubmatch(string(b))[1]
}

// The end of a recording does not depend on one thread: the first thread that takes a signal restores the
// handlers, whether or not it was asked.
func TestEndByAnyThread(t *testing.T) {
	t.Parallel()
	r := startRuntime(t)
	defer r.f.beating()()
	for r.lines.Scan() && !strings.HasPrefix(r.lines.Text(), "delivered") {
	}
	pid := r.cmd.Process.Pid
	legacy, _ := r.f.Signals()
	held := caughtBy(t, pid)
	must.True(t, legacy == int(unix.SIGURG) && !r.f.Left(), "signal %d, left %v", legacy, r.f.Left())
	unix.Kill(pid, unix.SIGURG) // not from the tool: no effect
	for begin := time.Now(); r.f.Stats().Strangers == 0 && time.Since(begin) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	expect.True(t, !r.f.Left() && caughtBy(t, pid) == held, "a stranger's signal ends the recording")
	r.f.End()
	unix.Kill(pid, unix.SIGURG)
	for begin := time.Now(); !r.f.Left() && time.Since(begin) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if now := caughtBy(t, pid); !r.f.Left() || now == held {
		t.Errorf("left %v, handlers %s, %s while recording", r.f.Left(), now, held)
	}
}

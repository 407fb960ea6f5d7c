package probe

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A library may give its threads alternate stacks with little more room than the kernel needs. The handler
// runs there: without room for objects it leaves them out, and without room for a sample it takes none.
func TestSmallAlternateStack(t *testing.T) {
	for _, c := range []struct {
		name, thread string
		records      int
		dropped      uint64
	}{
		{"room for a sample", "s", 1, 0},
		{"room for less", "t", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, tell := startFaults(t)
			defer r.f.beating()()
			slot := must.Get(r.f.Slot(uint32(must.Get(strconv.Atoi(tell(c.thread)))(t))))(t)
			r.f.FollowObjects(1<<40, 1<<40, 0, 0)
			must.Do(t, r.f.Ask(slot, OpSample, int(unix.SIGURG)))
			answered(t, "on a small stack", func() bool { return r.f.Answered(slot) })
			records := 0
			r.f.Read(func(rec *Record) {
				records++
				expect.True(t, len(rec.Stack) > 0 && len(rec.Payload) == 0, "%d bytes, %d of objects",
					len(rec.Stack), len(rec.Payload))
			})
			expect.True(t, records == c.records && r.f.Stats().Dropped == c.dropped, "%d records, %+v",
				records, r.f.Stats())
		})
	}
}

// The alternate stack of a thread may be in one mapping with its own, with a guard page between them that is
// no mapping. A sample on the alternate stack does not touch that page.
func TestGuardInMapping(t *testing.T) {
	t.Parallel()
	r, tell := startFaults(t)
	defer r.f.beating()()
	tid := must.Get(strconv.Atoi(tell("m")))(t)
	if tid == 1 {
		t.Skip("SKIPPED-CHECK: the kernel has no guard pages inside of mappings")
	}
	slot := must.Get(r.f.Slot(uint32(tid)))(t)
	ask := func() (last Record) {
		must.Do(t, r.f.Ask(slot, OpSample, int(unix.SIGURG)))
		answered(t, "on an alternate stack", func() bool { return r.f.Answered(slot) })
		r.f.Read(func(rec *Record) { last = *rec })
		return last
	}
	first := ask()
	_, _, base := r.f.Armed(slot)
	for _, m := range must.Get(live.Maps(r.cmd.Process.Pid))(t) {
		if m.Start <= first.StackAddr && first.StackAddr < m.End {
			must.True(t, base < m.End, "the stack is not in the mapping of the alternate one")
			r.f.SetStack(slot, m.Start, base&^7) // as the engine does
		}
	}
	second := ask()
	expect.True(t, second.Flags&OnAlt != 0 && second.BelowAddr > second.StackAddr && len(second.Below) > 0,
		"flags %d, %d bytes at %#x, %d at %#x", second.Flags, len(second.Stack), second.StackAddr,
		len(second.Below), second.BelowAddr)
}

// A program that installs a handler of SIGURG during the recording keeps it.
func TestHandlerOfProgram(t *testing.T) {
	t.Parallel()
	r, tell := startFaults(t)
	defer r.f.beating()()
	expect.Equal(t, tell("q"), "came 0, own 0", "at first")
	tell("g")
	slot := must.Get(r.f.Slot(uint32(r.cmd.Process.Pid)))(t)
	_, realTime := r.f.Signals()
	must.Do(t, r.f.Ask(slot, OpLeave, realTime))
	answered(t, "leaving", r.f.Left)
	expect.Equal(t, tell("q"), "came 0, own 1", "after the recording")
}

// A heartbeat may come at any moment: the probe never takes a living tool for dead.
func TestHeartbeatAtAnyMoment(t *testing.T) {
	t.Parallel()
	r, tell := startFaults(t)
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				for range 1000 {
					r.f.Beat()
				}
			}
		}
	}()
	said := make(chan bool)
	go func() { tell("p"); close(said) }()
	answered(t, "to attempts to begin a recording", func() bool {
		select {
		case <-said:
			return true
		default:
			return r.f.Left()
		}
	})
	close(done)
	<-ended
	expect.True(t, !r.f.Left(), "the next recording has ended this one")
}

package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// cause returns why a thread has CPU time without samples.
func (e *Engine) cause(t *threads.Task, ended bool) uint8 {
	switch {
	case t.Weighed > 0 && !e.Ready():
		return wire.CauseUnproven
	case t.Slotless && t.Slot < 0:
		return wire.CauseTool
	case t.Armed || t.Event != nil:
		return wire.CauseNone
	case t.Blocks:
		return wire.CauseBlocked
	case ended:
		return wire.CauseShort
	}
	return wire.CauseTool
}

// account sends a thread's CPU time.
func (e *Engine) account(t *threads.Task, ended bool) {
	if e.Config.NoCPU || t.Accounted {
		return
	}
	e.leaveStarted(t.TID)
	if ended && t.Uncounted() && !e.alive() {
		e.ShareRest(e.ranSince - min(e.accounted, e.ranSince))
	}
	t.Accounted = true
	spent := t.SpentToEnd()
	if spent == 0 {
		return
	}
	e.accounted += spent
	kernel := min(t.KernelLost, spent)
	switch {
	case t.Stretched && e.kernelTime.Kernel:
	case t.Stretched:
		kernel = t.NotLocated(spent, e.Period)
	case t.Copied:
		kernel = min(kernel+e.kernelTime.Rings.InKernel(t.TID), spent)
	case !t.Blocks: // a blocked signal loses samples of user time
		kernel = min(kernel+t.InKernel(spent, t.Period(e.Period)), spent)
	}
	u := wire.Usage{TID: uint64(t.TID), CPUNanos: spent, Cause: e.cause(t, ended)}
	if u.Cause == wire.CauseNone {
		missing := spent - min(t.Weighed, spent)
		dropped := e.file.Stats().Dropped + e.kernelTime.Lost() + e.inStretches.Lost()
		noRoom := e.NoRoom(missing, dropped)
		kernel = min(kernel, t.KernelLost+missing-noRoom)
		e.sendMissed(&u, noRoom, wire.CauseNoRoom)
		if t.Blocks {
			missed := t.Missed(u.CPUNanos-kernel, sampler.LeastMissed*uint64(e.Period))
			e.sendMissed(&u, missed, wire.CauseBlocked)
		} else {
			missed := t.BetweenTicks(e.timerEach, e.cpuClock == sampler.ClockTimer)
			e.sendMissed(&u, min(missed, u.CPUNanos-kernel), wire.CauseTicks)
		}
	}
	u.KernelNanos = kernel
	e.Stream.Out.Usage(&u)
}

// sendMissed sends a part of a thread's CPU time as time without samples.
func (e *Engine) sendMissed(u *wire.Usage, nanos uint64, cause uint8) {
	if nanos > 0 {
		u.CPUNanos -= nanos
		e.Stream.Out.Usage(&wire.Usage{TID: u.TID, CPUNanos: nanos, Cause: cause})
	}
}

// settled is the CPU time, in nanoseconds, after which a new thread has its own signal mask: at first
// the C library blocks all signals.
const settled = 300_000

// fewMissed is how many samples of a thread are missing when its signal mask is checked again.
const fewMissed = 3

// noteBlocked restores the signals of a thread that blocks the signal of its samples, or switches the thread
// to copies. It checks the signal mask once after settled, and again when samples of its event are missing. A
// loss is attributed to the mask only if the signal is also pending.
func (e *Engine) noteBlocked(t *threads.Task) {
	spent := t.Spent()
	first := !t.Looked && spent > settled
	missing := t.Event != nil && spent >= t.Weighed+t.Excused+fewMissed*uint64(e.Period)
	if t.Copied || !first && !missing || e.signal() == 0 {
		return
	}
	t.Looked = t.Looked || first
	masks, ok := e.Kernel.Signals(t.TID)
	bit := uint64(1) << (e.signal() - 1)
	pending := masks.Pending&bit != 0
	switch {
	case !ok || masks.Blocked&bit == 0 || !first && !pending:
		t.Excused = spent - min(t.Weighed, spent)
	case e.unblock(t, masks.Blocked):
	default:
		if pending {
			t.Block()
		}
		e.useCopies(t)
	}
}

// tookSignal notes that a thread has taken the signal of its samples. If it has used less than LeastMissed
// periods since it was seen blocking the signal, its missing samples have another cause. The C library blocks
// all signals while it creates a thread; without a processor, that may last long. A thread that blocks the
// signal often, and for less than that each time, is not recognized.
func (e *Engine) tookSignal(t *threads.Task) {
	if !t.Blocks || e.kernelTime.All {
		return
	}
	c, ok := e.Kernel.Counters(t)
	if spent := c.Cpu - min(t.Base, c.Cpu); ok && spent < t.BlocksSince+sampler.LeastMissed*uint64(e.Period) {
		t.Blocks = false
	}
}

// unblockEvery is how often one thread's signals are unblocked. A thread with more faults gets copies.
const unblockEvery = time.Second

// unblock restores the signals that a fault has left blocked. It returns false if the thread blocks others
// too, or has had another fault a moment ago.
func (e *Engine) unblock(t *threads.Task, blocked uint64) bool {
	now := e.Nano(time.Now())
	if _, left := e.file.Relay(blocked); !left {
		return false
	}
	if now-t.UnblockedAt < int64(unblockEvery) { // the thread may not have taken the signal yet
		return t.Slot >= 0 && !e.file.Answered(t.Slot)
	}
	how := e.ask(t, probe.OpSample)
	if how == sent {
		t.UnblockedAt = now
	}
	return how != cannot
}

// accountAll sends every thread's CPU time, and the process's, at the recording's end.
func (e *Engine) accountAll() {
	e.accountProcess()
	for _, t := range e.Tasks {
		c, ok := e.Kernel.Counters(t)
		if ok {
			t.Last.Cpu = c.Cpu
			t.Read(t.Last)
		}
		e.account(t, !ok)
	}
	e.ranSent = wire.Usage{} // recordings that joined later do not know it
	e.accountProcess()
}

// missStart sends the CPU time that a command has used before its first sample.
func (e *Engine) missStart() {
	e.accounted += uint64(e.ranBefore)
	e.Stream.Out.Usage(&wire.Usage{TID: uint64(e.PID), CPUNanos: uint64(e.ranBefore),
		Cause: wire.CauseStartup})
	e.ranBefore = 0
}

// accountProcess sends the process's CPU time since sampling began. If the process is gone, its clock cannot
// be read any more. Then accountProcess uses the time that the tool read when the command ended. It never
// sends less than the sum over the threads, and nothing if neither has changed since the last message.
func (e *Engine) accountProcess() {
	if e.Config.NoCPU {
		return
	}
	ran, ok := e.Kernel.Ran()
	if !ok {
		ran, ok = e.Config.Start.Ran(e.PID)
	}
	if ok && e.ranBefore >= 0 {
		e.ranSince = max(e.ranSince, uint64(max(0, ran-e.ranBefore)))
	}
	cause := uint8(wire.CauseShort)
	if e.cpuClock.ByTool() { // each moment finds the new threads
		cause = wire.CauseNone
	}
	u := wire.Usage{TID: wire.ProcessTID, CPUNanos: max(e.ranSince, e.accounted), Cause: cause}
	if u != e.ranSent {
		e.ranSent = u
		e.Stream.Out.Usage(&u)
	}
}

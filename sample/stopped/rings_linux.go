package stopped

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// openRings makes the kernel sample the threads' CPU time. If the kernel refuses, threads are sampled
// when they are stopped, and a note reports it.
func (e *Stopper) openRings() {
	if e.Config.NoCPU || e.Target.Guest != nil {
		return
	}
	rings, err := cpuring.New(cpuring.Config{PID: e.PID, Period: uint64(e.Period), Stack: cpuring.StackCopy})
	if errors.Is(err, unix.ESRCH) {
		return // the process has ended
	}
	if err != nil {
		why := "the kernel permits no perf events of this process"
		if !errors.Is(err, perfevent.ErrRefused) {
			why = err.Error()
		}
		e.Stream.Out.Note("biased: " + why +
			", so the CPU time of a thread is charged to the stack at which it is stopped later")
		return
	}
	e.ReadsRest = e.readRest
	e.rings, e.sinceBoot = rings, time.Now().UnixNano()-int64(perfevent.Now())
	e.list(e.Nano(time.Now()))
	e.ranBefore = e.kernel.RanNow() // what runs earlier is not part of the recording
}

// sampleCPU makes the kernel sample a new thread.
func (e *Stopper) sampleCPU(t *threads.Task) {
	if e.rings == nil {
		return
	}
	err := e.rings.Add(t.TID)
	t.Armed = err == nil
	if errors.Is(err, perfevent.ErrLimit) && !e.limited {
		e.limited = true
		e.Stream.Out.Note("the limit of open files or of locked memory is reached: some threads have no CPU samples")
	}
}

// readRings handles the samples in the rings, and then accounts for threads that have ended.
func (e *Stopper) readRings() {
	if e.rings == nil {
		return
	}
	ended := e.rings.Ended()
	e.rings.Read(e.hit)
	for _, tid := range ended {
		e.account(tid)
	}
}

// relieveRings reads the rings before they are full. It is called after each stop of a thread: on a busy
// machine, a thread must wait for a CPU before it can stop, so the stops of one round may take seconds.
func (e *Stopper) relieveRings() {
	if e.rings != nil && e.rings.Filling() {
		e.readRings()
	}
}

// hit walks a sample of CPU time.
func (e *Stopper) hit(r *perfevent.Record) {
	regs, ok := r.Registers(e.Target.Arch)
	if !ok || len(r.Stack) == 0 {
		return
	}
	t := e.tasks[r.TID]
	if t == nil { // the thread is new, or has ended
		t = &threads.Task{TID: r.TID, Stat: -1, Place: -1}
	}
	c := walk.Capture{TID: r.TID, Regs: regs, Stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, Cut: r.Cut}
	e.readThread(&c)
	s := sampler.Sample{Capture: c, Time: int64(r.Time) + e.sinceBoot,
		Cpu: uint64(e.Period), Wall: t.Worked(e.Period)}
	if e.Config.NoWall {
		s.Wall = e.Period
	}
	e.Stats.Timed++
	if e.Hold(&s) {
		return
	}
	gap, _, ok := e.Base.Walk(&s.Capture)
	if !ok || e.HoldWalked(&s, gap) {
		return
	}
	if gap == merge.GapUnreadable { // a page of the stack was not resident when the kernel copied it
		e.Stats.Uncopied++
		return
	}
	t.Samples++
	e.SendAt(s.Time, s.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
	e.rings.Used(r.TID, e.Walker.Regs.SP()-regs.SP(), r.Cut &&
		(gap == merge.GapTruncated || len(s.Stack.Data) > len(r.Stack)))
}

// readRest stops the thread while it reads the part of a stack above the kernel's copy. The thread may have
// moved since the sample.
func (e *Stopper) readRest(c *walk.Capture) (read sampler.Rest) {
	live.StopEach([]int{int(c.TID)}, func(_ int, r *context.Registers, _ live.Stood) {
		if e.AddRest(c, r.SP()) {
			read = sampler.RestStopped
		}
	}, func(live.Stop) {})
	return read
}

// readThread reads the runtime's Thread if the runtime has replaced a return address on the stack of c.
// The Thread contains the place of that address, so an address that was replaced later is detected.
func (e *Stopper) readThread(c *walk.Capture) {
	if o := e.Target.Threads.Objects[c.TID]; o != 0 && e.Walker.Patched(&c.Stack) {
		c.Extra = e.Extra[:max(0, e.Target.Mem.ReadSome(e.Extra[:], o))]
	}
}

// account sends the exact CPU time of a thread that is no longer sampled.
func (e *Stopper) account(tid uint32) {
	n, ok := e.rings.Remove(tid)
	if !ok || n.Counted == 0 {
		return
	}
	e.accounted += n.Counted
	missing := n.Counted - min(n.Located, n.Counted)
	if noRoom := e.NoRoom(missing, e.rings.Lost()); noRoom > 0 {
		e.Stream.Out.Usage(&wire.Usage{TID: uint64(tid), CPUNanos: noRoom, Cause: wire.CauseNoRoom})
		n.Counted, missing = n.Counted-noRoom, missing-noRoom
	}
	e.Stream.Out.Usage(&wire.Usage{TID: uint64(tid), CPUNanos: n.Counted,
		KernelNanos: min(n.InKernel, missing)})
}

// endRings handles the last samples, and accounts for all CPU time since sampling began.
func (e *Stopper) endRings() {
	if e.rings == nil {
		return
	}
	e.readRings()
	for _, tid := range e.rings.Threads() {
		e.account(tid)
	}
	spent := e.accounted
	if ran, ok := e.kernel.Ran(); ok && e.ranBefore >= 0 {
		spent = max(spent, uint64(max(0, ran-e.ranBefore)))
	}
	e.Stream.Out.Usage(&wire.Usage{TID: wire.ProcessTID, CPUNanos: spent, Cause: wire.CauseShort})
}

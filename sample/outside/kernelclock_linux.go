package outside

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// kernelClock samples the processor time that threads use in the kernel. A signal there would interrupt a
// waiting system call, so the kernel copies registers and stack into a ring. If a thread blocks the signals
// of its samples, or the program takes them, kernelClock samples user time in the same way.
type kernelClock struct {
	rings     *cpuring.Sampler // nil: not open
	kernel    bool             // the kernel permits samples of itself
	tried     time.Time        // last attempt to open them; it fails if others hold the lockable memory
	sinceBoot int64            // added to a record's time to get Unix time, nanoseconds
	threads   int              // how many more threads may be added
	all       bool             // all threads are sampled by copies: SIGURG is taken, or stretches are in use
	short     bool             // the rings are those of stretches
	wake      bool             // each sample is to be read at once, for its async callers
}

// open opens the rings if the kernel permits samples of itself.
func (k *kernelClock) open(pid int, period int64) {
	if k.openRings(pid, period); k.rings == nil {
		k.kernel = false
		return
	}
	if k.kernel = k.rings.Add(uint32(pid)) == nil; !k.kernel {
		k.Close()
		k.tried = time.Time{}
	}
}

func (k *kernelClock) openRings(pid int, period int64) {
	if k.rings != nil || time.Since(k.tried) < time.Second {
		return
	}
	k.tried = time.Now()
	rings, err := cpuring.New(cpuring.Config{PID: pid, Period: uint64(period),
		Stack: cpuring.StackCopy, Kernel: true, Short: k.short, Wake: k.wake})
	if err != nil {
		return
	}
	k.rings, k.sinceBoot = rings, time.Now().UnixNano()-int64(perfevent.Now())
	k.threads = threads.MayOpen(4, mostWatching) / rings.FDs()
}

func (k *kernelClock) Close() {
	if k.rings != nil {
		k.rings.Close()
		k.rings = nil
	}
}

// add starts to sample a thread: its user time and kernel time if both is set, else its kernel time. It
// returns false if the kernel refuses or the limit of files is reached.
func (k *kernelClock) add(tid uint32, both bool) bool {
	if k.rings == nil || k.threads == 0 || !k.kernel && !both {
		return false
	}
	add := k.rings.Add
	if both {
		add = k.rings.AddBoth
	}
	err := add(tid)
	if errors.Is(err, perfevent.ErrLimit) {
		k.threads = 0
		return false
	}
	if err == nil {
		k.threads--
	}
	return err == nil
}

// remove ends the sampling of a thread.
func (k *kernelClock) remove(t *threads.Task) {
	if k.rings == nil || !t.KernelHits {
		return
	}
	t.KernelHits = false
	k.rings.Remove(t.TID)
	k.threads++
}

// mayCopy reports whether there is room for the copies of a number of threads, and for as many later ones.
func (k *kernelClock) mayCopy(n int) bool {
	return k.rings != nil && k.rings.Deep() && threads.MayOpen(4, mostWatching)/k.rings.FDs() >= 2*n
}

// copyAll switches all threads, and those that come later, to copies that the kernel makes. It returns false
// if the kernel refuses.
func (e *Engine) copyAll() bool {
	k, main := &e.kernelTime, uint32(e.PID)
	if k.openRings(e.PID, e.Period); k.rings == nil || !k.rings.Deep() || k.threads < 2*len(e.Tasks) {
		return false
	}
	if t := e.Tasks[main]; t != nil {
		k.remove(t)
		t.Copied = false // useCopies adds it again
	}
	k.rings.Remove(main)
	if k.rings.AddBoth(main) != nil {
		return false
	}
	k.rings.Remove(main)
	k.all = true
	for _, t := range e.Tasks {
		e.copyTaken(t)
	}
	return true
}

// copyTaken switches a thread to copies after the program has taken its signals. Timers are ended: they send
// the signal too.
func (e *Engine) copyTaken(t *threads.Task) {
	unanswered := t.Slot >= 0 && !e.file.Answered(t.Slot)
	if unanswered {
		t.Excused = 0
	}
	if t.SpentToEnd() >= t.Weighed+t.Excused+fewMissed*uint64(e.Period) {
		t.Block()
	}
	if t.Event == nil && t.Armed {
		t.Armed, t.IgnoresSignals = false, true
	}
	if e.useCopies(t); t.Event != nil && !t.Copied {
		e.closeEvent(t)
	}
}

// useCopies switches a thread that blocks its event's signal to copies that the kernel makes. From then on
// the event only counts. If the kernel refuses, the thread keeps its event.
func (e *Engine) useCopies(t *threads.Task) {
	if t.Copied || t.Event == nil {
		return
	}
	e.kernelTime.openRings(e.PID, e.Period)
	e.kernelTime.remove(t)
	if t.Copied = e.kernelTime.add(t.TID, true); t.Copied {
		t.KernelHits, t.Phase = true, threads.Full
		t.Event.SetPeriod(never)
		return
	}
	t.KernelHits = e.kernelTime.add(t.TID, false)
}

const (
	looksApart = int64(5e6) // nanoseconds between two looks at the signal mask of a copied thread, at least
	manyLooks  = 20         // looks in a row with the same result, after which endCopies acts
)

// endCopies gives a copied thread its signals back when it has not blocked them for some time. It unblocks
// signals that a fault has left blocked for some time. If a copy was too short (copies hold at most 64 KB of
// one stack), it does both at once.
func (e *Engine) endCopies(t *threads.Task, now int64, short bool) {
	if e.kernelTime.all || !short && now-t.LookedAt < max(e.Period, looksApart) {
		return
	}
	t.LookedAt = now
	masks, ok := e.Kernel.Signals(t.TID)
	if blocked := !ok || masks.Blocked&(uint64(1)<<(e.signal()-1)) != 0; blocked != t.StillBlocked {
		t.StillBlocked, t.Looks = blocked, 0
	}
	if t.Looks++; !short && t.Looks < manyLooks {
		return
	}
	if t.StillBlocked {
		t.Looks = 0
		if _, left := e.file.Relay(masks.Blocked); left {
			e.ask(t, probe.OpSample)
		} else if short && ok {
			t.Block()
		}
		return
	}
	if t.Event.SetPeriod(t.Period(e.Period)) != nil {
		return
	}
	e.kernelTime.remove(t)
	t.KernelHits = e.kernelTime.add(t.TID, false)
	n, _ := t.Event.Count()
	t.Copied, t.Looks = false, 0
	e.setPhase(t, threads.Full, 0, n)
	t.Excused = t.SpentToEnd() - min(t.Weighed, t.SpentToEnd())
}

// readKernel takes the copies from the rings.
func (e *Engine) readKernel() {
	if e.kernelTime.rings != nil {
		e.kernelTime.rings.Read(e.inKernel)
	}
}

// inKernel walks a copy that the kernel has made, unless the thread was in the probe's signal handler. The
// kernel copies at most 64 KB of one stack. If that gives no sample (see Base.Walk), the time is reported as
// kernel time without a stack, or as time of blocked signals.
func (e *Engine) inKernel(r *perfevent.Record) {
	t := e.Tasks[r.TID]
	regs, ok := r.Registers(e.Target.Arch)
	if !ok || len(r.Stack) == 0 || t == nil || !t.KernelHits || e.inProbe(regs.IP()) {
		return
	}
	cpu := uint64(e.Period)
	s := sampler.Sample{Capture: walk.Capture{TID: r.TID, Regs: regs,
		Stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, Low: t.Low, High: t.High,
		Cut: r.Cut, OneStack: !e.kernelTime.all}, Time: int64(r.Time) + e.kernelTime.sinceBoot,
		Cpu: cpu, Wall: t.Worked(int64(cpu))}
	if r.Kernel {
		s.Capture.Kernel = walk.InKernel
	}
	t.Hits++
	if t.Copied {
		t.Quiet = 0
		if t.Hits == 1 && t.AtEvent < cpu && t.Birth.Covers(r.Time) {
			return // readNewborns samples its first period, in which this copy's period began
		}
	}
	e.readThread(t, &s.Capture)
	e.Stats.Timed++
	t.Weighed += cpu
	if e.Hold(&s) {
		return
	}
	gap, _, ok := e.Walk(&s.Capture)
	e.lateActivity(t, &s.Capture)
	e.kernelTime.rings.Used(r.TID, e.Walker.Regs.SP()-regs.SP(), r.Cut && gap == merge.GapTruncated)
	switch {
	case !ok && r.Kernel:
		t.KernelLost += cpu
	case !ok:
		t.Weighed -= cpu
	case !e.HoldWalked(&s, gap):
		t.Samples++
		e.SendAt(s.Time, t.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
	}
	if t.Copied && !r.Kernel {
		e.endCopies(t, time.Now().UnixNano(), !ok)
	}
}

// maySampleInStretches reports whether stretches suit the recording: a low rate, and waiting threads that are
// not due often. The kernel must permit copies of kernel time too.
func (e *Engine) maySampleInStretches() bool {
	return e.readsBirthsLate() && e.Config.WallEvery >= maxSleep && e.Config.Events == 0 && !e.Config.NoCPU &&
		e.cpuClock == sampler.ClockPerf && e.startup == nil &&
		(e.stretches.On || e.kernelTime.kernel && !e.kernelTime.all)
}

// updateStretches begins and ends stretches if the threads switch often. Otherwise the usual events stay.
func (e *Engine) updateStretches(now time.Time) {
	s, k := &e.stretches, &e.kernelTime
	if s.Reopen && s.Ready(now) && e.cpuClock == sampler.ClockPerf && !k.all {
		e.leaveStretches()
	}
	if !e.maySampleInStretches() {
		return
	}
	switch wanted := s.Wanted(now, e.Switches); {
	case s.Open && k.threads == 0: // there is no room for more events
		s.Refused = now
		e.leaveStretches()
	case wanted && !s.On && s.Ready(now):
		e.useStretches(now)
	case !wanted && s.On:
		e.leaveStretches()
	}
	if s.On && !now.Before(s.Next) {
		e.toggleStretch()
	}
}

// useStretches replaces the events of all threads by stretches, unless the kernel refuses. In stretches, the
// kernel copies the stacks, at most 64 KB of each.
func (e *Engine) useStretches(now time.Time) {
	s, k := &e.stretches, &e.kernelTime
	if !k.mayCopy(len(e.Tasks)) {
		s.Refused = now
		return
	}
	e.closeEvents()
	k.short = true
	if k.open(e.PID, e.Period); !k.mayCopy(len(e.Tasks)) {
		s.Refused = now
		e.leaveStretches()
		return
	}
	k.rings.Remove(uint32(e.PID)) // open has tried it with kernel time only
	s.On, k.all, s.Next = true, true, time.Time{}
}

// leaveStretches gives all threads their events back.
func (e *Engine) leaveStretches() {
	e.closeEvents()
	e.stretches.On, e.stretches.Open = false, false
	e.kernelTime.short, e.kernelTime.all = false, false
	e.kernelTime.open(e.PID, e.Period)
	if e.stretches.Reopen = !e.kernelTime.kernel; e.stretches.Reopen {
		e.stretches.Refused = time.Now()
	}
	for _, t := range e.Tasks {
		e.arm(t)
	}
	e.fresh = true // the watch for new threads begins again
}

// closeEvents closes the events of all threads, the watch for new ones, and the rings.
func (e *Engine) closeEvents() {
	e.readRing()
	e.readKernel()
	e.readNewborns(time.Now().UnixNano())
	for _, t := range e.Tasks {
		e.closeEvent(t)
		t.Armed, t.Copied, t.AtSwitch, t.Hits = false, false, 0, 0
	}
	e.births.Close()
	e.births = births{}
	e.Relist() // for births that were not handled yet
	e.kernelTime.Close()
	e.kernelTime.tried = time.Time{}
}

// toggleStretch ends the stretch, or begins the next one.
func (e *Engine) toggleStretch() {
	s, k := &e.stretches, &e.kernelTime
	events := len(e.Tasks) * k.rings.FDs()
	if s.Open = !s.Open; s.Open {
		k.rings.SetPeriod(uint64(threads.StretchPeriod(e.Period, events)))
		for _, t := range e.Tasks {
			e.armInStretch(t)
		}
		s.Next = time.Now().Add(threads.StretchLength)
		e.readKernel() // the copies of short first periods, which may fill a ring
		return
	}
	e.readKernel()
	for _, t := range e.Tasks {
		k.remove(t)
		t.Copied = false
	}
	s.Next = time.Now().Add(threads.Gap(events, rand.ExpFloat64()))
}

// armInStretch adds a thread to the stretch in progress, if there is one. Later ones sample all threads.
func (e *Engine) armInStretch(t *threads.Task) {
	t.Armed, t.Unarmed = true, 0
	if e.stretches.Open && !t.Copied {
		t.Copied = e.kernelTime.add(t.TID, true)
		t.KernelHits = t.Copied
	}
}

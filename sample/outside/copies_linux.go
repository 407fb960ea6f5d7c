package outside

import (
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

// copyAll switches all threads, and those that come later, to copies that the kernel makes. It returns false
// if the kernel refuses.
func (e *Engine) copyAll() bool {
	k, main := &e.kernelTime, uint32(e.PID)
	if k.OpenRings(e.PID, e.Period); k.Rings == nil || !k.Rings.Deep() || k.Room < 2*len(e.Tasks) {
		return false
	}
	if t := e.Tasks[main]; t != nil {
		k.Remove(t)
		t.Copied = false // useCopies adds it again
	}
	k.Rings.Remove(main)
	if k.Rings.AddBoth(main) != nil {
		return false
	}
	k.Rings.Remove(main)
	k.All = true
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
	e.kernelTime.OpenRings(e.PID, e.Period)
	e.kernelTime.Remove(t)
	if t.Copied = e.kernelTime.Add(t, true); t.Copied {
		t.Phase = threads.Full
		t.Event.SetPeriod(never)
		return
	}
	e.kernelTime.Add(t, false)
}

const (
	maskCheckEvery = int64(5e6) // least nanoseconds between two reads of the signal mask of a copied thread
	manyMaskChecks = 20         // equal results in a row after which endCopies acts
)

// endCopies gives a copied thread its signals back when it has not blocked them for some time. It unblocks
// signals that a fault has left blocked for some time. If a copy was too short (copies hold at most 64 KB of
// one stack), it does both at once.
func (e *Engine) endCopies(t *threads.Task, now int64, short bool) {
	if e.kernelTime.All || t.Stretched || !short && now-t.LookedAt < max(e.Period, maskCheckEvery) {
		return
	}
	t.LookedAt = now
	masks, ok := e.Kernel.Signals(t.TID)
	if blocked := !ok || masks.Blocked&(uint64(1)<<(e.signal()-1)) != 0; blocked != t.StillBlocked {
		t.StillBlocked, t.Looks = blocked, 0
	}
	if t.Looks++; !short && t.Looks < manyMaskChecks {
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
	e.kernelTime.Remove(t)
	e.kernelTime.Add(t, false)
	n, _ := t.Event.Count()
	t.Copied, t.Looks = false, 0
	e.setPhase(t, threads.Full, 0, n)
	t.Excused = t.SpentToEnd() - min(t.Weighed, t.SpentToEnd())
}

// readKernel takes the copies from the rings.
func (e *Engine) readKernel() {
	for _, k := range []*threads.Copies{&e.kernelTime, &e.inStretches} {
		if k.Rings != nil {
			k.Rings.Read(e.inKernel)
		}
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
	cpu, at := uint64(e.Period)*t.KernelEvery, int64(r.Time)+e.copies(t).SinceBoot
	if t.Stretched {
		if e.stretches.Late(r.Time) {
			return
		}
		cpu = e.stretches.Weigh(t, e.Period, r.Kernel)
	}
	s := sampler.Sample{Capture: walk.Capture{TID: r.TID, Regs: regs,
		Stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, Low: t.Low, High: t.High,
		Cut: r.Cut, OneStack: !e.kernelTime.All}, Time: at, Cpu: cpu,
		Wall: t.Worked(int64(cpu))}
	if r.Kernel {
		s.Capture.Kernel = walk.InKernel
		t.KernelTime += cpu
	}
	if t.Hits += t.KernelEvery; t.Copied {
		t.Quiet = 0
		if t.Hits == 1 && t.AtEvent < cpu && t.Birth.Covers(r.Time) {
			return // readNewborns samples its first period, in which this copy's period began
		}
	}
	e.readThread(t, &s.Capture)
	e.Stats.Timed++
	e.Stats.Copied++
	t.Weighed += cpu
	if e.Hold(&s) {
		return
	}
	gap, _, ok := e.Walk(&s.Capture)
	e.lateActivity(t, &s.Capture)
	tooShort := r.Cut && (gap == merge.GapTruncated || len(s.Stack.Data) > len(r.Stack))
	e.copies(t).Rings.Used(r.TID, e.Walker.Regs.SP()-regs.SP(), tooShort)
	switch {
	case !ok && r.Kernel:
		t.KernelLost += cpu
	case !ok:
		t.Weighed -= cpu
	case !e.HoldWalked(&s, gap):
		t.Samples++
		e.SendAt(s.Time, t.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
	}
	switch {
	case t.Stretched && !ok && !r.Kernel && (gap != merge.GapTruncated || len(r.Stack) > cpuring.StackCopy):
		t.Uncopied = true // the next stretch leaves it out
	case t.Copied && !r.Kernel:
		e.endCopies(t, e.Nano(time.Now()), !ok || tooShort && len(r.Stack) > cpuring.StackCopy)
	}
}

// mayStretch reports whether stretches suit the recording: async callers must be read right after each
// sample.
func (e *Engine) mayStretch() bool {
	c := &e.Config
	return c.Events == 0 && !c.NoCPU && !c.Client && !c.Async && e.cpuClock == sampler.ClockPerf &&
		e.startup == nil && !e.kernelTime.All &&
		e.stretches.LeastCell <= threads.LongestCell
}

// copies returns the Copies that sample a thread.
func (e *Engine) copies(t *threads.Task) *threads.Copies {
	if t.Stretched {
		return &e.inStretches
	}
	return &e.kernelTime
}

// updateStretches begins and ends stretches if threads switch often.
func (e *Engine) updateStretches(now time.Time) {
	s := &e.stretches
	if !e.mayStretch() {
		return
	}
	switch wanted := s.Wanted(now, e.Tasks); {
	case s.Open && e.inStretches.Room == 0: // there is no room for more events
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

// useStretches opens the rings of the stretches, unless the kernel refuses.
func (e *Engine) useStretches(now time.Time) {
	s, k := &e.stretches, &e.inStretches
	k.Short, k.Tried = true, time.Time{}
	n := 0
	for _, t := range e.Tasks {
		if t.Often {
			n++
		}
	}
	k.OpenRings(e.PID, e.Period)
	if !k.MayCopy(n) {
		k.Close()
		s.Refused = now
		return
	}
	s.Fit(k.Rings.HitCost(), e.Period)
	e.endWatch(now)
	s.Start(now, e.chooseStretched()*k.Rings.FDs(), rand.Float64())
}

// leaveStretches gives all threads their events back.
func (e *Engine) leaveStretches() {
	e.readKernel()
	for _, t := range e.Tasks {
		e.unstretch(t)
	}
	e.inStretches.Close()
	e.stretches.On, e.stretches.Open = false, false
	e.fresh = true // the watch for new threads begins again
}

// unstretch gives a thread its event back. If the kernel refuses, polls give it another clock.
func (e *Engine) unstretch(t *threads.Task) {
	if t.Stretched {
		e.leaveStretch(t)
		t.Unstretch()
		t.Armed, t.AtSwitch, t.Hits = false, 0, 0
		e.armEvent(t)
	}
}

// chooseStretched replaces the events of threads that switch often by stretches, and gives other threads
// their events back. It returns the number of threads with stretches.
func (e *Engine) chooseStretched() (n int) {
	for _, t := range e.Tasks {
		switch often := t.Often && !t.Uncopied; {
		case often && t.Event != nil && !t.Copied:
			e.closeEvent(t)
			t.Stretched, t.Armed = true, true
		case !often:
			e.unstretch(t)
		}
		if t.Stretched {
			n++
		}
	}
	return n
}

// toggleStretch ends the stretch, or begins the next one.
func (e *Engine) toggleStretch() {
	s, k := &e.stretches, &e.inStretches
	e.readRing()
	e.readKernel()
	if !s.On { // a record showed that the program takes SIGURG
		return
	}
	if s.Open {
		for _, t := range e.Tasks {
			if t.Stretched {
				e.leaveStretch(t)
			}
		}
		s.Count(k.Rings.Taken())
		s.End(time.Now(), rand.Float64())
		return
	}
	n := e.chooseStretched()
	k.Rings.SetPeriod(uint64(e.Period) / uint64(s.Parts))
	began := perfevent.Now()
	s.Begin(time.Now(), began, n*k.Rings.FDs())
	for _, t := range e.Tasks {
		if t.Stretched {
			e.armInStretch(t)
		}
	}
	s.Armed(perfevent.Now() - began)
	e.readKernel() // the copies of short first periods, which may fill a ring
}

// armInStretch adds a thread to the stretch in progress, if there is one.
func (e *Engine) armInStretch(t *threads.Task) {
	t.Armed, t.Unarmed = true, 0
	if e.stretches.Open && !t.Copied {
		if t.Copied = e.inStretches.Add(t, true); t.Copied {
			if c, ok := e.Kernel.Counters(t); ok {
				t.Enter(c)
			}
		}
	}
}

// leaveStretch ends a thread's part of the stretch in progress, if there is one.
func (e *Engine) leaveStretch(t *threads.Task) {
	if !t.Copied {
		return
	}
	c, ok := e.Kernel.Counters(t)
	if in, before, whole := t.Leave(c, ok); whole {
		e.stretches.Left(time.Now(), in, before)
	}
	e.inStretches.Remove(t)
	t.Copied = false
}

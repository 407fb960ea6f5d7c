package outside

import (
	"errors"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// kernelClock samples the processor time that threads use in the kernel. A signal at such a moment
// would interrupt a system call that waits, so the kernel copies registers and stack into a ring.
type kernelClock struct {
	rings     *cpuring.Sampler // nil: the kernel permits no samples of itself
	sinceBoot int64            // from the time of its records to Unix time, nanoseconds
	threads   int              // that may be sampled
}

// open opens the rings, if the kernel permits it.
func (k *kernelClock) open(pid int, period int64) {
	rings, err := cpuring.New(cpuring.Config{PID: pid, Period: uint64(period), Stack: stackCopy, Kernel: true})
	if err != nil {
		return
	}
	k.rings, k.sinceBoot = rings, time.Now().UnixNano()-int64(perfevent.Now())
	k.threads = mayOpen(4, mostWatching) / rings.FDs()
}

func (k *kernelClock) close() {
	if k.rings != nil {
		k.rings.Close()
		k.rings = nil
	}
}

// add samples a thread. It reports whether the kernel does.
func (k *kernelClock) add(tid uint32) bool {
	if k.rings == nil || k.threads == 0 {
		return false
	}
	err := k.rings.Add(tid)
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
func (k *kernelClock) remove(t *task) {
	if k.rings == nil || !t.kernelHits {
		return
	}
	t.kernelHits = false
	k.rings.Remove(t.tid)
	k.threads++
}

// readKernel takes the samples of the kernel's time.
func (e *Engine) readKernel() {
	if e.kernelTime.rings != nil {
		e.kernelTime.rings.Read(e.inKernel)
	}
}

// inKernel walks a sample of a thread that was in the kernel, unless the probe's signal handler was.
// The kernel copies one stack and at most 64 KB of it. If that does not suffice for all frames, the
// time is accounted for as time in the kernel that no sample locates.
func (e *Engine) inKernel(r *perfevent.Record) {
	t := e.tasks[r.TID]
	regs, ok := r.Registers(e.t.arch)
	if !ok || len(r.Stack) == 0 || t == nil || !t.kernelHits || e.inProbe(regs.IP()) {
		return
	}
	cpu := uint64(e.period)
	s := stackSample{capture: capture{tid: r.TID, regs: regs, stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, low: t.low, high: t.high,
		cut: r.Cut, oneStack: true, kernel: certainly}, time: int64(r.Time) + e.kernelTime.sinceBoot, cpu: cpu, wall: t.worked(int64(cpu))}
	e.readThread(t, &s.capture)
	e.stats.timed++
	if e.hold(&s) {
		return
	}
	gap, _, ok := e.walk(&s.capture)
	e.kernelTime.rings.Used(r.TID, e.w.regs.SP()-regs.SP(), r.Cut && gap == merge.GapTruncated)
	if !ok {
		t.kernelLost += cpu
		return
	}
	if e.holdWalked(&s, gap) {
		return
	}
	t.samples++
	e.sendAt(s.time, t.tid, gap, e.s.Frames, s.cpu, s.wall)
}

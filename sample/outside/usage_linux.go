package outside

import "github.com/seedwalk/seedwalk/report/wire"

// spent is the thread's processor time within the recording, as far as it is known, in
// nanoseconds. Of a thread that has ended an event knows it to the end.
func (t *task) spent() uint64 {
	cpu := t.last.cpu
	if t.event != nil {
		if n, err := t.event.Count(); err == nil {
			cpu = max(cpu, t.atEvent+n)
		}
	}
	return cpu - min(t.base, cpu)
}

// inKernel is the part of spent in the kernel, where an event may take no samples: what they
// are short of. Of a young thread they are too few to say.
func (t *task) inKernel(spent, period uint64) uint64 {
	if t.event == nil || t.young {
		return 0
	}
	n, err := t.event.Count()
	expected := (n - min(t.atSwitch, n)) / period
	if err != nil || expected < youngPeriods || t.hits >= expected {
		return 0
	}
	return spent - uint64(float64(spent)*float64(t.hits)/float64(expected))
}

// cause returns the reason why a thread has CPU time without samples.
func (e *Engine) cause(t *task, ended bool) uint8 {
	switch {
	case t.hits > 0 && !e.ready():
		return wire.CauseUnproven
	case t.hits == 0 && e.file.Stats().Dropped > 0 && t.spent() > 10*uint64(e.period):
		return wire.CauseNoRoom
	case t.armed || t.event != nil:
		return wire.CauseNone
	case ended:
		return wire.CauseShort
	}
	return wire.CauseTool
}

// account sends a thread's processor time.
func (e *Engine) account(t *task, ended bool) {
	if e.cfg.NoCPU || t.accounted {
		return
	}
	t.accounted = true
	spent := t.spent()
	if spent == 0 {
		return
	}
	e.accounted += spent
	kernel := min(t.kernelLost, spent)
	if !t.kernelHits {
		kernel = t.inKernel(spent, uint64(e.period))
	}
	e.s.Out.Usage(&wire.Usage{TID: uint64(t.tid), CPUNanos: spent, KernelNanos: kernel, Cause: e.cause(t, ended)})
}

// accountAll sends every thread's processor time, and the process's, at the recording's end.
func (e *Engine) accountAll() {
	for _, t := range e.tasks {
		c, ok := e.kernel.counters(t)
		if ok {
			t.last.cpu = c.cpu
		}
		e.account(t, !ok)
	}
	e.accountProcess()
}

// accountProcess sends the process's processor time since sampling began: its clock's, which
// is gone when the process has ended, or its threads'.
func (e *Engine) accountProcess() {
	if e.cfg.NoCPU {
		return
	}
	if ran, ok := e.kernel.ran(); ok && e.ranBefore >= 0 {
		e.ranSince = max(e.ranSince, uint64(max(0, ran-e.ranBefore)))
	}
	e.s.Out.Usage(&wire.Usage{TID: wire.ProcessTID, CPUNanos: max(e.ranSince, e.accounted), Cause: wire.CauseShort})
}

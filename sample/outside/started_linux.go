package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/startup"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// takeStartup takes over the rings that have sampled the process since its start, unless there are none or
// the engine has no use for them.
func (e *Engine) takeStartup() {
	s := e.Config.Start.Take(e.PID)
	if s != nil && (e.Config.NoCPU || e.cpuClock != sampler.ClockPerf) {
		s.End()
		s = nil
	}
	e.startup = s
}

// readStartup reads samples of the process's start. It removes threads that have a clock of the engine's. It
// closes the rings once the kernel reports new threads and the engine has listed the threads again.
func (e *Engine) readStartup() {
	s := e.startup
	if s == nil {
		return
	}
	s.HandOver(e.started)
	if s.Closed {
		e.startup = nil
		return
	}
	ended := s.Rings.Ended() // before Read: hits of removed threads no longer count
	s.Rings.Read(e.started)
	for _, tid := range s.Rings.Threads() {
		if t := e.Tasks[tid]; t != nil && t.Armed {
			s.Rings.Remove(tid)
		}
	}
	for _, tid := range ended {
		e.accountStarted(tid)
	}
	if e.births.IsOpen() && e.Table.Listing > 1 {
		e.adoptStarted()
		e.endStartup()
	}
}

// adoptStarted adds the living threads of the startup rings that are newer than the last listing. The next
// listing would add them too, and their time since their start would be accounted for twice.
func (e *Engine) adoptStarted() {
	for _, tid := range e.startup.Rings.Threads() {
		if _, err := e.Kernel.Read(tid, "schedstat"); err == nil && tid != e.file.Helper() {
			e.Table.Add(tid, e.Nano(time.Now()))
		}
	}
}

// endStartup ends the samples of the process's start.
func (e *Engine) endStartup() {
	s := e.startup
	if s == nil {
		return
	}
	if s.HandOver(e.started); !s.Closed {
		s.Rings.Read(e.started)
		for _, tid := range s.Rings.Threads() {
			e.accountStarted(tid)
		}
		s.Rings.Close()
	}
	e.startup = nil
}

// stopStarted ends the startup samples of a thread that gets a clock of the engine's. Walking those of the
// past can take longer than the program's start, so it is left to the next round.
func (e *Engine) stopStarted(tid uint32) {
	if s := e.startup; s != nil && !s.Closed {
		s.Rings.Stop(tid)
	}
}

// leaveStarted reads the last startup samples of a thread whose time the engine accounts for. It removes the
// thread from the startup rings, so that its time is not accounted for twice.
func (e *Engine) leaveStarted(tid uint32) {
	s := e.startup
	if s == nil {
		return
	}
	if s.HandOver(e.started); !s.Closed {
		s.Rings.Read(e.started)
		s.Rings.Remove(tid)
	}
}

// accountStarted ends the sampling of a thread, and sends its CPU time if the engine does not
// know it.
func (e *Engine) accountStarted(tid uint32) {
	n, ok := e.startup.Rings.Remove(tid)
	if !ok || n.Counted == 0 || e.Tasks[tid] != nil {
		return
	}
	e.accounted += n.Counted
	e.Stream.Out.Usage(&wire.Usage{TID: uint64(tid), CPUNanos: n.Counted,
		KernelNanos: min(n.InKernel, n.Counted)})
}

// started handles a sample of the process's start.
func (e *Engine) started(r *perfevent.Record) { e.copied(r, e.startup.SinceBoot, startup.Period) }

// copied walks a sample of a thread that may be new, or holds it until it can be walked.
func (e *Engine) copied(r *perfevent.Record, sinceBoot, period int64) {
	regs, ok := r.Registers(e.Target.Arch)
	if !ok || len(r.Stack) == 0 || e.inProbe(regs.IP()) {
		return
	}
	c := walk.Capture{TID: r.TID, Regs: regs,
		Stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, Cut: r.Cut, OneStack: true}
	if r.Kernel {
		c.Kernel = walk.InKernel
	}
	s := sampler.Sample{Capture: c, Time: int64(r.Time) + sinceBoot, Cpu: uint64(period), Wall: period}
	e.Stats.Timed++
	e.Stats.Copied++
	if t := e.Tasks[r.TID]; t != nil {
		t.Weighed += s.Cpu
	} else {
		e.births.Weigh(r.TID, s.Cpu)
	}
	if !e.Hold(&s) {
		e.WalkLater(&s)
	}
}

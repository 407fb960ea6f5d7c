package outside

import (
	"bytes"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// startup samples a process by rings of the kernel. The process runs tens of milliseconds before
// its runtime loads the probe.
type startup struct {
	pid       int
	rings     *cpuring.Sampler
	sinceBoot int64 // from the time of its records to Unix time, nanoseconds

	stop, stopped chan struct{} // of collect
	hits          []perfevent.Record
	bytes         int
	full, closed  bool // no room is left; the rings are closed
}

const (
	// startPeriod is the processor time between two samples, nanoseconds: a short program has some.
	startPeriod = 1000000
	// collectEvery is the time between two looks into the rings. A ring of 512 KB has room for seven
	// samples.
	collectEvery = 2 * time.Millisecond
	// startLimit is how long no engine may come: the command may be no program of .NET.
	startLimit = 10 * time.Second
)

func newStartup(pid int) *startup {
	rings, err := cpuring.New(cpuring.Config{PID: pid, Period: startPeriod, Stack: stackCopy})
	if err != nil {
		return nil
	}
	s := &startup{pid: pid, rings: rings, sinceBoot: time.Now().UnixNano() - int64(perfevent.Now()), stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.collect()
	return s
}

// collect copies samples until stop. It ends the sampling if there is no more room, or no engine.
func (s *startup) collect() {
	defer close(s.stopped)
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for began := time.Now(); !s.full && time.Since(began) < startLimit; {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.rings.Read(s.keep)
		}
	}
	s.rings.Close()
	s.closed = true
}

// keep copies a sample.
func (s *startup) keep(r *perfevent.Record) {
	if s.bytes+len(r.Stack) > maxPendingBytes || len(s.hits) >= maxPending {
		s.full = true
		return
	}
	k := *r
	k.Regs, k.Stack, k.Name = bytes.Clone(r.Regs), bytes.Clone(r.Stack), nil
	s.hits, s.bytes = append(s.hits, k), s.bytes+len(k.Stack)
}

// handOver ends collect, gives take all that it has copied, and leaves the rings to the caller.
func (s *startup) handOver(take func(*perfevent.Record)) {
	if s.stop == nil {
		return
	}
	close(s.stop)
	<-s.stopped
	s.stop = nil
	for i := range s.hits {
		take(&s.hits[i])
	}
	s.hits = nil
}

// end ends the sampling.
func (s *startup) end() {
	s.handOver(func(*perfevent.Record) {})
	if !s.closed {
		s.rings.Close()
	}
}

// takeStartup takes over what has sampled the process since its start, if anything has.
func (e *Engine) takeStartup() bool {
	s := e.cfg.Start.take(e.pid)
	if s != nil && (e.cfg.NoCPU || e.cpuClock != ClockPerf) {
		s.end()
		s = nil
	}
	e.startup = s
	return s != nil
}

// readStartup takes samples of the process's start. It ends them once all threads have a clock of
// the engine's.
func (e *Engine) readStartup() {
	s := e.startup
	if s == nil {
		return
	}
	s.handOver(e.started)
	if s.closed {
		e.startup = nil
		return
	}
	s.rings.Read(e.started)
	for _, tid := range s.rings.Threads() {
		if t := e.tasks[tid]; t != nil && t.armed {
			s.rings.Remove(tid)
		}
	}
	for _, tid := range s.rings.Ended() {
		e.accountStarted(tid)
	}
	if e.births.watch != nil && e.threadTable.listing > 1 {
		e.endStartup()
	}
}

// endStartup ends the samples of the process's start.
func (e *Engine) endStartup() {
	s := e.startup
	if s == nil {
		return
	}
	if s.handOver(e.started); !s.closed {
		s.rings.Read(e.started)
		for _, tid := range s.rings.Threads() {
			e.accountStarted(tid)
		}
		s.rings.Close()
	}
	e.startup = nil
}

// accountStarted sends the processor time of a thread that the engine has never seen.
func (e *Engine) accountStarted(tid uint32) {
	n, ok := e.startup.rings.Remove(tid)
	if !ok || n.Counted == 0 || e.tasks[tid] != nil {
		return
	}
	e.accounted += n.Counted
	e.s.Out.Usage(&wire.Usage{TID: uint64(tid), CPUNanos: n.Counted, KernelNanos: min(n.InKernel, n.Counted)})
}

// started takes a sample of the process's start.
func (e *Engine) started(r *perfevent.Record) { e.copied(r, e.startup.sinceBoot, startPeriod) }

// copied holds a sample of a thread that may be new until it can be walked, or walks it.
func (e *Engine) copied(r *perfevent.Record, sinceBoot, period int64) {
	regs, ok := r.Registers(e.t.arch)
	if !ok || len(r.Stack) == 0 || e.inProbe(regs.IP()) {
		return
	}
	c := capture{tid: r.TID, regs: regs, stack: memory.Run{Addr: regs.SP(), Data: r.Stack}, cut: r.Cut, oneStack: true}
	if r.Kernel {
		c.kernel = certainly
	}
	s := stackSample{capture: c, time: int64(r.Time) + sinceBoot, cpu: uint64(period), wall: period}
	e.stats.timed++
	if !e.hold(&s) {
		e.walkLater(&s)
	}
}

package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// renew makes later reads return current memory.
func (e *Engine) renew() {
	if e.asked != nil {
		e.asked.Renew()
	}
}

// readRest reads the part of a stack above its copy. The kernel reports the stack pointer of a waiting thread
// only.
func (e *Engine) readRest(c *walk.Capture) sampler.Rest {
	t := e.Tasks[c.TID]
	if t == nil {
		return sampler.NoRest
	}
	switch w, sp, _ := e.whereIs(t); {
	case w == threads.Ended || !e.AddRest(c, sp):
		return sampler.NoRest
	case e.hasStayed != nil && e.hasStayed():
		return sampler.RestSure
	}
	return sampler.RestRunning
}

// writeReads sends the counters of the memory reads that the probe served.
func (e *Engine) writeReads() {
	if e.asked == nil {
		return
	}
	s := &e.asked.Stats
	for key, value := range map[string]uint64{"probe_reads": s.Reads, "probe_reads_held": s.Held,
		"probe_reads_lost":   s.Unanswered,
		"probe_read_signals": s.Asked, "probe_read_ns": s.Nanos, "probe_read_copy_ns": s.Copying} {
		e.Stream.Out.Counter(key, value)
	}
}

// answers reports whether a thread runs only because it serves memory reads. Such a thread is polled
// at most once a second.
func (e *Engine) answers(t *threads.Task) bool {
	if e.asked == nil || !e.asked.Choice.First(t.TID) {
		return false
	}
	t.Due = max(t.Due, t.Polled+int64(time.Second))
	return true
}

// unseen samples a thread whose position is unknown. A running thread is sampled by its
// timer, any other by a signal, once each time it has run.
func (e *Engine) unseen(t *threads.Task) {
	if b, err := e.Kernel.Read(t.TID, "stat"); err != nil {
		return
	} else if threads.State(b) == 'R' {
		e.arm(t)
		return
	}
	if t.Unarmed > armAfter*uint64(e.Period) {
		e.arm(t)
	}
	if e.Config.NoWall || t.Asked && !e.file.Answered(t.Slot) {
		return
	}
	t.Asked = e.ask(t, probe.OpSample) == sent
}

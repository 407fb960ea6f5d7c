package outside

import (
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Stopper samples a process with nothing of ours in it and without its cooperation. The kernel
// copies the stacks of running threads (package cpuring); a thread that waits is stopped for as
// long as its stack is copied. Any native program can be sampled so.
type Stopper struct {
	sampler
	mem    *live.Process
	paused *PausedProcess
	kernel taskFiles

	tasks map[uint32]*task
	due   []int // of this round
	now   map[uint32]Thread
	swept time.Time

	stops, denied uint64

	rings     *cpuring.Sampler // nil: threads are sampled when they are stopped
	limited   bool             // some threads could not be added to it
	rest      []byte           // a stack that is larger than the kernel copies
	sinceBoot int64            // from the time of its records to Unix time, nanoseconds
	ranBefore int64            // the process's clock when sampling began, -1 = not known
	accounted uint64           // processor time that has been sent
}

// NewStopper makes a sampler of a process.
func NewStopper(pid int, cfg Config, to io.Writer) (*Stopper, error) {
	if err := Lookable(pid); err != nil {
		return nil, err
	}
	t, mem, err := openTarget(pid, context.Host())
	if err != nil {
		return nil, denied(pid)
	}
	e := &Stopper{mem: mem, kernel: newTaskFiles(pid), tasks: map[uint32]*task{}, now: map[uint32]Thread{}}
	e.sampler = newSampler(pid, cfg, t, to)
	e.sampler.plain = true
	e.sampler.living = func() bool { return unix.Kill(pid, 0) == nil }
	e.sampler.refresh = func() bool {
		if !t.refresh(pid) {
			return false
		}
		e.use()
		return true
	}
	e.paused = &PausedProcess{t: t, w: e.w}
	return e, nil
}

// Run samples until the process ends or Stop, and says why it ended.
func (e *Stopper) Run() string {
	defer e.close()
	e.open()
	e.openRings()
	e.sampler.refresh()
	return e.paced(e.round, e.end)
}

func (e *Stopper) close() {
	e.alarm.close()
	if e.rings != nil {
		e.rings.Close()
	}
	e.s.Raw.Close()
	e.kernel.close(e.tasks)
	e.mem.Close()
	e.t.shut()
}

func (e *Stopper) end(reason string) string {
	now := time.Now().UnixNano()
	e.ending = true
	e.walkPending()
	e.endRings()
	for _, t := range e.tasks {
		if t.rest && !e.cfg.NoWall && now > t.visited {
			e.send(t.tid, merge.Gap(t.stack.gap), t.stack.frames, 0, now-t.visited)
		}
	}
	e.write()
	e.noteUnproven()
	e.s.Out.Bye(reason)
	e.s.flush()
	return reason
}

// round stops the threads that have run since the last one.
func (e *Stopper) round() error {
	now := time.Now().UnixNano()
	e.stats.rounds++
	if e.t.tables == nil && e.stats.rounds%64 == 1 {
		e.sampler.refresh()
	}
	e.list(now)
	e.readRings()
	e.due = e.due[:0]
	for tid, t := range e.tasks {
		if t.due <= now && e.visit(t, now) {
			e.due = append(e.due, int(tid))
		}
	}
	if e.t.tables != nil {
		e.t.threads.read()
	}
	e.walkPending()
	live.StopEach(e.due, func(tid int, r *context.Registers, s live.Stood) {
		e.now[uint32(tid)] = e.paused.Read(uint32(tid), r, s)
	}, e.stoppedOne)
	if time.Since(e.swept) > time.Second {
		e.swept = time.Now()
		e.write()
	}
	return e.s.flush()
}

// list keeps the tasks in step with the kernel's.
func (e *Stopper) list(now int64) {
	all, err := live.Threads(e.pid)
	if err != nil {
		return
	}
	for _, tid := range all {
		t := e.tasks[uint32(tid)]
		if t == nil {
			t = &task{tid: uint32(tid), stat: -1, place: -1, visited: now, born: now}
			e.tasks[t.tid] = t
			e.name(t)
			e.sampleCPU(t)
		} else if t.rename(now) {
			e.name(t)
		}
	}
	if len(e.tasks) == len(all) {
		return
	}
	for tid, t := range e.tasks {
		if !slices.Contains(all, int(tid)) {
			e.stats.ended(t.samples)
			delete(e.tasks, tid)
		}
	}
}

func (e *Stopper) name(t *task) {
	if name := e.kernel.comm(t.tid); name != t.name && name != "" {
		t.name = name
		e.s.Out.Thread(&wire.Thread{TID: uint64(t.tid), Name: name})
	}
}

// visit samples a thread that rests by what is known of it, and reports whether
// another is to be stopped.
func (e *Stopper) visit(t *task, now int64) bool {
	c, ok := e.kernel.counters(t)
	if !ok {
		return false
	}
	passed := now - t.visited
	t.visited = now
	e.stats.visits++
	if t.rest && c == t.last {
		t.every = min(2*t.every, maxRest)
		t.due = now + t.every
		e.stats.rests++
		if !e.cfg.NoWall {
			t.samples++
			e.send(t.tid, merge.Gap(t.stack.gap), t.stack.frames, 0, passed)
		}
		return false
	}
	t.rest, t.every, t.due = false, e.period, now
	if t.armed {
		t.last, t.seen = c, true
		return e.waits(t, passed)
	}
	t.owed += passed
	if t.seen {
		t.unarmed += c.cpu - t.last.cpu
	}
	t.last, t.seen = c, true
	return true
}

// waits reports whether a thread of whose processor time there are samples is to be stopped
// for its wall time: it has gone over to waiting.
func (e *Stopper) waits(t *task, passed int64) bool {
	if e.cfg.NoWall {
		return false
	}
	if w, _, _ := e.kernel.whereIs(t); w == running {
		t.ran += passed
		return false
	}
	t.owed += passed
	return true
}

// stoppedOne walks the copy of a thread that goes on already.
func (e *Stopper) stoppedOne(s live.Stop) {
	tid := uint32(s.TID)
	th, ok := e.now[tid]
	t := e.tasks[tid]
	delete(e.now, tid)
	if !ok || t == nil {
		if s.Err != nil {
			e.denied++
		}
		return
	}
	e.stops++
	e.stats.handler.Add(uint64(s.Held.Nanoseconds()))
	c := capture{tid: tid, regs: th.Regs, stack: th.Stack, cut: th.Cut, extra: th.extra, kernel: maybeIn}
	cpu, wall := e.standsFor(t)
	if e.hold(&stackSample{capture: c, time: time.Now().UnixNano(), cpu: cpu, wall: wall}) {
		return
	}
	gap, _, ok := e.sampler.walk(&c)
	if !ok {
		return
	}
	e.stats.outside++
	t.rested(gap, e.s.Frames)
	if now, ok := e.kernel.counters(t); ok {
		t.unarmed += now.cpu - t.last.cpu
		t.last = now // being stopped has cost it a turn
	}
	t.samples++
	e.send(tid, gap, e.s.Frames, cpu, wall)
}

// standsFor returns the processor time and the wall time of a thread since its last sample.
func (e *Stopper) standsFor(t *task) (cpu uint64, wall int64) {
	if t.armed {
		return 0, t.stood()
	}
	cpu, wall = t.unarmed, t.owed
	t.unarmed, t.owed = 0, 0
	if e.cfg.NoCPU {
		cpu = 0
	}
	if e.cfg.NoWall {
		wall = int64(cpu)
	}
	return cpu, wall
}

// walkPending walks the samples that were held until the runtime's tables were proven.
func (e *Stopper) walkPending() {
	if len(e.pending.samples) == 0 || !e.ready() {
		return
	}
	for _, s := range e.pending.take() {
		if gap, _, ok := e.sampler.walk(&s.capture); ok {
			e.stats.held++
			e.sendAt(s.time, s.tid, gap, e.s.Frames, s.cpu, s.wall)
		}
	}
}

// write sends the totals.
func (e *Stopper) write() {
	s, w := &e.stats, e.s.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.rounds}, {"probe_visits", s.visits}, {"probe_rests", s.rests}, {"probe_unproven", s.unproven},
		{"probe_late", s.late}, {"probe_uncopied", s.uncopied}, {"probe_unnamed", e.s.unnamed}, {"probe_suspended", e.stops}, {"probe_hidden", e.denied}, {"probe_timed", s.timed},
	} {
		w.Stats(c.key, c.value)
	}
	if e.rings != nil {
		w.Stats("probe_dropped", e.rings.Lost())
	}
	var n []uint64
	for _, t := range e.tasks {
		if t.samples > 0 {
			n = append(n, t.samples)
		}
	}
	s.write(w, n)
}

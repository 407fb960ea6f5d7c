package outside

import (
	"io"
	"runtime"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Engine samples one process.
type Engine struct {
	sampler
	threadTable
	file  *probe.File
	mem   store
	asked *askedMemory // mem, if the probe reads it; nil: the kernel does
	fresh bool         // threads have come whose Thread is not known

	legacy     int // 0 once it has been given up
	unheard    int // signals taken and not answered, since the last that was
	real       int
	bytes      []byte
	more       [1]memory.Run
	probe      string
	sought     time.Time     // when the runtime's list of threads was read
	seekRest   time.Duration // until it is read again: reading takes long where there are many
	swept      time.Time
	lived      time.Time // when the process was seen to be the one that was opened
	flushed    time.Time
	events     events
	heartbeat  *heartbeat
	cpuClock   Clock // in use
	perf       perfClock
	kernelTime kernelClock
	random     randomClock
	timerEach  int64 // nanoseconds that a timer's sample of weight 1 stands for
	births     births
	startup    *startup // nil = there is none

	ranBefore int64  // the process's clock when sampling began, -1 = not known
	ranSince  uint64 // and how far it has gone since, nanoseconds
	accounted uint64 // processor time of threads that has been sent, nanoseconds
}

// New makes an engine for the process that sent the probe's file fd, which stays
// the caller's.
func New(pid, fd int, cfg Config, to io.Writer) (*Engine, error) {
	file, err := probe.Open(fd, pid)
	if err != nil {
		return nil, err
	}
	file.Want(cfg.Events, uint64(max(0, cfg.WaitMin))) // soon: the probe does not wait for long
	t, mem, asked := openEither(pid, file)
	if n, ok := t.threads.numbers.(*live.Numbers); ok {
		file.SetNumbers(n)
	}
	e := &Engine{sampler: newSampler(pid, cfg, t, to), file: file, mem: mem, asked: asked, probe: cfg.Probe,
		threadTable: newThreadTable(pid), bytes: make([]byte, probe.RingSize)}
	e.sampler.living, e.sampler.refresh = e.alive, e.refresh
	e.threadTable.name, e.threadTable.came = e.name, e.came
	e.threadTable.gone = func(t *task) {
		e.file.Read(e.record) // its last samples
		e.readKernel()
		e.gone(t)
	}
	e.legacy, e.real = file.Signals()
	e.cpuClock = e.chooseClock()
	if e.ranBefore = e.kernel.ranNow(); e.takeStartup() {
		e.ranBefore = 0
	}
	e.useTimers()
	e.events.init()
	return e, nil
}

// Run samples until the process ends or Stop, and says why it ended.
func (e *Engine) Run() string {
	defer e.close()
	e.heartbeat = beat(e.file)
	if err := e.open(); err != nil {
		e.disarm(lateLimit)
		return err.Error()
	}
	if e.cpuClock == ClockRandom {
		e.random.begin()
	}
	tick := time.Duration(max(e.period, int64(time.Millisecond)))
	next := time.Now()
	for !e.stopped.Load() {
		now := time.Now()
		if e.watch(now.UnixNano()); !e.lives(now) {
			return e.end("the process ended")
		}
		if err := e.round(); err != nil { // nobody listens any more: the target is put back all the same
			e.endEvents()
			e.disarm(lateLimit)
			return "the tool is gone: " + err.Error()
		}
		if e.cpuClock == ClockRandom && !e.idle() {
			next = time.Now().Add(e.nextDraw())
			e.sleep(time.Until(next))
			e.drawAll(time.Since(next))
			continue
		}
		next = e.pace(next.Add(tick), time.Now())
		e.sleep(time.Until(next))
	}
	return e.leave()
}

// How long the engine sleeps though all threads rest: then one that wakes up samples
// itself, if it has a timer, and the ring has room for what comes of it.
const (
	longest      = 40 * time.Millisecond
	maxIdleSleep = 100 * time.Millisecond // while none of the process's threads runs
	atOnce       = 10                     // samples of a thread meanwhile, if that is longer than longest
)

// most is how long the engine sleeps now.
func (e *Engine) most() time.Duration {
	if !e.idle() {
		return longest
	}
	return min(max(longest, atOnce*time.Duration(e.period)), maxIdleSleep)
}

// pace is when the next round is due: at the next tick, or later if no thread has to
// be looked at before.
func (e *Engine) pace(tick, now time.Time) time.Time {
	if e.due > 0 {
		if due := time.Unix(0, e.due); due.After(tick) {
			tick = due
		}
		if late := now.Add(e.most()); tick.After(late) {
			tick = late
		}
	}
	if soon := now.Add(resumeVisits); e.unfinished() && tick.After(soon) {
		tick = soon
	}
	if tick.Before(now) {
		return now
	}
	return tick
}

// sleep sleeps until Stop, if there are events in pieces: their records are large.
func (e *Engine) sleep(d time.Duration) {
	if e.births.watch != nil {
		e.sleepWatching(d)
		return
	}
	if e.cfg.Events == 0 && !e.cfg.Copies {
		if d <= maxThreadSleep {
			sleepThread(d)
		} else {
			e.pause(d)
		}
		return
	}
	for d > 0 && !e.stopped.Load() {
		step := min(d, eventStep)
		e.pause(step)
		d -= step
		if e.file.Taken() > 0 {
			e.file.Read(e.record)
		}
	}
}

func (e *Engine) open() error {
	e.sampler.open()
	if e.asked != nil {
		e.s.Out.Note("the kernel does not let us read the program's memory: the probe in it does")
	}
	e.refresh()
	return e.s.flush()
}

func (e *Engine) close() {
	unused := e.heartbeat.stop()
	e.alarm.close()
	e.s.Raw.Close()
	for _, t := range e.tasks {
		e.closeEvent(t)
	}
	e.births.close()
	e.kernelTime.close()
	if e.startup != nil {
		e.startup.end()
	}
	e.kernel.close(e.tasks)
	e.mem.Close()
	e.t.shut()
	if unused && e.asked == nil { // goroutines that ask the probe for memory may still read the file
		e.file.Close()
	}
}

// alive reports whether the process is the one that was opened: the probe's header
// is where it was, which is not so after an exec.
func (e *Engine) alive() bool {
	if e.asked != nil {
		return e.asked.choice.Living()
	}
	base, tag := e.file.Where()
	b := e.kernel.buf[:4]
	return e.t.mem.ReadAt(b, base+24) && uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24 == tag
}

// lives is alive, asked no more often than matters: a sample of what a process was before
// does no harm, and a signal is sent to one that lives. A process that ends or becomes
// another program runs, and is not idle then.
func (e *Engine) lives(now time.Time) bool {
	good := livesFor
	if e.idle() {
		good = livesIdle
	}
	if now.Sub(e.lived) < good {
		return true
	}
	e.lived = now
	return e.living()
}

// How long samples may wait for the tool, and how many bytes of them: to write wakes it.
const (
	flushAfter = 50 * time.Millisecond
	flushIdle  = 250 * time.Millisecond
	flushMost  = 1 << 16
)

// waits reports whether what has been written may wait for more.
func (e *Engine) waits(now time.Time) bool {
	after := flushAfter
	if e.idle() {
		after = flushIdle
	}
	return now.Sub(e.flushed) < after && e.s.Out.Len() < flushMost
}

// refresh reads the mappings and what follows from them.
func (e *Engine) refresh() bool {
	if !e.t.refresh(e.pid) {
		return false
	}
	if e.use() {
		e.file.SetPatch(e.w.hijackStub)
	}
	return true
}

// round takes what has come, and visits the threads that are due.
func (e *Engine) round() error {
	now := time.Now()
	e.stats.rounds++
	e.heartbeat.round()
	e.renew()
	e.newborn(now.UnixNano())
	e.readNewborns(now.UnixNano())
	if e.list(now, e.file.Helper()); e.fresh && now.Sub(e.sought) >= e.seekRest {
		e.fresh = false
		e.objects()
		e.watchBirths()
	}
	if e.t.tables == nil {
		e.refresh()
	}
	e.file.Read(e.record)
	e.readKernel()
	e.readStartup()
	e.file.Reap()
	e.walkPending()
	e.visits(now.UnixNano(), e.visit)
	if !e.ready() {
		e.due = 0 // the tables may be proven any moment
	}
	if now.Sub(e.swept) > time.Second {
		e.swept = now
		e.watchOpen()
		e.write()
		e.accountProcess()
	}
	if e.waits(now) {
		return nil
	}
	e.flushed = now
	err := e.s.flush()
	runtime.Gosched() // the reader may have this processor's token, which a sleepThread would keep from it
	return err
}

// record walks one sample that the probe has taken.
func (e *Engine) record(r *probe.Record) {
	e.renew()
	if r.Why == probe.Event {
		e.event(r)
		return
	}
	e.unheard = 0
	t := e.tasks[r.TID]
	if t == nil { // it has ended
		t = &task{tid: r.TID, stat: -1, place: -1, slot: -1}
		defer e.kernel.shut(t)
	}
	e.stats.handler.Add(uint64(r.Nanos))
	t.quiet = 0
	switch r.Why {
	case probe.Armed:
		if t.slot >= 0 {
			e.bound(t, own(r))
			e.arm(t) // notes what came of it
		}
		return
	case probe.Asked:
		t.asked = false
	}
	if r.Why == probe.ClockHit {
		e.overflowed(t)
		if t.birth.Covers(r.Time) && r.Since <= uint64(e.period) {
			return // readNewborns samples its first period
		}
	}
	s := stackSample{capture: e.captured(t, r), time: int64(r.Time) + e.events.offset}
	drawn := r.Why == probe.Asked && t.drawn.open
	if !drawn {
		s.cpu, s.wall = e.standsFor(t, r)
	} else if !e.answered(t, &s) {
		return
	}
	if e.hold(&s) {
		return
	}
	e.walkPending()
	gap, _, ok := e.walk(&s.capture)
	if !ok || e.holdWalked(&s, gap) {
		return
	}
	e.findObject(t)
	if r.Why != probe.Timer && r.Why != probe.ClockHit && !drawn {
		t.rested(gap, e.s.Frames)
		if c, ok := e.kernel.counters(t); ok {
			t.last = c
		}
	}
	t.samples++
	e.sendAt(s.time, t.tid, gap, e.s.Frames, s.cpu, s.wall)
}

// standsFor returns the processor time and the wall time that a sample stands for.
func (e *Engine) standsFor(t *task, r *probe.Record) (cpu uint64, wall int64) {
	if r.Why == probe.Timer || r.Why == probe.ClockHit {
		cpu = uint64(e.period)
		if r.Why == probe.Timer {
			cpu = uint64(e.timerEach) * uint64(r.Weight)
		}
		e.stats.timed++
		e.stats.overruns += uint64(r.Weight - 1)
		return cpu, t.worked(int64(cpu))
	}
	wall = t.stood()
	if t.refused {
		cpu, t.unarmed = t.unarmed, 0
		wall = max(wall, int64(cpu))
	}
	return cpu, wall
}

// walkLater walks a sample that has been held. The time of one that cannot be walked without
// its thread's registers goes to the thread's next.
func (e *Engine) walkLater(s *stackSample) {
	gap, needs, ok := e.walk(&s.capture)
	if !ok || e.holdWalked(s, gap) {
		return
	}
	t := e.tasks[s.tid]
	if t != nil && needs && gap != merge.GapNone && !e.ending {
		t.owed += s.wall
		return
	}
	if t != nil {
		t.samples++
	}
	e.sendAt(s.time, s.tid, gap, e.s.Frames, s.cpu, s.wall)
}

// captured is what the probe has copied of a thread, to be walked.
func (e *Engine) captured(t *task, r *probe.Record) capture {
	c := capture{tid: r.TID, regs: registers(e.t.arch, r.Regs), stack: memory.Run{Addr: r.StackAddr, Data: r.Stack}, low: t.low, high: t.high,
		cut: r.Flags&(probe.Cut) != 0, extra: r.Extra}
	if r.Why != probe.ClockHit {
		c.kernel = maybeIn
	}
	if t.high == 0 && t.slot >= 0 {
		e.bound(t, own(r))
	}
	if r.Flags&probe.Foreign != 0 {
		c.low, c.high = 0, 0
		c.cut = c.cut || len(r.Stack) >= 1<<16 || len(r.Below) >= 1<<16
		if len(r.Below) > 0 {
			e.more[0] = memory.Run{Addr: r.BelowAddr, Data: r.Below}
			c.more = e.more[:]
			e.stats.both++
		}
		e.stats.foreign++
	}
	if r.Flags&probe.Cut != 0 {
		e.stats.cut++
	}
	if r.Flags&probe.Patched != 0 {
		e.stats.patched++
	}
	return c
}

// own is a place on the thread's own stack.
func own(r *probe.Record) uint64 {
	if r.BelowAddr != 0 {
		return r.BelowAddr
	}
	return r.StackAddr
}

// sendOf appends a sample of a task.
func (e *Engine) sendOf(t *task, gap merge.Gap, frames []frame, cpu uint64, wall int64) {
	t.samples++
	e.send(t.tid, gap, frames, cpu, wall)
}

// leave ends the stream and puts the target back as it was. The stream does not wait for
// threads that hardly get a processor.
func (e *Engine) leave() string {
	e.endEvents()
	e.file.Read(e.record)
	e.readKernel()
	e.readNewborns(time.Now().UnixNano())
	e.endStartup()
	e.accountAll()
	restored := e.disarm(soonLimit)
	reason := e.end("the tool wants no more")
	if !restored && !e.disarm(lateLimit) && e.alive() {
		return HandlersLeft
	}
	return reason
}

func (e *Engine) end(reason string) string {
	e.file.Read(e.record)
	e.readKernel()
	e.readNewborns(time.Now().UnixNano())
	e.endStartup()
	e.ending = true
	e.walkPending()
	e.lastEvents()
	e.last()
	e.accountAll()
	e.write()
	e.noteUnproven()
	e.s.Out.Bye(reason)
	e.s.flush()
	return reason
}

package outside

import (
	"cmp"
	"io"
	"runtime"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/births"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/probe/reader"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/startup"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// Engine samples one process. It runs in the tool. One goroutine calls New and Run, and all other methods
// run on it; other goroutines may only call Stop. The input is the probe's shared file, the kernel's rings
// and counters, and the process's memory. The output is a stream of package wire's messages.
type Engine struct {
	sampler.Base
	threads.Table
	file      *probe.File
	mem       reader.Store
	hasStayed func() bool // reports whether the thread that is being walked still waits; nil: it may have run

	asked *reader.Memory // equals mem if the probe serves the reads; nil if the kernel does
	fresh bool           // there are new threads whose runtime Thread is not known

	legacy         int // signal number; 0 once the engine has given it up
	ignored        int // consecutive signals that were taken but not answered
	real           int
	bytes          []byte
	more           [1]memory.Run
	probe          string
	threadListRead time.Time      // when the runtime's list of threads was read
	threadListTime target.JobTime // of reading it
	seekPause      time.Duration  // least time between two readings of that list, which may be slow
	swept          time.Time
	lived          time.Time // when the process was last known to be the one that was opened
	flushed        time.Time
	objectsAt      time.Time // when the bounds of the managed heap were read for async callers
	events         events.Events
	heartbeat      *events.Heartbeat
	cpuClock       sampler.Clock // in use
	perf           perfClock
	kernelTime     threads.Copies
	inStretches    threads.Copies
	random         randomClock
	timerEach      int64 // nanoseconds that a timer's sample of weight 1 represents
	births         births.Watch
	stretches      threads.Stretches
	startup        *startup.Sampler // nil if nothing samples the process's start

	begins     bool       // the process is of a command, and no other engine has sampled it
	ranBefore  int64      // the process's clock when sampling began; 0 = sampled from its start, -1 = unknown
	ranSince   uint64     // how far that clock has advanced since, nanoseconds
	accounted  uint64     // CPU time of threads that has been sent, nanoseconds
	ranSent    wire.Usage // the last message about the process's clock
	cpus       int        // of the machine
	often      threads.Waits
	unwatched  bool // new threads are found by listing, because threads wait very often
	timers     bool // threads got CPU timers because they wait very often
	ringFilled bool // readRing has found many records: the program has large stacks or many threads
}

// New makes an engine for the process that sent the probe's file fd. The caller keeps fd. Run writes the
// stream to to. New returns an error if the file cannot be used.
func New(pid, fd int, cfg sampler.Config, to io.Writer) (*Engine, error) {
	file, err := probe.Open(fd, pid)
	if err != nil {
		return nil, err
	}
	file.Want(cfg.Events, uint64(max(0, cfg.WaitMin))) // soon, because the probe does not wait for long
	t, mem, asked := reader.Open(pid, file)
	if n, ok := t.Threads.Numbers.(*live.Numbers); ok {
		file.SetNumbers(n)
	}
	e := &Engine{Base: sampler.New(pid, cfg, t, to), file: file, mem: mem, asked: asked, probe: cfg.Probe,
		Table: threads.NewTable(pid), cpus: len(perfevent.CPUs())}
	e.Base.Living, e.Base.Refresh = e.alive, e.refresh
	if asked == nil {
		e.ReadsRest = e.readRest
	}
	e.Table.Unix, e.Table.Name, e.Table.Came, e.Table.Gone = e.Nano, e.name, e.came, e.ended
	e.legacy, e.real = file.Signals()
	e.cpuClock = e.chooseClock()
	e.begins = e.Config.Start.Began(pid) && !cfg.NoCPU
	if e.takeStartup(); e.startup == nil {
		e.ranBefore = -1
	}
	e.useTimers()
	e.often = threads.NewWaits(max(e.Period, int64(e.Config.WallEvery)))
	e.stretches = threads.PlanStretches(e.Period, e.Config.WallEvery >= maxSleep)
	e.events = events.New(&e.Base, e, file)
	e.births = births.New(&e.Base, &e.Table, file.Helper, func() bool { return e.startup == nil })
	return e, nil
}

// Run samples until the process ends, Stop is called, or the stream cannot be written. It returns the
// reason, restores the process if it still lives, and closes the engine.
func (e *Engine) Run() string {
	defer e.Close()
	e.heartbeat = events.StartHeartbeat(e.file, e.Period >= sampler.SlowPeriod && e.Config.Events == 0)
	if err := e.open(); err != nil {
		e.disarm(lateLimit)
		return err.Error()
	}
	if e.cpuClock.ByTool() {
		e.random.begin()
	}
	tick := time.Duration(max(e.Period, int64(time.Millisecond)))
	next := time.Now()
	for !e.Stopped.Load() {
		now := time.Now()
		if e.Watch(e.Nano(now)); !e.lives(now) {
			return e.end("the process ended")
		}
		if err := e.round(); err != nil { // the reader is gone; the target must still be restored
			e.events.End()
			e.disarm(lateLimit)
			return "the tool is gone: " + err.Error()
		}
		if e.cpuClock.ByTool() && !e.Idle() {
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

// These bound how long the engine sleeps: the threads sample themselves through their own timers, and the
// ring has room for those samples.
const (
	maxSleep = 500 * time.Millisecond // at low rates
	// samples of one thread during such a sleep, while the process is idle
	atOnceIdle = 10
	atOnce     = 4                    // the same while threads run
	ringHolds  = probe.RingSize >> 16 // samples with stacks of 64 KB that the ring has room for
	ringIsFull = probe.RingSize / 8   // bytes between two rounds from which on the engine wakes up often
)

// longestSleep returns how long the engine may sleep now.
func (e *Engine) longestSleep() time.Duration {
	if e.stretches.Open { // copies are large, and come often
		return min(max(e.stretches.Length/10, time.Millisecond), threads.Longest/4)
	}
	samples := int64(atOnce)
	if (e.Idle() || e.wakesRarely()) && !e.kernelTime.All {
		samples = atOnceIdle
	}
	return min(max(threads.Longest, time.Duration(samples*e.Period)), maxSleep)
}

// wakesRarely reports whether the engine sleeps for up to maxSleep although threads run. The ring must hold
// the samples of all CPUs for that long, and no thread that waits may be due more often.
func (e *Engine) wakesRarely() bool {
	return e.Config.WallEvery >= maxSleep && e.cpus*atOnceIdle <= ringHolds && !e.ringFilled
}

// dueBy returns the time up to which polls are made in a round at now. Where rounds are half a second apart,
// a poll that is due shortly after a round would otherwise wait for the next one.
func (e *Engine) dueBy(now time.Time) int64 {
	if e.wakesRarely() && e.longestSleep() == maxSleep && e.Period >= sampler.SlowPeriod &&
		!e.cpuClock.ByTool() {
		now = now.Add(maxSleep / 8)
	}
	return e.Nano(now)
}

// readRing takes the records from the probe's ring. If there are many, the engine wakes up often from then
// on.
func (e *Engine) readRing() {
	if e.file.Taken() > ringIsFull {
		e.ringFilled = true
	}
	e.file.Read(e.record)
}

// pace returns when the next round is due: at the next tick, or later if no poll is due before.
func (e *Engine) pace(tick, now time.Time) time.Time {
	if e.Due > 0 {
		if due := now.Add(time.Duration(e.Due - e.Nano(now))); due.After(tick) {
			tick = due
		}
		if late := now.Add(e.longestSleep()); tick.After(late) {
			tick = late
		}
	}
	if most := e.longestSleep(); e.Period >= sampler.SlowPeriod && e.Due > 0 {
		tick = now.Add(most - time.Duration(now.UnixNano())%most) // all engines on the machine wake together
	}
	if e.stretches.On && tick.After(e.stretches.Next) {
		tick = e.stretches.Next
	}
	if soon := now.Add(threads.ResumePolls); e.Unfinished() && tick.After(soon) {
		tick = soon
	}
	if tick.Before(now) {
		return now
	}
	return tick
}

// sleep waits for d; Stop ends a long wait. If events or copies are wanted, it reads the ring meanwhile,
// because their records are large.
func (e *Engine) sleep(d time.Duration) {
	if e.births.IsOpen() {
		e.sleepWatching(d)
		return
	}
	if e.Config.Events == 0 && !e.Config.Client {
		if d <= alarm.MaxThreadSleep {
			alarm.SleepThread(d)
		} else {
			e.Pause(d)
		}
		return
	}
	for d > 0 && !e.Stopped.Load() {
		step := min(d, events.EventStep)
		e.Pause(step)
		d -= step
		if e.file.Taken() > 0 {
			e.readRing()
		}
	}
}

func (e *Engine) open() error {
	e.Base.Open()
	if e.asked != nil {
		e.Stream.Out.Note("the kernel does not let seedwalk read the program's memory, so the probe in the program reads it")
	}
	e.refresh()
	return e.Stream.Push()
}

func (e *Engine) Close() {
	e.heartbeat.Stop()
	e.Alarm.Close()
	e.Stream.Raw.Close()
	for _, t := range e.Tasks {
		e.closeEvent(t)
	}
	e.births.Close()
	e.kernelTime.Close()
	e.inStretches.Close()
	if e.startup != nil {
		e.startup.End()
	}
	e.Kernel.Close(e.Tasks)
	e.mem.Close()
	e.Target.Close()
	e.file.Close()
}

// alive reports whether the process is the one that was opened. It checks that the probe's header is still
// mapped, which an exec undoes.
func (e *Engine) alive() bool {
	if e.asked != nil {
		return e.asked.Choice.Living()
	}
	base, tag := e.file.Where()
	b := e.Kernel.Buf[:4]
	return e.Target.Mem.ReadAt(b, base+24) &&
		uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24 == tag
}

// lives is alive with a cached result. A stale result is harmless for samples. Real-time signals are sent
// after a check by alive. A process that ends or calls exec runs, so it is not idle then.
func (e *Engine) lives(now time.Time) bool {
	good := reader.LivesFor
	if e.Idle() {
		good = reader.LivesIdle
	}
	if now.Sub(e.lived) < good {
		return true
	}
	e.lived = now
	return e.Living()
}

// How long samples may be buffered, and how many bytes: each write wakes the tool.
const (
	flushAfter = 50 * time.Millisecond
	flushIdle  = 250 * time.Millisecond
	flushMost  = 1 << 16
)

// waits reports whether the buffered output may wait for more.
func (e *Engine) waits(now time.Time) bool {
	after := max(flushAfter, min(10*time.Duration(e.Period), time.Second)) // several samples together
	if e.Idle() {
		after = max(flushIdle, after)
	}
	return now.Sub(e.flushed) < after && e.Stream.Out.Len() < flushMost
}

// refresh reads the mappings and updates what depends on them.
func (e *Engine) refresh() bool {
	if !e.Target.Refresh(e.PID) {
		return false
	}
	if e.Use() {
		e.file.SetPatch(e.Walker.HijackStub)
	}
	return true
}

// round handles new records and polls the threads that are due. threads.PollCalls bounds the polls of one
// round. It returns an error only if the stream cannot be written.
func (e *Engine) round() error {
	now := time.Now()
	e.Stats.Rounds++
	e.heartbeat.Round()
	e.renew()
	e.births.Update(e.Nano(now))
	e.readNewborns(e.Nano(now))
	if e.Stats.Rounds == 1 && e.startup == nil { // this round also begins to read the threads' clocks
		if e.ranBefore = e.Kernel.RanNow(); e.ranBefore > 0 && e.begins {
			e.missStart()
		}
	}
	if e.List(now, e.file.Helper()); e.fresh && now.Sub(e.threadListRead) >= e.seekPause {
		e.fresh = false
		e.objects()
		e.watchBirths()
	}
	if e.Target.Tables == nil {
		e.refresh()
	}
	e.readRing()
	if e.legacy > 0 && e.file.Chained() {
		e.leaveSIGURG()
	}
	e.readKernel()
	e.readStartup()
	e.file.Reap()
	e.events.WalkPending()
	e.followObjects(now)
	e.Polls(e.dueBy(now), e.poll)
	e.decideTimers(now)
	e.updateStretches(now)
	e.births.Silence(now)
	ready := e.Ready()
	if e.file.Hold(!ready || e.startup != nil); !ready {
		e.Due = 0 // the tables may be verified at any moment
	}
	if now.Sub(e.swept) > e.sweepEvery() {
		e.swept = now
		e.events.WatchOpen()
		e.write()
		e.accountProcess()
	}
	if e.waits(now) {
		return nil
	}
	if e.Stream.Out.Len() > 0 { // a live view scales the samples to the process's time
		e.accountProcess()
	}
	e.flushed = now
	err := e.Stream.Push()
	runtime.Gosched() // the reader may need this P, which SleepThread would keep
	return err
}

// sweepEvery returns the time between two messages about the engine's work. While the process is idle, they
// would be the only messages.
func (e *Engine) sweepEvery() time.Duration {
	if e.Idle() && e.Period >= sampler.SlowPeriod && e.Config.Events == 0 {
		return 10 * time.Second
	}
	return time.Second
}

// record handles one record of the probe's ring: an event, a thread's answer, or a sample to walk. The caller
// is probe.File.Read.
func (e *Engine) record(r *probe.Record) {
	e.renew()
	if r.Why == probe.Event {
		e.events.Take(r)
		return
	}
	e.ignored = 0
	t := e.Tasks[r.TID]
	if t == nil { // the thread has ended
		t = &threads.Task{TID: r.TID, Stat: -1, Place: -1, Slot: -1, Birth: e.births.BirthOf(r.TID)}
		defer e.Kernel.Shut(t)
	}
	e.Stats.Handler.Add(uint64(r.Nanos))
	t.Quiet = 0
	e.tookSignal(t)
	switch r.Why {
	case probe.Armed:
		if t.Slot >= 0 {
			e.bound(t, own(r))
			e.arm(t) // records the thread's answer
		}
		return
	case probe.Asked:
		t.Asked = false
	}
	if r.Why == probe.ClockHit {
		if t.Timed { // the event is about to be closed
			return
		}
		e.overflowed(t)
		if t.Birth.Covers(r.Time) && r.Since <= uint64(e.Period) {
			return // readNewborns samples its first period
		}
	}
	s := sampler.Sample{Capture: e.captured(t, r), Time: int64(r.Time) + e.events.Offset}
	drawn := r.Why == probe.Asked && t.Drawn.Open
	if !drawn {
		s.Cpu, s.Wall = e.timesOf(t, r)
	} else if !e.answered(t, &s) {
		return
	}
	if e.Hold(&s) {
		return
	}
	e.events.WalkPending()
	gap, _, ok := e.Walk(&s.Capture)
	if !ok || e.HoldWalked(&s, gap) {
		return
	}
	e.findObject(t)
	if r.Why != probe.Timer && r.Why != probe.ClockHit && !drawn {
		t.Stack.Activity = e.Stream.Activity
		t.Rested(gap, e.Stream.Frames)
		if c, ok := e.Kernel.Counters(t); ok {
			t.Read(c)
		}
	}
	t.Samples++
	e.SendAt(s.Time, t.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
}

// maxOverrun bounds the CPU time of one sample of a timer, in nanoseconds. Timers expire on the
// kernel's tick, which is at most 10 ms apart. More overruns mean that the thread blocked the signal.
const maxOverrun = 20_000_000

// timesOf returns the CPU time and the wall time that a sample represents.
func (e *Engine) timesOf(t *threads.Task, r *probe.Record) (cpu uint64, wall int64) {
	if r.Why == probe.Timer || r.Why == probe.ClockHit {
		cpu = t.Period(e.Period)
		if r.Why == probe.Timer {
			cpu = min(uint64(e.timerEach)*uint64(r.Weight), max(uint64(e.timerEach), maxOverrun))
		}
		t.Weighed += cpu
		e.Stats.Timed++
		e.Stats.Overruns += uint64(r.Weight - 1)
		return cpu, t.Worked(int64(cpu))
	}
	wall = t.Stood()
	if t.Refused {
		cpu, t.Unarmed = t.Unarmed, 0
		t.Weighed += cpu
		wall = max(wall, int64(cpu))
	}
	return cpu, wall
}

// WalkLater walks a sample that was held until the runtime's tables were verified. If the walk needs
// registers of the thread that are missing, the sample's wall time goes to the thread's next sample, unless
// the recording ends.
func (e *Engine) WalkLater(s *sampler.Sample) {
	gap, needs, ok := e.Walk(&s.Capture)
	if !ok || e.HoldWalked(s, gap) {
		return
	}
	t := e.Tasks[s.TID]
	if t != nil && needs && gap != merge.GapNone && !e.Ending {
		t.Unsampled += s.Wall
		return
	}
	if t != nil {
		t.Samples++
	}
	e.SendAt(s.Time, s.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
}

// captured prepares the probe's copy of a thread for the walker.
func (e *Engine) captured(t *threads.Task, r *probe.Record) walk.Capture {
	c := walk.Capture{TID: r.TID, Regs: target.Registers(e.Target.Arch, r.Regs),
		Stack: memory.Run{Addr: r.StackAddr, Data: r.Stack}, Low: t.Low, High: t.High,
		Cut: r.Flags&(probe.Cut) != 0, Extra: r.Extra}
	if r.Why != probe.ClockHit {
		c.Kernel = walk.MaybeInKernel
	}
	if r.Why != probe.Event {
		c.Objects = r.Payload
	}
	if sp := own(r); t.Slot >= 0 && (t.High == 0 || sp < t.Low && t.TID == uint32(e.PID)) {
		e.bound(t, sp) // the bounds are unknown, or the main thread's stack has grown
	}
	if r.Flags&probe.Foreign != 0 {
		c.Low, c.High = 0, 0
		c.Cut = c.Cut || len(r.Stack) >= 1<<16 || len(r.Below) >= 1<<16
		if len(r.Below) > 0 {
			e.more[0] = memory.Run{Addr: r.BelowAddr, Data: r.Below}
			c.More = e.more[:]
			e.Stats.Both++
		}
		e.Stats.Foreign++
	}
	if r.Flags&probe.Cut != 0 {
		e.Stats.Cut++
	}
	if r.Flags&probe.Patched != 0 {
		e.Stats.Patched++
	}
	return c
}

// own returns an address on the thread's own stack.
func own(r *probe.Record) uint64 {
	return cmp.Or(r.BelowAddr, r.StackAddr)
}

// leave ends the stream and restores the target. The end of the stream does not wait for threads that hardly
// get a processor.
func (e *Engine) leave() string {
	e.events.End()
	e.readRing()
	e.readKernel()
	e.readNewborns(e.Nano(time.Now()))
	e.endStartup()
	e.accountAll()
	restored := e.disarm(soonLimit)
	reason := e.end("the tool wants no more")
	if !restored && !e.disarm(lateLimit) && e.alive() {
		return sampler.HandlersLeft
	}
	return reason
}

func (e *Engine) end(reason string) string {
	e.readRing()
	e.readKernel()
	e.readNewborns(e.Nano(time.Now()))
	e.endStartup()
	e.Ending = true
	e.events.WalkPending()
	e.events.Last()
	e.last()
	e.kernelTime.CountLost()
	e.inStretches.CountLost()
	e.accountAll()
	e.write()
	e.NoteUnproven()
	e.Stream.Out.Bye(reason)
	e.Stream.Push()
	return reason
}

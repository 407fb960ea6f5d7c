package stopped

import (
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// Stopper samples any native process without running code in it. The kernel copies the stacks of running
// threads (package cpuring); a waiting thread is stopped while its stack is copied.
type Stopper struct {
	sampler.Base
	mem    *live.Process
	paused *paused.Process
	kernel threads.Files

	tasks map[uint32]*threads.Task
	due   []int // in this round
	now   map[uint32]paused.Thread
	swept time.Time

	stops, denied uint64

	rings     *cpuring.Sampler // nil: threads are sampled when they are stopped
	limited   bool             // some threads could not be added to the rings
	sinceBoot int64            // added to a record's time to get Unix time, nanoseconds
	ranBefore int64            // the process's clock when sampling began, -1 = unknown
	accounted uint64           // CPU time that has been sent
}

// New returns a sampler of a process.
func New(pid int, cfg sampler.Config, to io.Writer) (*Stopper, error) {
	if err := paused.Lookable(pid); err != nil {
		return nil, err
	}
	t, mem, err := target.Open(pid, context.Host())
	if err != nil {
		return nil, paused.Denied(pid)
	}
	e := &Stopper{mem: mem, kernel: threads.OpenFiles(pid), tasks: map[uint32]*threads.Task{},
		now: map[uint32]paused.Thread{}}
	e.Base = sampler.New(pid, cfg, t, to)
	e.Base.Plain = true
	e.Base.Living = func() bool { return unix.Kill(pid, 0) == nil }
	e.Base.Refresh = func() bool {
		if !t.Refresh(pid) {
			return false
		}
		e.Use()
		return true
	}
	e.paused = paused.Over(t, e.Walker)
	return e, nil
}

// Run samples until the process ends, Stop is called, or the tool disconnects. It returns the reason.
func (e *Stopper) Run() string {
	defer e.Close()
	e.Open()
	e.Base.Refresh() // before the rings: it may take long, and they would fill up
	e.openRings()
	return e.RunPaced(e.round, e.end)
}

func (e *Stopper) Close() {
	e.Alarm.Close()
	if e.rings != nil {
		e.rings.Close()
	}
	e.Stream.Raw.Close()
	e.kernel.Close(e.tasks)
	e.mem.Close()
	e.Target.Close()
}

func (e *Stopper) end(reason string) string {
	now := e.Nano(time.Now())
	e.Ending = true
	e.walkPending()
	e.endRings()
	for _, t := range e.tasks {
		if t.Rest && !e.Config.NoWall && now > t.Polled {
			e.Send(t.TID, merge.Gap(t.Stack.Gap), t.Stack.Frames, 0, now-t.Polled)
		}
	}
	e.write()
	e.NoteUnproven()
	e.Stream.Out.Bye(reason)
	e.Stream.Push()
	return reason
}

// stopsAtOnce is how many threads are stopped before Stop is noticed.
const stopsAtOnce = 8

// round stops the threads that have run since the last round, or with rings, those that have started to
// wait.
func (e *Stopper) round() error {
	now := e.Nano(time.Now())
	e.Stats.Rounds++
	if e.Target.Tables == nil && e.Stats.Rounds%64 == 1 {
		e.Base.Refresh()
	}
	e.list(now)
	e.readRings()
	e.due = e.due[:0]
	for tid, t := range e.tasks {
		if t.Due <= now && e.poll(t, now) {
			e.due = append(e.due, int(tid))
		}
	}
	if e.Target.Tables != nil {
		e.Target.Threads.Read()
	}
	e.walkPending()
	for due := range slices.Chunk(e.due, stopsAtOnce) {
		if e.Stopped.Load() { // each stop may take long on a busy machine
			break
		}
		live.StopEach(due, func(tid int, r *context.Registers, s live.Stood) {
			e.now[uint32(tid)] = e.paused.Read(uint32(tid), r, s)
		}, e.stoppedOne)
	}
	if time.Since(e.swept) > time.Second {
		e.swept = time.Now()
		e.write()
	}
	return e.Stream.Push()
}

// list keeps the tasks in step with the kernel's.
func (e *Stopper) list(now int64) {
	all, err := live.Threads(e.PID)
	if err != nil {
		return
	}
	for _, tid := range all {
		t := e.tasks[uint32(tid)]
		if t == nil {
			t = &threads.Task{TID: uint32(tid), Stat: -1, Place: -1, Polled: now, Born: now}
			e.tasks[t.TID] = t
			e.name(t)
			e.sampleCPU(t)
		} else if t.Rename(now) {
			e.name(t)
		}
	}
	if len(e.tasks) == len(all) {
		return
	}
	for tid, t := range e.tasks {
		if !slices.Contains(all, int(tid)) {
			e.Stats.Ended(t.Samples)
			e.kernel.Shut(t)
			delete(e.tasks, tid)
		}
	}
}

func (e *Stopper) name(t *threads.Task) {
	if name := e.kernel.Comm(t.TID); name != t.Name && name != "" {
		t.Name = name
		e.Stream.Out.Thread(&wire.Thread{TID: uint64(t.TID), Name: name})
	}
}

// poll samples a thread that has not run since its last sample, with the same stack. It reports whether to
// stop any other thread.
func (e *Stopper) poll(t *threads.Task, now int64) bool {
	c, ok := e.kernel.Counters(t)
	if !ok {
		return false
	}
	passed := now - t.Polled
	t.Polled = now
	e.Stats.Polls++
	if t.Rest && c == t.Last {
		t.Every = min(2*t.Every, threads.MaxRest)
		t.Due = now + t.Every
		e.Stats.Rests++
		if !e.Config.NoWall {
			t.Samples++
			e.Send(t.TID, merge.Gap(t.Stack.Gap), t.Stack.Frames, 0, passed)
		}
		return false
	}
	t.Rest, t.Every, t.Due = false, e.Period, now
	if t.Armed {
		t.Last, t.Seen = c, true
		return e.waits(t, passed)
	}
	t.Unsampled += passed
	if t.Seen {
		t.Unarmed += c.Cpu - t.Last.Cpu
	}
	t.Last, t.Seen = c, true
	return true
}

// waits reports whether a thread whose CPU time is sampled by a ring has started to wait. Such a thread is
// stopped for the stack of its wall time.
func (e *Stopper) waits(t *threads.Task, passed int64) bool {
	if e.Config.NoWall {
		return false
	}
	if w, _, _ := e.kernel.WhereIs(t); w == threads.Running {
		t.Ran += passed
		return false
	}
	t.Unsampled += passed
	return true
}

// stoppedOne walks the copy of a thread that has already been resumed.
func (e *Stopper) stoppedOne(s live.Stop) {
	defer e.relieveRings()
	tid := uint32(s.TID)
	th, ok := e.now[tid]
	t := e.tasks[tid]
	delete(e.now, tid)
	if !ok || t == nil {
		if s.Err != nil && !procstat.Read(e.PID).Ended() {
			e.denied++
		}
		return
	}
	e.stops++
	e.Stats.Handler.Add(uint64(s.Held.Nanoseconds()))
	c := walk.Capture{TID: tid, Regs: th.Regs, Stack: th.Stack, Cut: th.Cut,
		Extra: th.Extra, Kernel: walk.MaybeInKernel}
	cpu, wall := e.timesOf(t)
	if e.Hold(&sampler.Sample{Capture: c, Time: e.Nano(time.Now()), Cpu: cpu, Wall: wall}) {
		return
	}
	gap, _, ok := e.Base.Walk(&c)
	if !ok {
		return
	}
	e.Stats.Outside++
	t.Rested(gap, e.Stream.Frames)
	if now, ok := e.kernel.Counters(t); ok {
		t.Unarmed += now.Cpu - t.Last.Cpu
		t.Last = now // the stop itself counts as one of the thread's turns
	}
	t.Samples++
	e.Send(tid, gap, e.Stream.Frames, cpu, wall)
}

// timesOf returns the CPU time and the wall time that the next sample of a thread represents.
func (e *Stopper) timesOf(t *threads.Task) (cpu uint64, wall int64) {
	if t.Armed {
		return 0, t.Stood()
	}
	cpu, wall = t.Unarmed, t.Unsampled
	t.Unarmed, t.Unsampled = 0, 0
	if e.Config.NoCPU {
		cpu = 0
	}
	if e.Config.NoWall {
		wall = int64(cpu)
	}
	return cpu, wall
}

// walkPending walks the samples that were held until the runtime's tables were verified.
func (e *Stopper) walkPending() {
	if len(e.Pending.Samples) == 0 || !e.Ready() {
		return
	}
	for _, s := range e.Pending.Take() {
		if gap, _, ok := e.Base.Walk(&s.Capture); ok {
			e.Stats.Held++
			e.SendAt(s.Time, s.TID, gap, e.Stream.Frames, s.Cpu, s.Wall)
		}
	}
}

// write sends the totals.
func (e *Stopper) write() {
	s, w := &e.Stats, e.Stream.Out
	for _, c := range []struct {
		key   string
		value uint64
	}{
		{"probe_rounds", s.Rounds}, {"probe_visits", s.Polls}, {"probe_rests", s.Rests},
		{"probe_unproven", s.Unproven},
		{"probe_late", s.Late}, {"probe_uncopied", s.Uncopied}, {"probe_unnamed", e.Stream.Unnamed},
		{"probe_suspended", e.stops}, {"probe_hidden", e.denied}, {"probe_timed", s.Timed},
	} {
		w.Counter(c.key, c.value)
	}
	if e.rings != nil {
		w.Counter("probe_dropped", e.rings.Lost())
	}
	var n []uint64
	for _, t := range e.tasks {
		if t.Samples > 0 {
			n = append(n, t.Samples)
		}
	}
	s.Write(w, n)
}

package outside

import (
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// sampler walks the captures of one process and sends them, wherever they come
// from.
type sampler struct {
	cfg     Config
	pid     int
	t       *target
	w       *walker
	s       *output
	living  func() bool // whether the process is still the one that was opened
	refresh func() bool // reads anew what is mapped, if that is worth it
	// readsRest reads the rest of a stack whose copy is cut; nil: it cannot be read.
	readsRest func(c *capture) bool
	between   func() // takes what comes between rounds; nil: nothing does

	period  int64 // of a sample, nanoseconds
	began   time.Time
	stopped atomic.Bool
	alarm   alarm           // ends a pause
	known   bool            // a runtime's tables have been found
	plain   bool            // walk without a runtime too
	besides bool            // a library of Go has been told of
	extra   [extraRoom]byte // of the Thread of a thread that stands still
	stats   stats
	pending pending
	ending  bool // nothing is walked better later

	syscalls syscalls
}

// extraRoom is how much of the runtime's Thread is read of a thread that stands
// still, bytes.
const extraRoom = 1024

func newSampler(pid int, cfg Config, t *target, to io.Writer) sampler {
	w := newWalker(t.arch)
	w.unproven = t.unproven
	return sampler{cfg: cfg, pid: pid, t: t, w: w, s: newOutput(t, to), alarm: newAlarm(), period: int64(1e9 / cfg.RateHz), began: time.Now(),
		syscalls: newSyscalls(t.arch, t.mem)}
}

// open begins the stream.
func (e *sampler) open() {
	e.s.OpenRaw(e.cfg.Raw)
	e.s.Begin(e.hello())
}

// use has walks go by what the target is known to be now. It reports whether a
// runtime has just been found.
func (e *sampler) use() (found bool) {
	e.w.unmanaged.SetTable(e.t.table)
	e.w.code, e.w.special = codeOf(e.t.tables, e.t.steps), &e.t.special
	e.s.Modules(e.t.table)
	e.syscalls.forget()
	e.besideGo()
	if e.t.tables == nil || e.known {
		return false
	}
	e.known = true
	e.s.Out.Hello(e.hello())
	e.w.returnsBy(e.t.hijackStub())
	return true
}

// hello opens the stream, and again once the runtime is known.
func (e *sampler) hello() *wire.Hello {
	version := ""
	if e.cfg.Version != nil && e.t.path != "" {
		version = e.cfg.Version(e.t.path)
	}
	return &wire.Hello{PID: uint64(e.pid), Arch: e.t.arch.GOARCH(), Runtime: version, StartUnixNano: e.began.UnixNano(),
		RateMilliHz: uint64(e.cfg.RateHz * 1000)}
}

// walk walks a capture and leaves its frames in e.s.Frames. It returns false if the capture is no
// sample: the process has ended, or the kernel has not copied all of the stack.
func (e *sampler) walk(c *capture) (gap merge.Gap, needs, ok bool) {
	frames, gap, needs := e.w.walk(c)
	if gap != merge.GapNone && !needs && e.remapped() {
		frames, gap, needs = e.w.walk(c)
	}
	if gap == merge.GapTruncated && c.cut && e.readsRest != nil && e.readsRest(c) {
		frames, gap, needs = e.w.walk(c)
	}
	if gap != merge.GapNone && !e.ending && !e.living() {
		e.stats.late++ // the process has ended, and with it what the walk needs
		return gap, needs, false
	}
	if c.oneStack && (gap == merge.GapTruncated || gap == merge.GapNoInfo || gap == merge.GapUnreadable) {
		e.stats.uncopied++
		return gap, needs, false
	}
	e.markKernel(c.kernel, e.s.Encode(frames, 0))
	if e.s.Raw != nil && !(needs && gap != merge.GapNone) {
		e.raw(c, frames, gap)
	}
	return gap, needs, true
}

// remapped reports whether code has been mapped of which the last walk did not know.
func (e *sampler) remapped() bool {
	if e.refresh() {
		return true
	}
	if !e.t.learn(e.w.regs.IP()) {
		return false
	}
	e.use()
	return true
}

// ready reports whether walks can go through managed code, or never will. Without a runtime
// they can not, if one is meant to be there.
func (e *sampler) ready() bool {
	e.t.verify()
	switch {
	case e.ending:
		return true
	case e.t.tables == nil:
		return e.plain
	}
	return e.t.tables.MapProven() || e.t.tables.Refuted()
}

// hold keeps a sample that can be walked better later. It returns false if none can, or
// there is no room.
func (e *sampler) hold(s *stackSample) bool { return !e.ready() && e.pending.add(s) }

// holdWalked is hold of a sample whose walk has just ended with this gap: in code that may be
// read once it is proven.
func (e *sampler) holdWalked(s *stackSample, gap merge.Gap) bool {
	return gap == merge.GapUnproven && !e.ending && e.t.tables != nil && e.t.tables.Undecided() && e.pending.add(s)
}

func (e *sampler) raw(c *capture, frames []merge.Frame, gap merge.Gap) {
	k := clr.Capture{Thread: clr.Thread{TID: uint64(c.tid), StackLow: c.low, StackHigh: c.high}, Status: clr.Captured, Regs: c.regs,
		Stack: c.stack, Truncated: c.cut, Result: clr.E_FAIL}
	if len(c.more) > 0 {
		k.Below = c.more[0]
	}
	e.s.Raw.Sample(&k, &merge.Result{N: len(frames), Gap: gap}, frames)
}

// noteUnproven says why samples end at managed code, if any does.
func (e *sampler) noteUnproven() {
	if e.stats.unproven > 0 {
		e.s.Out.Note(strconv.FormatUint(e.stats.unproven, 10) + " samples end at managed code: " + e.t.unprovenWhy())
	}
}

// send appends a sample of a thread that was taken just now.
func (e *sampler) send(tid uint32, gap merge.Gap, frames []frame, cpu uint64, wall int64) {
	e.sendAt(time.Now().UnixNano(), tid, gap, frames, cpu, wall)
}

// sendAt appends a sample that was taken at a time in Unix nanoseconds.
func (e *sampler) sendAt(at int64, tid uint32, gap merge.Gap, frames []frame, cpu uint64, wall int64) {
	if gap == merge.GapUnproven {
		e.stats.unproven++
	}
	e.s.Out.Sample(&wire.Sample{TID: uint64(tid), TimeUnixNano: at, WallNanos: uint64(wall), CPUNanos: cpu,
		Gap: uint8(gap), Frames: frames})
	if e.s.Out.Len() > 1<<17 {
		e.s.flush()
	}
}

// paced makes a round each period until the process has ended, Stop, or the tool is
// gone, and says which. end writes what is left, for a tool that is there.
func (e *sampler) paced(round func() error, end func(reason string) string) string {
	next := time.Now()
	for !e.stopped.Load() {
		if !e.living() {
			return end("the process ended")
		}
		if err := round(); err != nil {
			return "the tool is gone: " + err.Error()
		}
		if next = next.Add(time.Duration(e.period)); next.Before(time.Now()) {
			next = time.Now()
		}
		e.sleep(time.Until(next))
	}
	return end("the tool wants no more")
}

// sleep sleeps until Stop, in pieces if something comes between rounds.
func (e *sampler) sleep(d time.Duration) {
	if e.cfg.Events == 0 || e.between == nil {
		e.pause(d)
		return
	}
	for d > 0 && !e.stopped.Load() {
		step := min(d, 2*time.Millisecond)
		e.pause(step)
		d -= step
		e.between()
	}
}

// pause waits so long or until Stop. It is one sleep: each wakes the Go scheduler, too,
// which on a quiet machine costs more than a look at what has come.
func (e *sampler) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	if e.alarm.set(d); !e.stopped.Load() { // Stop sets it anew, after it has said so
		e.alarm.wait()
	}
}

// Stop ends the sampling soon.
func (e *sampler) Stop() {
	e.stopped.Store(true)
	e.alarm.set(1)
}

// held is a stack that is sent again while its thread rests.
type held struct {
	frames []frame
	gap    uint8
}

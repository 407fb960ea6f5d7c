package sampler

import (
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// Base walks and sends the captures of one process, from any source.
type Base struct {
	Config  Config
	PID     int
	Target  *target.Process
	Walker  *walk.Walker
	Stream  *output
	Living  func() bool // reports whether the process is still the one that was opened
	Refresh func() bool // reads the mappings again if that is worthwhile
	// ReadsRest adds the rest of a truncated stack, or a part of it, by AddRest. If nil, no rest is read.
	ReadsRest func(c *walk.Capture) Rest
	rest      rest
	Between   func() // handles records between rounds; may be nil

	Period  int64 // of a sample, nanoseconds
	began   time.Time
	Stopped atomic.Bool
	Alarm   alarm.Alarm     // ends a pause
	known   bool            // a runtime's tables have been found
	Plain   bool            // walk even without a runtime
	besides bool            // a library of Go has been reported
	Extra   [extraRoom]byte // of the Thread of a blocked thread
	Stats   stats
	Pending pending
	Ending  bool   // no sample will get a better stack later
	noRoom  uint64 // CPU time that NoRoom has returned, nanoseconds

	Syscalls syscalls
	Async    *async // nil: samples have no async callers
}

// extraRoom is how many bytes of the runtime's Thread are read for a blocked thread.
const extraRoom = 1024

func New(pid int, cfg Config, t *target.Process, to io.Writer) Base {
	w := walk.New(t.Arch)
	w.Unproven, w.Unloaded, w.DropsMiddle = t.Unproven, t.Unloaded, true
	return Base{Config: cfg, PID: pid, Target: t, Walker: w, Stream: NewOutput(t, to), Alarm: alarm.New(),
		Period: int64(1e9 / cfg.RateHz), began: time.Now(),
		Syscalls: NewSyscalls(t.Arch, t.Mem)}
}

// Open starts the stream.
func (e *Base) Open() {
	e.Stream.OpenRaw(e.Config.Raw)
	e.Stream.Begin(e.hello())
}

// Nano returns a moment of the recording in Unix nanoseconds. Moments are as far apart as by the monotonic
// clock: the system's clock may be set during the recording.
func (e *Base) Nano(t time.Time) int64 {
	if e.began.IsZero() { // no recording
		return t.UnixNano()
	}
	return e.began.UnixNano() + int64(t.Sub(e.began))
}

// Use updates the walker from the target. It reports whether a runtime has just been found.
func (e *Base) Use() (found bool) {
	e.Walker.Unmanaged.SetTable(e.Target.Table)
	e.Walker.Code, e.Walker.Special = walk.CodeOf(e.Target.Tables, e.Target.Steps), &e.Target.Special
	e.Stream.Modules(e.Target.Table)
	e.Syscalls.forget()
	e.besideGo()
	if e.Target.Tables == nil || e.known {
		return false
	}
	e.known = true
	e.Stream.Out.Hello(e.hello())
	e.Walker.SetStubs(e.Target.Stubs())
	return true
}

// hello returns the message that starts the stream, and that is repeated once the runtime is known.
func (e *Base) hello() *wire.Hello {
	version := ""
	if e.Config.Version != nil && e.Target.Path != "" {
		version = e.Config.Version(e.Target.Path)
	}
	return &wire.Hello{PID: uint64(e.PID), Arch: e.Target.Arch.GOARCH(), Runtime: version,
		StartUnixNano: e.began.UnixNano(),
		RateMilliHz:   uint64(e.Config.RateHz * 1000)}
}

// Walk walks a capture and leaves its frames in e.Stream.Frames, with the async callers if they are read. gap
// is the reason why the stack is incomplete, or GapNone. needs is true if the walk ended because c lacks the
// thread's registers: a capture with registers may give more frames. ok is false if the capture gives no
// sample. Then the process has ended, or the walk cannot continue on the one stack that the kernel copied.
// The engine's thread calls it.
func (e *Base) Walk(c *walk.Capture) (gap merge.Gap, needs, ok bool) {
	e.Target.KeepPages()
	defer e.Target.DropPages()
	frames, gap, needs := e.walkOnce(c)
	if gap != merge.GapNone && !needs && e.remapped() {
		e.Target.KeepPages()
		frames, gap, needs = e.walkOnce(c)
	}
	if e.ReadsRest != nil && e.endedAtCopy(c, gap) {
		frames, gap, needs = e.walkRest(c, frames, gap, needs)
	}
	if gap != merge.GapNone && !e.Ending && !e.Living() {
		e.Stats.Late++ // the process has ended, and its memory with it
		return gap, needs, false
	}
	if c.OneStack && (gap == merge.GapTruncated || gap == merge.GapNoInfo || gap == merge.GapUnreadable) {
		e.Stats.Uncopied++
		return gap, needs, false
	}
	e.markKernel(c.Kernel, e.Stream.Encode(frames, 0))
	if e.Async != nil {
		e.addCallers(c)
	}
	if e.Stream.Raw != nil && !(needs && gap != merge.GapNone) {
		e.raw(c, frames, gap)
	}
	return gap, needs, true
}

func (e *Base) walkOnce(c *walk.Capture) ([]merge.Frame, merge.Gap, bool) {
	if e.Async != nil {
		e.Async.reset()
	}
	return e.Walker.Walk(c)
}

// remapped reports whether code has been mapped that the last walk did not know.
func (e *Base) remapped() bool {
	if e.Refresh() {
		return true
	}
	if !e.Target.Learn(e.Walker.Regs.IP()) {
		return false
	}
	e.Use()
	return true
}

// Ready reports whether walks can pass through managed code, or never will. Before an expected runtime is
// found, they cannot.
func (e *Base) Ready() bool {
	e.Target.Verify()
	switch {
	case e.Ending:
		return true
	case e.Target.Tables == nil:
		return e.Plain
	}
	return e.Target.Tables.MapProven() || e.Target.Tables.Refuted()
}

// Hold holds a sample that may get a better stack later. It returns false if that cannot happen, or there is
// no room.
func (e *Base) Hold(s *Sample) bool { return !e.Ready() && e.Pending.Add(s) }

// HoldWalked is Hold for a sample whose walk has just ended with this gap, in code that may become readable
// after verification.
func (e *Base) HoldWalked(s *Sample, gap merge.Gap) bool {
	return gap == merge.GapUnproven && !e.Ending && e.Target.Tables != nil && e.Target.Tables.Undecided() &&
		e.Pending.Add(s)
}

func (e *Base) raw(c *walk.Capture, frames []merge.Frame, gap merge.Gap) {
	k := clr.Capture{Thread: clr.Thread{TID: uint64(c.TID), StackLow: c.Low, StackHigh: c.High},
		Status: clr.Captured, Regs: c.Regs,
		Stack: c.Stack, Truncated: c.Cut, Result: clr.E_FAIL}
	if len(c.More) > 0 {
		k.Below = c.More[0]
	}
	e.Stream.Raw.Sample(&k, &merge.Result{N: len(frames), Gap: gap}, frames)
}

// NoteUnproven notes why samples end at managed code, if any do.
func (e *Base) NoteUnproven() {
	if e.Stats.Unproven > 0 {
		why := e.Target.UnprovenWhy()
		if why == "" {
			why = "the runtime's tables could not be read any more, most likely because the process had ended"
		}
		e.Stream.Out.Note(unprovenNote(e.Stats.Unproven, why))
	}
}

func unprovenNote(n uint64, why string) string {
	if n == 1 {
		return "1 sample ends at managed code: " + why
	}
	return strconv.FormatUint(n, 10) + " samples end at managed code: " + why
}

// Send appends a sample of a thread that was taken just now.
func (e *Base) Send(tid uint32, gap merge.Gap, frames []wire.Frame, cpu uint64, wall int64) {
	e.SendAt(e.Nano(time.Now()), tid, gap, frames, cpu, wall)
}

// SendAt appends a sample that was taken at the given time, Unix nanoseconds.
func (e *Base) SendAt(at int64, tid uint32, gap merge.Gap, frames []wire.Frame, cpu uint64, wall int64) {
	if gap == merge.GapUnproven {
		e.Stats.Unproven++
	}
	e.Stream.Out.Sample(&wire.Sample{TID: uint64(tid), TimeUnixNano: at,
		WallNanos: uint64(wall), CPUNanos: cpu,
		Gap: uint8(gap), Frames: frames, Activity: e.Stream.Activity})
	if e.Stream.Out.Len() > 1<<17 {
		e.Stream.Push()
	}
}

// RunPaced makes one round per period until the process ends, Stop is called, or the tool disconnects, and
// returns the reason. end sends the remaining data if the tool is connected.
func (e *Base) RunPaced(round func() error, end func(reason string) string) string {
	next := time.Now()
	for !e.Stopped.Load() {
		if !e.Living() {
			return end("the process ended")
		}
		if err := round(); err != nil {
			return "the tool is gone: " + err.Error()
		}
		if next = next.Add(time.Duration(e.Period)); next.Before(time.Now()) {
			next = time.Now()
		}
		e.sleep(time.Until(next))
	}
	return end("the tool wants no more")
}

// sleep waits for d or until Stop, in pieces if Between is set and events are wanted, or copies of a client.
func (e *Base) sleep(d time.Duration) {
	if e.Config.Events == 0 && !e.Config.Client || e.Between == nil {
		e.Pause(d)
		return
	}
	for d > 0 && !e.Stopped.Load() {
		step := min(d, 2*time.Millisecond)
		e.Pause(step)
		d -= step
		e.Between()
	}
}

// Pause waits for d or until Stop. It is a single sleep: waking up involves Go's scheduler, which on an idle
// machine costs more than reading the records.
func (e *Base) Pause(d time.Duration) {
	if d <= 0 {
		return
	}
	if e.Alarm.Set(d); !e.Stopped.Load() { // Stop sets it again after the flag
		e.Alarm.Wait()
	}
}

// Stop ends the sampling soon. It may be called at any time.
func (e *Base) Stop() {
	e.Stopped.Store(true)
	e.Alarm.Set(1)
}

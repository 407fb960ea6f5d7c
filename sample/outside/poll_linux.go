package outside

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
)

// How often threads are listed and polled.
const (
	// minimum between two readings of the runtime's list for one thread's Thread
	seekThreadEvery = 20 * time.Millisecond
	seekPeriods     = 10    // minimum number of periods between any two readings of that list
	seekCost        = 25000 // nanoseconds of a period that these readings may take, on average

	armAfter   = 4       // periods of CPU time after which a thread is armed even if it sleeps
	maxIgnored = 8       // signals taken but not answered before the engine changes to another signal
	youngest   = 1000000 // nanoseconds of CPU time before a thread gets a timer
	maxQuiet   = 16      // periods (ticks if longer) that an armed thread may run without a sample
	fewQuiet   = 2       // the same before its first answer, and after faults have left its signals blocked
	// bound of the doublings of the time between polls of an armed thread that show no stack
	maxDoublings = 2
	askEvery     = 50000000 // nanoseconds between signals to an armed thread for the registers of a stack
	patience     = 8        // polls of a thread that cannot be asked before its incomplete stack is sent
)

func (e *Engine) name(t *threads.Task) {
	if name := e.Kernel.Comm(t.TID); name != t.Name && name != "" {
		t.Name = name
		e.Stream.Out.Thread(&wire.Thread{TID: uint64(t.TID), Name: name})
	}
}

// ended removes a thread that has ended, after its last samples.
func (e *Engine) ended(t *threads.Task) {
	e.readRing()
	e.readKernel()
	e.gone(t)
}

// gone removes a thread whose samples have been read.
func (e *Engine) gone(t *threads.Task) {
	stood := t.StoodTill()
	e.sampleResting(t, t.Polled, stood)
	e.account(t, true)
	e.closeEvent(t)
	e.random.Close(t)
	e.Kernel.Shut(t)
	e.Stats.Ended(t.Samples)
	e.file.Free(t.TID)
}

// findObject reads the runtime's list of threads again if a thread with managed frames was not in it.
func (e *Engine) findObject(t *threads.Task) {
	if t.Thread == 0 && e.Walker.ManagedFrames && e.mayObjects() {
		e.objects()
	}
}

// mayObjects reports whether the runtime's list of threads may be read again for one thread.
func (e *Engine) mayObjects() bool {
	return time.Since(e.threadListRead) > max(seekThreadEvery, e.seekPause)
}

// objects finds the runtime's Thread of each thread, and passes it to the probe for a thread with a
// slot.
func (e *Engine) objects() {
	if e.Target.Tables == nil {
		return
	}
	began := time.Now()
	e.Target.Threads.Read()
	e.threadListRead = time.Now()
	took := e.threadListTime.Add(e.threadListRead.Sub(began))
	e.seekPause = max(time.Duration(max(target.MapsPause, e.Period/seekCost))*took,
		seekPeriods*time.Duration(e.Period))
	for tid, t := range e.Tasks {
		if o := e.Target.Threads.Objects[tid]; o != t.Thread {
			t.Thread = o
			if t.Slot >= 0 {
				e.file.SetExtra(t.Slot, o)
			}
		}
	}
}

// poll reads the counters of a thread that is due. A resting thread is sampled by its known stack, a blocked
// one from outside, and a running one samples itself. Wall time without a sample goes to a later sample.
func (e *Engine) poll(t *threads.Task) {
	now := e.Nano(time.Now())
	if e.Config.NoCPU && e.Config.NoWall {
		t.Due = now + int64(threads.Longest)
		return
	}
	s, ok := e.Look(t, now, e.between(t))
	e.sampleResting(t, now-s.Passed, s.Stood)
	if !ok {
		return
	}
	if s.Rested {
		e.sampleResting(t, now, s.Passed)
		return
	}
	e.age(t, now)
	e.kernelTime.Adapt(t, e.Period, e.readKernel)
	if e.lostTimer(t) {
		e.arm(t)
	}
	if t.Armed {
		e.Stats.Busy += s.Used
		e.silent(t, s.Used)
		e.noteBlocked(t)
	} else {
		t.Unarmed += s.Used
	}
	e.Stats.Polls++
	w, sp, ip := e.whereIs(t)
	left := s.Leave(w)
	e.sampleResting(t, now-s.Passed, left)
	if w == threads.Running {
		t.Ran += s.Passed
	} else {
		t.Unsampled += s.Passed
	}
	if e.answers(t) {
		e.unseen(t)
		return
	}
	switch w {
	case threads.Running:
		e.backOff(t)
		e.arm(t)
		return
	case threads.Ended:
		return
	case threads.Hidden:
		e.Stats.Hidden++
		e.unseen(t)
		return
	}
	if t.Unarmed > armAfter*uint64(e.Period) {
		e.arm(t)
	}
	if !e.Config.NoWall {
		e.blocked(t, sp, ip, s.Counters)
	}
}

// between returns the time between two polls of a thread that runs now and then, nanoseconds. Polls of a
// thread with an event sample only its waits.
func (e *Engine) between(t *threads.Task) int64 {
	if t.Event == nil && !t.Stretched && !t.Timed {
		return e.Period
	}
	return max(e.Period, int64(e.Config.WallEvery))
}

// sampleResting sends a sample with the thread's known stack, which it had until the given time.
func (e *Engine) sampleResting(t *threads.Task, till, wall int64) {
	if wall > 0 && !e.Config.NoWall {
		e.Stats.Rests++
		e.Stream.Activity = t.Stack.Activity
		t.Samples++
		e.SendAt(till, t.TID, merge.Gap(t.Stack.Gap), t.Stack.Frames, 0, wall)
	}
}

// backOff delays the next poll of a thread whose stack this poll could not read. The thread runs, or waits
// too briefly, so a poll a moment later would hardly find it waiting. No wall time is lost: the next poll
// covers it.
func (e *Engine) backOff(t *threads.Task) {
	if t.Misses = min(t.Misses+1, maxDoublings); t.Armed {
		t.Due = threads.PollAfter(t.Polled, e.between(t), t.Misses)
	}
}

// whereIs returns the position of a thread. For an emulated program it is hidden: the kernel reports the
// emulator's position.
func (e *Engine) whereIs(t *threads.Task) (w threads.Where, sp, ip uint64) {
	if e.Target.Guest != nil {
		return threads.Hidden, 0, 0
	}
	return e.Kernel.WhereIs(t)
}

// last accounts for the time since the last polls: a thread that rested then is assumed to have rested until
// the end.
func (e *Engine) last() {
	now := e.Nano(time.Now())
	for _, t := range e.Tasks {
		if t.Rest {
			e.sampleResting(t, now, now-t.Polled)
			t.Polled = now
		}
	}
}

// blocked samples a blocked thread. sp and ip are its position, and before its counters at that time. There
// is no sample if the thread runs on meanwhile, or has to send its registers first.
func (e *Engine) blocked(t *threads.Task, sp, ip uint64, before threads.Counters) {
	if t.Asked {
		if t.Slot >= 0 && e.file.Answered(t.Slot) {
			t.Asked = false
		} else {
			return
		}
	}
	soon := t.Armed && t.Polled < t.AskAgain // asked a moment ago and still running on
	if soon && ip == t.AsksAt {
		e.backOff(t)
		return
	}
	c, ok := e.copyBlocked(t, sp, ip, before)
	if !ok || e.holdBlocked(t, &c) {
		return
	}
	if c.Cut {
		e.hasStayed = func() bool { return e.stayed(t, sp, ip, before) }
	}
	gap, needs, ok := e.Walk(&c)
	if e.hasStayed = nil; !ok {
		return
	}
	e.findObject(t)
	if gap != merge.GapNone && needs && e.mayInterrupt(t) {
		t.AsksAt = ip
		if soon {
			e.backOff(t)
			return
		}
		if !e.stayed(t, sp, ip, before) { // it may sleep elsewhere by now
			return
		}
		switch e.ask(t, probe.OpSample) {
		case sent:
			t.Asked, t.AskAgain = true, t.Polled+askEvery
			return
		case later:
			return
		case cannot:
			if t.Unanswered++; t.Unanswered < patience {
				return
			}
		}
	}
	t.Unanswered, t.Misses = 0, 0
	e.readActivity(t, sp, ip, before)
	t.Stack.Activity = e.Stream.Activity
	if t.Rested(gap, e.Stream.Frames); gap == merge.GapUnproven {
		// otherwise the next poll may see more
		t.Rest = e.Target.Tables != nil && !e.Target.Tables.Undecided()
	}
	e.Stats.Outside++
	t.Samples++
	e.Send(t.TID, gap, e.Stream.Frames, 0, t.Stood())
}

// mayInterrupt reports whether a blocked thread, whose stack is in e.Stream.Frames, may get a signal. A
// signal ends sleeps and polls with EINTR. The runtime's own code repeats them, other code may not.
func (e *Engine) mayInterrupt(t *threads.Task) bool {
	if !threads.EndsBySignal(t.Call) {
		return true
	}
	for _, f := range e.Stream.Frames {
		if f.Module == e.Stream.Frames[0].Module { // the C library
			continue
		}
		if m := e.Target.Code(f.Addr()); m != nil {
			return m.Path == e.Target.Path || runtimeLibrary.MatchString(m.Path)
		}
		break
	}
	return slices.Contains(runtimeThreads, t.Name)
}

// runtimeLibrary matches the paths of the runtime's libraries that sleep or poll.
var runtimeLibrary = regexp.MustCompile(`/lib(coreclr|clrgc(exp)?|System\.[A-Za-z.]+)\.so( \(deleted\))?$`)

// runtimeThreads are the names of threads that poll and run the runtime's native code only.
var runtimeThreads = []string{".NET EventPipe", ".NET SynchManag", ".NET SigHandler"}

// holdBlocked holds the stack of a blocked thread until it can be walked. It returns false if the stack
// can be walked now, or there is no room.
func (e *Engine) holdBlocked(t *threads.Task, c *walk.Capture) bool {
	if e.Ready() {
		return false
	}
	s := sampler.Sample{Capture: *c, Time: e.Nano(time.Now()), Wall: t.Stood()}
	if !e.Pending.Add(&s) {
		t.Unsampled += s.Wall
		return false
	}
	e.Stats.Outside++
	return true
}

// copyBlocked copies the stack of a thread that is blocked at sp and ip. It returns false if the
// stack cannot be read or the thread has run since its counters were before.
func (e *Engine) copyBlocked(t *threads.Task, sp, ip uint64, before threads.Counters) (walk.Capture, bool) {
	c, ok := e.readStack(t, sp, ip)
	if !ok {
		e.Stats.Unreadable++
		return c, false
	}
	e.readThread(t, &c)
	if e.inProbe(ip) || !e.stayed(t, sp, ip, before) {
		e.Stats.Changed++
		e.backOff(t)
		return c, false
	}
	return c, true
}

// readThread copies the runtime's Thread if the runtime has replaced a return address on the stack of c. The
// thread must not have moved since the copy: once it runs on, its Thread holds the next return address.
func (e *Engine) readThread(t *threads.Task, c *walk.Capture) {
	if !e.Walker.Patched(&c.Stack) {
		return
	}
	if t.Thread == 0 && e.mayObjects() {
		e.objects()
	}
	if t.Thread != 0 {
		c.Extra = e.Extra[:max(0, e.Target.Mem.ReadSome(e.Extra[:], t.Thread))]
	}
}

// stayed reports whether a thread is still blocked at sp and ip and has not run since its counters were
// before.
func (e *Engine) stayed(t *threads.Task, sp, ip uint64, before threads.Counters) bool {
	after, ok := e.Kernel.Counters(t)
	w, sp2, ip2 := e.whereIs(t)
	return ok && after == before && w == threads.Blocked && sp2 == sp && ip2 == ip
}

// inProbe reports whether ip is in the probe's own code. A thread waits there for the kernel only, and
// briefly.
func (e *Engine) inProbe(ip uint64) bool {
	m := e.Target.Code(ip)
	// in a chroot, the path begins with that folder
	return m != nil && e.probe != "" && strings.HasSuffix(strings.TrimSuffix(m.Path, " (deleted)"), e.probe)
}

// readStack reads the stack of a blocked thread.
func (e *Engine) readStack(t *threads.Task, sp, ip uint64) (walk.Capture, bool) {
	c := walk.Capture{TID: t.TID, Low: t.Low, High: t.High, Partial: true, Kernel: walk.InKernel}
	if c.High == 0 || sp < c.Low || sp >= c.High {
		m := e.Target.Mapping(sp)
		if m == nil && e.refresh() {
			m = e.Target.Mapping(sp)
		}
		if m == nil {
			return c, false
		}
		c.Low, c.High = m.Start, m.End
	}
	c.Regs = walk.StoppedAt(e.Target.Arch, sp, ip)
	from := max(sp-walk.RedZone, c.Low)
	size := min(c.High-from, probe.RingSize)
	c.Cut = size < c.High-from
	n := 0
	for n < int(size) { // a stack is rarely large, its mapping is
		step := min(max(n, walk.FirstStack), int(size)-n)
		if n+step > len(e.bytes) {
			e.bytes = append(e.bytes, make([]byte, n+step-len(e.bytes))...)
		}
		got := e.Target.Mem.ReadSome(e.bytes[n:n+step], from+uint64(n))
		if n += got; got < step {
			break
		}
	}
	c.Stack = memory.Run{Addr: from, Data: e.bytes[:n]}
	return c, n > 0
}

// bound finds the bounds of a thread's own stack: the mapping of its stack pointer, up to where the C library
// keeps the thread's data. Only such memory is sure to stay mapped while the thread lives.
func (e *Engine) bound(t *threads.Task, sp uint64) {
	_, _, base := e.file.Armed(t.Slot)
	m := e.Target.Mapping(sp)
	if m == nil && e.refresh() {
		m = e.Target.Mapping(sp)
	}
	switch main := t.TID == uint32(e.PID); {
	case m == nil:
		return
	case main && m.Path == "[stack]":
		t.Low, t.High = m.Start, m.End
	case !main && base > sp && base < m.End: // the main thread's data may lie in the mapping of a fiber
		t.Low, t.High = m.Start, base&^7
	default:
		return
	}
	e.file.SetStack(t.Slot, t.Low, t.High)
}

// LookAt leaves the stack of a blocked thread in e.Stream.Frames, and returns the reason if it is incomplete.
// It returns false if the thread is not blocked or its stack cannot be read. Package events calls it.
func (e *Engine) LookAt(tid uint32) (merge.Gap, bool) {
	t := e.Tasks[tid]
	if t == nil {
		t = &threads.Task{TID: tid, Stat: -1, Place: -1}
		defer e.Kernel.Shut(t)
	}
	at, sp, ip := e.whereIs(t)
	if at != threads.Blocked {
		return 0, false
	}
	c, ok := e.readStack(t, sp, ip)
	if !ok {
		return 0, false
	}
	gap, _, ok := e.Walk(&c)
	return gap, ok
}

// Resting returns the last sample of a thread that has rested since, false if the thread has run.
func (e *Engine) Resting(tid uint32) (stream.Held, bool) {
	if t := e.Tasks[tid]; t != nil && t.Rest {
		return t.Stack, true
	}
	return stream.Held{}, false
}

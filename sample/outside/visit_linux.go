package outside

import (
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// How often threads are looked for and visited.
const (
	listEvery = time.Second // where their number has not changed

	seekThreadEvery = 20 * time.Millisecond // between readings of the runtime's list for the Thread of one thread

	maxRest    = int64(4 * time.Second)
	mostOpen   = 1 << 13  // schedstat files kept open
	armAfter   = 4        // periods of processor time that a thread may use before it is armed though it sleeps
	maxUnheard = 8        // signals that were taken and not answered before another is used
	youngest   = 1000000  // nanoseconds of processor time before a thread is worth a timer
	maxQuiet   = 16       // periods of an armed thread without a sample
	fewQuiet   = 2        // the same, where faults have left its signals blocked before
	slowTick   = 10000000 // nanoseconds: of a kernel with 100 Hz
	vainMost   = 2        // doublings of the time between visits to an armed thread that show no stack
	askEvery   = 50000000 // between signals to an armed thread for the registers of a stack
	patience   = 8        // visits to a thread that cannot be asked before its stack is shown as far as it goes
)

func (e *Engine) name(t *task) {
	if name := e.kernel.comm(t.tid); name != t.name && name != "" {
		t.name = name
		e.s.Out.Thread(&wire.Thread{TID: uint64(t.tid), Name: name})
	}
}

// gone forgets a thread that has ended.
func (e *Engine) gone(t *task) {
	e.stoodFor(t, t.stoodTill())
	e.account(t, true)
	e.closeEvent(t)
	e.random.close(t)
	e.kernel.shut(t)
	e.stats.ended(t.samples)
	e.file.Free(t.tid)
}

// findObject looks for the runtime's Thread of a thread with managed frames that had none when
// the list was read.
func (e *Engine) findObject(t *task) {
	if t.thread == 0 && e.w.managedFrames && e.mayObjects() {
		e.objects()
	}
}

// mayObjects reports whether the runtime's list of threads may be read again for one thread.
func (e *Engine) mayObjects() bool {
	return time.Since(e.sought) > max(seekThreadEvery, e.seekRest)
}

// objects finds the runtime's Thread of each thread that is asked.
func (e *Engine) objects() {
	if e.t.tables == nil {
		return
	}
	began := time.Now()
	e.t.threads.read()
	e.sought = time.Now()
	e.seekRest = mapsPause * e.sought.Sub(began)
	for tid, t := range e.tasks {
		if o := e.t.threads.objects[tid]; o != t.thread {
			t.thread = o
			if t.slot >= 0 {
				e.file.SetExtra(t.slot, o, e.file.ExtraRoom())
			}
		}
	}
}

// visit looks at a thread: one that rests is sampled by what is known of it, one
// that is blocked from outside, one that runs samples itself.
func (e *Engine) visit(t *task) {
	now := time.Now().UnixNano()
	if e.cfg.NoCPU && e.cfg.NoWall {
		t.due = now + int64(longest)
		return
	}
	s, ok := e.look(t, now, e.period)
	e.stoodFor(t, s.stood)
	if !ok {
		return
	}
	if s.rested {
		e.stats.rests++
		e.stoodFor(t, s.passed)
		return
	}
	if t.armed {
		e.stats.busy += s.used
		e.silent(t, s.used)
	} else {
		t.unarmed += s.used
	}
	e.stats.visits++
	w, sp, ip := e.whereIs(t)
	if w == running {
		t.ran += s.passed
	} else {
		t.owed += s.passed
	}
	if e.answers(t) {
		e.unseen(t)
		return
	}
	switch w {
	case running:
		e.backOff(t)
		e.arm(t)
		return
	case ended:
		return
	case hidden:
		e.stats.hidden++
		e.unseen(t)
		return
	}
	if t.unarmed > armAfter*uint64(e.period) {
		e.arm(t)
	}
	if !e.cfg.NoWall {
		e.blocked(t, sp, ip, s.counters)
	}
}

// stoodFor samples a thread by the stack that is known of it.
func (e *Engine) stoodFor(t *task, wall int64) {
	if wall > 0 && !e.cfg.NoWall {
		e.sendOf(t, merge.Gap(t.stack.gap), t.stack.frames, 0, wall)
	}
}

// backOff puts off the next visit to a thread that samples itself, since this one has shown
// no stack: one that runs, or waits for too short a time to be looked at, hardly stands
// still the moment after. Its wall time is not lost: the next visit has the more.
func (e *Engine) backOff(t *task) {
	if t.vain = min(t.vain+1, vainMost); t.armed {
		t.due = afterVain(t.visited, e.period, t.vain)
	}
}

// afterVain is when a thread is visited next after so many visits in vain: together with
// others, and within longest unless samples are rarer than that.
func afterVain(visited, period int64, vain int) int64 {
	step := max(period, int64(time.Millisecond))
	for step < int64(longest)/2+1 && vain > 0 {
		step *= 2
		vain--
	}
	return (visited + 2*step - 1) / step * step
}

// whereIs is where a thread stands. The kernel tells it of an emulator, not of what that runs.
func (e *Engine) whereIs(t *task) (w where, sp, ip uint64) {
	if e.t.guest != nil {
		return hidden, 0, 0
	}
	return e.kernel.whereIs(t)
}

// last accounts for the time since the last visits: what rested then is taken to
// have rested until the end.
func (e *Engine) last() {
	now := time.Now().UnixNano()
	for _, t := range e.tasks {
		if t.rest {
			e.stoodFor(t, now-t.visited)
			t.visited = now
		}
	}
}

// blocked samples a thread that stands still.
func (e *Engine) blocked(t *task, sp, ip uint64, before counters) {
	if t.asked {
		if t.slot >= 0 && e.file.Answered(t.slot) {
			t.asked = false
		} else {
			return
		}
	}
	soon := t.armed && t.visited < t.askAgain // it has been asked a moment ago, and goes on and on
	if soon && ip == t.asksAt {
		e.backOff(t)
		return
	}
	c, ok := e.copyBlocked(t, sp, ip, before)
	if !ok || e.holdBlocked(t, &c) {
		return
	}
	gap, needs, ok := e.walk(&c)
	if !ok {
		return
	}
	e.findObject(t)
	if gap != merge.GapNone && needs {
		t.asksAt = ip
		if soon {
			e.backOff(t)
			return
		}
		switch e.ask(t, probe.OpSample) {
		case sent:
			t.asked, t.askAgain = true, t.visited+askEvery
			return
		case later:
			return
		case cannot:
			if t.unanswered++; t.unanswered < patience {
				return
			}
		}
	}
	t.unanswered, t.vain = 0, 0
	if t.rested(gap, e.s.Frames); gap == merge.GapUnproven {
		t.rest = e.t.tables != nil && !e.t.tables.Undecided() // else the next visit may see more
	}
	e.stats.outside++
	e.sendOf(t, gap, e.s.Frames, 0, t.stood())
}

// holdBlocked holds the stack of a blocked thread until it can be walked.
func (e *Engine) holdBlocked(t *task, c *capture) bool {
	if e.ready() {
		return false
	}
	s := stackSample{capture: *c, time: time.Now().UnixNano(), wall: t.stood()}
	if !e.pending.add(&s) {
		t.owed += s.wall
		return false
	}
	e.stats.outside++
	return true
}

// copyBlocked copies the stack of a thread that is blocked at sp and ip. It returns false if the
// stack cannot be read or the thread has run since its counters were before.
func (e *Engine) copyBlocked(t *task, sp, ip uint64, before counters) (capture, bool) {
	c, ok := e.readStack(t, sp, ip)
	if !ok {
		e.stats.unreadable++
		return c, false
	}
	e.readThread(t, &c)
	if e.inProbe(ip) || !e.stayed(t, sp, ip, before) {
		e.stats.changed++
		e.backOff(t)
		return c, false
	}
	return c, true
}

// readThread copies the runtime's Thread if the runtime has replaced a return address on the
// stack of c. The thread must still stand where the stack was copied: once it goes on, its
// Thread says where the next return address is.
func (e *Engine) readThread(t *task, c *capture) {
	if !e.w.patched(&c.stack) {
		return
	}
	if t.thread == 0 && e.mayObjects() {
		e.objects()
	}
	if t.thread != 0 {
		c.extra = e.extra[:max(0, e.t.mem.ReadSome(e.extra[:], t.thread))]
	}
}

// stayed reports whether a thread has not run since its counters were before and is
// still blocked at sp and ip.
func (e *Engine) stayed(t *task, sp, ip uint64, before counters) bool {
	after, ok := e.kernel.counters(t)
	w, sp2, ip2 := e.whereIs(t)
	return ok && after == before && w == blocked && sp2 == sp && ip2 == ip
}

// inProbe reports whether a thread stands in the probe's own code: it waits there
// for the kernel only, and not for long.
func (e *Engine) inProbe(ip uint64) bool {
	m := e.t.code(ip)
	return m != nil && strings.TrimSuffix(m.Path, " (deleted)") == e.probe
}

// rested keeps a stack for as long as the thread does not run.
func (t *task) rested(gap merge.Gap, frames []frame) {
	t.rest = true
	t.stack.gap = uint8(gap)
	t.stack.frames = append(t.stack.frames[:0], frames...)
}

// readStack reads the stack of a blocked thread.
func (e *Engine) readStack(t *task, sp, ip uint64) (capture, bool) {
	c := capture{tid: t.tid, low: t.low, high: t.high, partial: true, kernel: certainly}
	if c.high == 0 || sp < c.low || sp >= c.high {
		m := e.t.mapping(sp)
		if m == nil && e.refresh() {
			m = e.t.mapping(sp)
		}
		if m == nil {
			return c, false
		}
		c.low, c.high = m.Start, m.End
	}
	c.regs = Stands(e.t.arch, sp, ip)
	from := max(sp-redZone, c.low)
	size := min(c.high-from, uint64(len(e.bytes)))
	c.cut = size < c.high-from
	n := 0
	for n < int(size) { // a stack is rarely large, a mapping is
		step := min(max(n, firstStack), int(size)-n)
		got := e.t.mem.ReadSome(e.bytes[n:n+step], from+uint64(n))
		if n += got; got < step {
			break
		}
	}
	c.stack = memory.Run{Addr: from, Data: e.bytes[:n]}
	return c, n > 0
}

// bound learns the bounds of a thread's own stack: the mapping that holds its
// stack pointer, up to where the C library keeps the thread itself. Only memory of
// which that is true stays mapped while the thread lives.
func (e *Engine) bound(t *task, sp uint64) {
	_, _, base := e.file.Armed(t.slot)
	m := e.t.mapping(sp)
	if m == nil && e.refresh() {
		m = e.t.mapping(sp)
	}
	switch {
	case m == nil:
		return
	case m.Path == "[stack]" && t.tid == uint32(e.pid):
		t.low, t.high = m.Start, m.End
	case base > sp && base < m.End:
		t.low, t.high = m.Start, base&^7
	default:
		return
	}
	e.file.SetStack(t.slot, t.low, t.high)
}

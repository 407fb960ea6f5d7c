package waits

import (
	"strings"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// threadKey identifies a thread of a process.
type threadKey struct{ process, id uint64 }

// thread is the state of a thread while the trace is read.
type thread struct {
	key  threadKey
	open []open
	seen bool // the thread had an event, so its current waits began in the trace
	last uint64
}

// open is a wait that has not ended.
type open struct {
	Wait
	inner bool // merged into the enclosing lock
}

// maxOpen bounds the depth of nested waits. Real ones are two or three deep.
const maxOpen = 64

// begin opens a wait. A wait with the stack of the enclosing lock is that lock's own wait. Beyond
// maxOpen, the open waits become unreliable.
func (a *Analysis) begin(t *thread, w Wait) {
	a.over(t, &w)
	if len(t.open) >= maxOpen {
		a.lose(t)
	}
	o := open{Wait: w}
	if n := len(t.open); n > 0 {
		top := &t.open[n-1]
		o.inner = top.Kind == Lock && w.Kind != Lock && !top.inner && top.Stack == w.Stack
		top.Blocked = top.Blocked || o.inner
	}
	for i := range t.open {
		if !t.open[i].inner {
			o.Depth++
		}
	}
	t.open = append(t.open, o)
	if a.OnBegin != nil && !o.inner {
		a.OnBegin(&o.Wait)
	}
}

// over closes open waits that do not enclose the stack of a new wait. They ended by an
// exception (Thread.Interrupt), for which the runtime sends no stop.
func (a *Analysis) over(t *thread, w *Wait) {
	for n := len(t.open); n > 0 && !a.inside(w, &t.open[n-1]); n-- {
		a.unreliable(t.open[n-1])
		t.open = t.open[:n-1]
	}
}

// inside reports whether a wait may have started while another was open.
func (a *Analysis) inside(w *Wait, o *open) bool {
	if o.Stack <= NoStack || w.Stack <= NoStack || o.Kind == Lock && w.Kind != Lock && o.Stack == w.Stack {
		return true
	}
	size := a.Trace.PointerSize
	return above(a.raw[w.Stack], a.raw[o.Stack], size) ||
		o.Kind == Lock && w.Kind != Lock && aboveLock(a.raw[w.Stack], a.raw[o.Stack], size)
}

// deepest is the number of frames that EventPipe keeps of a stack, from the leaf.
const deepest = 100

// above reports whether stack extends outer: the frames of outer are its callers.
func above(stack, outer string, size int) bool {
	if len(stack) > len(outer) && strings.HasSuffix(stack, outer) {
		return true
	}
	if len(stack) < deepest*size {
		return false
	}
	for k := size; k < len(stack); k += size { // outer's roots are cut off
		if strings.HasPrefix(outer, stack[k:]) {
			return true
		}
	}
	return false
}

// aboveLock is like above for the wait of a System.Threading.Lock. Another method sends the lock's
// start event, so that up to two frames at the leaf differ.
func aboveLock(stack, outer string, size int) bool {
	own := min(2*size, len(outer)-size)
	return (len(stack) == len(outer) || len(stack) == len(outer)+size) &&
		strings.HasSuffix(stack, outer[own:])
}

// end closes the innermost open wait of a kind. The waits inside it lost their stops.
func (a *Analysis) end(t *thread, lock bool, now uint64, reported int64) {
	for i := len(t.open) - 1; i >= 0; i-- {
		if (t.open[i].Kind == Lock) != lock {
			continue
		}
		for _, o := range t.open[i+1:] {
			a.unreliable(o)
		}
		o := t.open[i]
		t.open = t.open[:i]
		o.Reported = reported
		a.finish(o, now, Complete)
		return
	}
	a.orphan(t, lock, now)
}

// orphan handles a stop without a start. If the thread had no earlier event, the wait is
// older than the trace.
func (a *Analysis) orphan(t *thread, lock bool, now uint64) {
	if t.seen {
		a.Orphans++
		return
	}
	w := Wait{Kind: Handle, Thread: t.key.id, Process: t.key.process, Start: a.Trace.Ticks}
	if lock {
		w.Kind = Lock
	}
	a.finish(open{Wait: w}, now, BegunEarly)
}

// lose closes all open waits of a thread as unreliable, because events are missing.
func (a *Analysis) lose(t *thread) {
	for _, o := range t.open {
		a.unreliable(o)
	}
	t.open = t.open[:0]
	t.seen = true // the start of the next stop is missing
}

func (a *Analysis) unreliable(o open) {
	if !o.inner {
		a.finish(o, o.Start, Unreliable)
	}
}

// finish records a wait that ends at now. It drops a wait that was merged into a lock.
func (a *Analysis) finish(o open, now uint64, state State) {
	if o.inner {
		return
	}
	w := o.Wait
	w.Stop, w.State = now, state
	if now < w.Start {
		w.State, w.Stop = Unreliable, w.Start
		a.Backwards++
	}
	w.Nanos = a.Trace.Nanos(w.Stop - w.Start)
	if diff := abs(w.Nanos - w.Reported); w.Reported > 0 && w.State == Complete && diff > 1e6 &&
		diff > w.Reported/20 {
		w.Differs = true
	}
	a.take(&w)
}

func abs(v int64) int64 { return max(v, -v) }

// pair handles the start or stop event of a wait or lock. It returns false if the event is malformed.
func (a *Analysis) pair(t *thread, kind clrevent.Kind, e *event) bool {
	w := Wait{Thread: t.key.id, Process: t.key.process, Start: e.Timestamp}
	switch kind {
	case clrevent.ContentionStart:
		c, ok := clrevent.DecodeContention(e.Payload, e.Meta.Version, a.Trace.PointerSize)
		w.Kind, w.LockID, w.Object, w.Owner, w.Stack = Lock, c.Lock, c.Object, c.Owner, a.StackOf(e)
		a.begin(t, w)
		return ok
	case clrevent.WaitStart:
		c, ok := clrevent.DecodeWait(e.Payload, a.Trace.PointerSize)
		if w.Kind, w.Object, w.Stack = Handle, c.Object, a.StackOf(e); c.Monitor {
			w.Kind = Monitor
		}
		a.begin(t, w)
		return ok
	case clrevent.ContentionStop:
		reported, ok := clrevent.DecodeContentionStop(e.Payload, e.Meta.Version)
		a.end(t, true, e.Timestamp, reported)
		return ok
	case clrevent.WaitStop:
		a.end(t, false, e.Timestamp, 0)
	}
	return true
}

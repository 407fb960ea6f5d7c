package sched

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of the calls on other actors.
var (
	ErrEnded        = errors.New("sched: the thread has ended")
	ErrSuspendLimit = errors.New("sched: the suspend count is at its limit")
	ErrNotSuspended = errors.New("sched: the thread is not suspended")
)

// Actor is one thread of control. Only its own body may call its methods, except
// for Name, ID, Ended, Suspends, Stopped, Daemon, and Watchdog.
type Actor struct {
	// Where returns the position of the actor, innermost frame first, for the graph
	// of a deadlock. It may be nil and must not call any method of an actor.
	Where func() []string

	w    *World
	id   int
	name string
	body func(*Actor)
	coro coroutine

	op      operation
	can     bool // its operation can be done now
	sig     bool // it can run a signal handler now
	halted  bool // neither can nor sig, and the trace has a line for that
	dead    bool // used by stuck only
	ended   bool
	daemon  bool
	rescuer bool
	hist    uint64 // hash of its labels and results
	held    uint64 // hash of the locks it owns

	suspends   int
	stopped    bool  // the suspension is in force
	suspenders []int // ids, one for each count

	signals     []signal
	takesSignal bool
	inHandler   bool
}

// operation is the point at which an actor waits.
type operation struct {
	kind   Kind
	what   string // hashed: the same with and without a trace
	text   string // for people; if "", what is shown
	target *Actor
	lock   *Lock
	cond   func() bool
	on     []Waitee
}

func (a *Actor) reset(w *World, id int, name string, body func(*Actor)) {
	*a = Actor{
		w: w, id: id, name: name, body: body, coro: a.coro, hist: mix(hashStart, hashString(name)),
		suspenders: a.suspenders[:0], signals: a.signals[:0],
	}
}

// Name returns the name given to Go.
func (a *Actor) Name() string { return a.name }

// ID returns the actor's number, from 0 in the order of Go.
func (a *Actor) ID() int { return a.id }

// Ended reports whether the body has returned.
func (a *Actor) Ended() bool { return a.ended }

// Daemon declares that the run need not wait for the actor's end.
func (a *Actor) Daemon() {
	if !a.daemon && !a.ended {
		a.daemon = true
		a.w.alive--
	}
}

// Watchdog declares that the actor resumes threads that others suspended. While it
// can move, a suspension is no reason for a deadlock.
func (a *Actor) Watchdog() { a.rescuer = true }

// Yield is a plain step: others may run before what follows. The label is a
// format for args, used only when the run is traced.
func (a *Actor) Yield(what string, args ...any) {
	text := what
	if len(args) > 0 && a.w.opt.Trace {
		text = fmt.Sprintf(what, args...)
	}
	a.point(operation{kind: KindStep, what: what, text: text})
	a.done(text)
}

// Note writes a line to the trace. It is not a step.
func (a *Actor) Note(format string, args ...any) {
	if a.w.opt.Trace {
		a.w.mark(a, KindNote, fmt.Sprintf(format, args...))
	}
}

// Choose returns a number in [0, n) that the schedule decides: whether the
// timeout fires, which error comes. n < 1 is a fault.
func (a *Actor) Choose(n int, what string) int {
	a.mine()
	if n < 1 {
		a.Fault("Choose(%d, %q)", n, what)
	}
	i, ok := a.w.choose(n, false)
	if !ok {
		panic(cut)
	}
	a.Observe(uint64(i))
	if a.w.opt.Trace {
		a.w.mark(a, KindChoose, fmt.Sprintf("%s: %d of %d", what, i, n))
	}
	return i
}

// WaitUntil blocks until cond holds. The scheduler evaluates cond before each step,
// so cond must be a pure function of shared state. on names the actors and locks
// that can make it true: any one of them, or all with a Group. If on is empty, every
// actor can.
func (a *Actor) WaitUntil(why string, cond func() bool, on ...Waitee) {
	a.point(operation{kind: KindWait, what: why, cond: cond, on: on})
	a.done(why)
}

// Join waits until t has ended.
func (a *Actor) Join(t *Actor) {
	a.WaitUntil("the end of "+t.name, t.Ended, t)
}

// Fault ends the run: the process died.
func (a *Actor) Fault(format string, args ...any) {
	a.mine()
	text := fmt.Sprintf(format, args...)
	a.w.mark(a, KindFault, text)
	a.w.finish(Fault, a.name+": "+text)
	panic(cut)
}

// Observe adds v, a value that the actor read from shared state, to the hash of its
// local state. Under PruneObserved, an actor must observe every value that it reads
// and keeps over a point, also from Ended, Stopped, Suspends, and Owner. Results of
// calls that are points themselves are observed already. A variable of its own that a
// signal handler or another body captures is shared state too.
func (a *Actor) Observe(v uint64) { a.hist = mix(a.hist, v) }

// Reads observes t's whole local state as it is now.
func (a *Actor) Reads(t *Actor) { a.hist = mix(a.hist, t.hist) }

// Changes declares that a has changed the local state of t. how distinguishes the change from others of the
// same state.
func (a *Actor) Changes(t *Actor, how uint64) { t.hist = mix(t.hist, how) }

// Rebase declares that state describes the actor's whole local state from here on. So
// a retry loop that calls Rebase at its head is explored for one iteration only.
func (a *Actor) Rebase(state uint64) {
	a.hist = mix(mix(hashStart, uint64(a.id)), state)
}

// mine refuses calls from outside the actor's own turn.
func (a *Actor) mine() {
	if a.w.cutting || a.w.over {
		panic(cut)
	}
	if a.w.running != a || a.w.asking != nil {
		panic(fmt.Sprintf("sched: a call on %s, which is not running", a.name))
	}
}

// point waits at o until the actor is chosen and its operation can be done.
func (a *Actor) point(o operation) {
	a.mine()
	w := a.w
	a.op = o
	if w.hashes() {
		a.hist = mix(mix(a.hist, uint64(o.kind)), hashString(o.what))
		if o.target != nil {
			a.hist = mix(a.hist, uint64(o.target.id))
		}
	}
	for {
		a.halted = false
		w.advance()
		if w.running != a {
			a.coro.park()
		}
		if w.cutting || w.over {
			panic(cut)
		}
		if w.exp != nil && w.exp.opt.Prune == PruneSeen && w.Hash != nil {
			a.hist = mix(a.hist, w.Hash())
		}
		if !a.takesSignal {
			break
		}
		a.handle()
	}
	if w.exp == nil {
		w.trail = mix(w.trail, a.hist)
	}
}

// done writes a step's line to the trace. It is called after the step, so that the line
// can contain the result. Without a trace, the parts are not joined.
func (a *Actor) done(parts ...string) {
	if a.w.opt.Trace {
		a.w.mark(a, a.op.kind, strings.Join(parts, ""))
	}
}

// ready reports whether the pending operation could be done.
func (a *Actor) ready() bool {
	switch a.op.kind {
	case KindLock:
		return a.op.lock.free(a)
	case KindWait:
		a.w.asking = a
		ok := a.op.cond()
		a.w.asking = nil
		return ok
	}
	return true
}

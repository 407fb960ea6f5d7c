package sched

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// cutPanic unwinds an actor whose run is over.
type cutPanic struct{}

var cut any = cutPanic{}

// coroutine is an actor's stack. It outlives the body, and runs the actor of the next run too.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	busy  bool // inside a body
}

// resume runs the actor until it parks or its body ends.
func (a *Actor) resume() {
	if a.coro.next == nil {
		a.coro.next, a.coro.stop = iter.Pull(a.serve)
	}
	a.coro.busy = true
	a.coro.next()
}

// park suspends the actor. It returns when the actor is resumed.
func (c *coroutine) park() { c.yield(struct{}{}) }

// serve runs one body after the other.
func (a *Actor) serve(yield func(struct{}) bool) {
	a.coro.yield = yield
	for {
		a.runBody()
		a.coro.busy = false
		if !yield(struct{}{}) {
			return
		}
	}
}

// runBody runs the body until it returns, is cut, or panics. After a return, end chooses
// the next actor.
func (a *Actor) runBody() {
	returned := false
	defer func() {
		p := recover()
		if p == nil && !returned {
			a.coro = coroutine{} // runtime.Goexit: the coroutine dies with it
		}
		if _, isCut := p.(cutPanic); p != nil && !isCut {
			a.panicked(p)
		}
	}()
	a.body(a)
	if !a.w.cutting && !a.w.over {
		a.end()
	}
	returned = true
}

// end is the end of a body that returned normally.
func (a *Actor) end() {
	w := a.w
	a.ended, a.can, a.sig, w.dirty = true, false, false, true
	if !a.daemon {
		w.alive--
	}
	w.mark(a, KindEnd, "ends")
	w.advance()
}

// panicked turns a panic of user code into the run's Fault.
func (a *Actor) panicked(p any) {
	w := a.w
	who := a
	if w.asking != nil {
		who, w.asking = w.asking, nil
	}
	if !w.cutting && !w.over {
		w.stack = string(debug.Stack())
		w.mark(who, KindFault, fmt.Sprint("panic: ", p))
	}
	w.finish(Fault, fmt.Sprintf("%s: panic: %v", who.name, p))
}

// cut unwinds every body that has not ended.
func (w *World) cut() {
	w.cutting = true
	for _, a := range w.actors {
		if a.coro.busy {
			a.coro.next()
		}
	}
	w.cutting = false
}

// close ends the coroutines; the world cannot run again.
func (w *World) close() {
	w.cut()
	w.cutting = true // later calls of actors unwind
	for _, a := range w.slots {
		if a.coro.stop != nil {
			a.coro.stop()
			a.coro = coroutine{}
		}
	}
}

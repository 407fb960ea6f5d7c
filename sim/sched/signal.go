package sched

// signal is a handler to be run. Which one it is follows from its sender's
// history, so that is what state hashes.
type signal struct {
	h    func(*Actor)
	from uint64
}

// Signal makes h run on t's coroutine at one of its next points, also while t
// waits there, but not while t suspended. A handler is not interrupted
// by another; signals to an actor that ends are lost. A signal to oneself is
// handled before the call returns. It reports whether t was still there.
func (a *Actor) Signal(t *Actor, h func(*Actor)) bool {
	a.point(operation{kind: KindSignal, what: t.name, target: t})
	if t.ended {
		a.Observe(0)
		a.done("signal ", t.name, ": ", ErrEnded.Error())
		return false
	}
	a.Observe(1)
	t.signals = append(t.signals, signal{h, a.hist})
	a.done("signal ", t.name, ": ", "pending")
	if t == a && !a.inHandler {
		a.handle()
	}
	return true
}

// handle runs the oldest handler; afterwards the actor stands where it stood.
func (a *Actor) handle() {
	saved := a.op
	s := a.signals[0]
	a.signals = a.signals[:copy(a.signals, a.signals[1:])]
	a.takesSignal, a.inHandler = false, true
	a.Observe(s.from)
	a.w.mark(a, KindHandler, "signal handler begins")
	s.h(a)
	a.w.mark(a, KindHandler, "signal handler returns")
	a.Observe(uint64(KindHandler))
	a.inHandler = false
	a.op = saved
}

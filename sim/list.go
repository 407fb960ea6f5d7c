package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// List is the profiler's list of threads with room for one thread. It has the same words
// as the C shim's. Threads write it and the sampler reads it without a lock, and each
// load and store is a step. Source: profiler/host/threads.c, which sim/native runs in
// every order.
type List struct {
	id, tid uint64 // 0: free; not bound to a thread of the system
	dead    bool
	claimed uint64

	// IDFirst reads a thread's number before the flag of its death.
	IDFirst bool
}

// List makes the profiler keep its threads in l. The first thread is in it already.
func (h *Host) List(l *List) {
	first := h.w.threads[0]
	l.id, l.tid = uint64(first.ID), first.TID
	h.list = l
}

// Created is ThreadCreated and ThreadAssignedToOSThread of t. Thread t takes the place of
// the thread that has ended as soon as that place is free.
func (t *Thread) Created() {
	l := t.W.Host.list
	t.A.WaitUntil("a free entry", func() bool { return l.id == 0 })
	t.A.Yield("dead = 0")
	l.dead = false
	t.A.Yield("number = 0")
	l.tid = 0
	t.A.Yield("id = its own")
	l.id = uint64(t.ID)
	t.A.Yield("number = its own")
	l.tid = t.TID
}

// destroyed is ThreadDestroyed.
func (l *List) destroyed(a *sched.Actor, t *vm.Thread, sampler sched.Waitee) {
	a.Yield("dead = 1")
	l.dead = true
	a.WaitUntil("the walk of it to end", func() bool { return l.claimed != uint64(t.ID) }, sampler)
	a.Yield("number = 0")
	l.tid = 0
	a.Yield("id = 0")
	l.id = 0
}

// claim delays t's destruction if t is alive.
func (l *List) claim(a *sched.Actor, t clr.Thread) bool {
	a.Yield("claims it")
	l.claimed = uint64(t.ID)
	if l.alive(a, t) {
		return true
	}
	l.claimed = 0
	return false
}

func (l *List) alive(a *sched.Actor, t clr.Thread) bool {
	same := func() bool {
		a.Yield("reads its number")
		return l.tid == t.TID
	}
	living := func() bool {
		a.Yield("reads dead")
		return !l.dead
	}
	a.Yield("finds its entry")
	found := l.id == uint64(t.ID)
	if l.IDFirst {
		return found && same() && living()
	}
	return found && living() && same()
}

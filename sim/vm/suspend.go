package vm

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Suspending reports whether a thread stops or has stopped the runtime.
func (c *CLR) Suspending() bool { return c.suspender != nil }

// SuspendRuntime is ICorProfilerInfo10::SuspendRuntime: the profiler stops all managed threads. Only a
// thread that the CLR does not have to stop may call it.
func (c *CLR) SuspendRuntime(a *sched.Actor) clr.HRESULT {
	hr := c.suspendRuntime(a)
	a.Note("SuspendRuntime: %v", hr)
	return hr
}

func (c *CLR) suspendRuntime(a *sched.Actor) clr.HRESULT {
	switch {
	case !c.Variant.HasSuspendRuntime():
		return clr.E_NOTIMPL
	case c.refusing[a] > 0:
		return clr.CORPROF_E_UNSUPPORTED_CALL_SEQUENCE
	case !c.Started:
		return clr.CORPROF_E_RUNTIME_UNINITIALIZED
	case c.Suspending():
		return clr.CORPROF_E_SUSPENSION_IN_PROGRESS
	}
	a.Lock(c.ThreadStore)
	c.stop(a, c.Of(a))
	c.profiler = true
	return clr.S_OK
}

// ResumeRuntime undoes SuspendRuntime.
func (c *CLR) ResumeRuntime(a *sched.Actor) clr.HRESULT {
	switch {
	case !c.Variant.HasSuspendRuntime():
		return clr.E_NOTIMPL
	case !c.Started:
		return clr.CORPROF_E_RUNTIME_UNINITIALIZED
	case !c.profiler || c.suspender != a:
		return clr.CORPROF_E_UNSUPPORTED_CALL_SEQUENCE
	}
	c.profiler = false
	c.restart()
	a.Note("ResumeRuntime: %v", clr.S_OK)
	a.Unlock(c.ThreadStore)
	return clr.S_OK
}

// RequestProfilerDetach is ICorProfilerInfo3::RequestProfilerDetach. .NET Core has it since the release
// that added SuspendRuntime.
func (c *CLR) RequestProfilerDetach() clr.HRESULT {
	if !c.Variant.HasSuspendRuntime() {
		return clr.E_NOTIMPL
	}
	c.Detaching = true
	return clr.S_OK
}

// Collect runs a garbage collection on actor a. t is the thread that causes it, or nil for a thread of the
// collector.
func (c *CLR) Collect(a *sched.Actor, t *Thread) {
	mode := Preemptive
	if t != nil {
		// Whoever waits for the thread store lets itself be stopped meanwhile.
		mode, t.Mode = t.Mode, Preemptive
	}
	a.Lock(c.ThreadStore)
	if t != nil {
		t.Mode = mode
	}
	c.stop(a, t)
	if f := c.Callbacks.GarbageCollectionStarted; f != nil {
		c.noTrigger(a, "GarbageCollectionStarted", func() { f(a) })
	}
	a.Yield("collects garbage")
	c.restart()
	if t != nil {
		t.Mode = Preemptive
	}
	a.Unlock(c.ThreadStore)
	if t != nil {
		c.back(a, t, mode)
	}
}

// stop brings every thread in cooperative mode except self to a safe point. On Windows, it suspends each
// thread for a moment to redirect or hijack it. Source: threadsuspend.cpp, ThreadSuspend::SuspendRuntime.
func (c *CLR) stop(a *sched.Actor, self *Thread) {
	c.suspender = a
	if f := c.Callbacks.RuntimeThreadSuspended; f != nil && self != nil {
		self.Forbid++
		c.noTrigger(a, "RuntimeThreadSuspended", func() { f(a, self) })
		self.Forbid--
	}
	a.Yield("stops the runtime")
	for _, t := range c.Threads {
		if t == self || t.Dead || t.Actor == a || t.Mode == Preemptive {
			continue
		}
		if c.Variant.Windows() {
			c.suspend(a, self, t)
			a.Reads(t.Actor)
			switch {
			case c.redirect(t):
				a.Changes(t.Actor, 1)
				a.Note("redirects %s: writes its context, whose ip is the stub's now", t.Actor.Name())
			case c.hijack(t):
				a.Changes(t.Actor, 2)
				a.Note("hijacks the return address of %s", t.Actor.Name())
			}
			a.ResumeThread(t.Actor)
		}
		a.WaitUntil("a safe point of "+t.Actor.Name(),
			func() bool { return t.Dead || t.Mode == Preemptive }, t.Actor)
	}
	// Since 3.0 the callback comes after the suspension.
	c.stopped = c.Variant.HasSuspendRuntime()
	if f := c.Callbacks.RuntimeSuspendFinished; f != nil {
		c.noTrigger(a, "RuntimeSuspendFinished", func() { f(a) })
	}
	c.stopped = true
}

// suspend suspends t, and returns when t has stopped. The suspending thread must not be suspended
// meanwhile. Source: Thread::SuspendThread (ForbidSuspendThreadHolder).
func (c *CLR) suspend(a *sched.Actor, self, t *Thread) {
	if self != nil {
		self.Forbid++
	}
	a.SuspendThread(t.Actor)
	a.Stop(t.Actor)
	if self != nil {
		self.Forbid--
	}
}

func (c *CLR) restart() { c.suspender, c.stopped = nil, false }

// Poll is a safe point in cooperative code. If a suspension is under way, the
// thread waits here until the runtime resumes.
func (c *CLR) Poll(a *sched.Actor, t *Thread) {
	if t.Mode == Cooperative && c.suspender != nil && c.suspender != a {
		c.wait(a, t, true)
	}
}

// Leave changes t to preemptive mode: a P/Invoke begins, a callback ends.
func (c *CLR) Leave(t *Thread) { t.Mode = Preemptive }

// Return changes t to cooperative mode, after any suspension of the runtime.
func (c *CLR) Return(a *sched.Actor, t *Thread) { c.back(a, t, Cooperative) }

func (c *CLR) back(a *sched.Actor, t *Thread, m Mode) {
	if m == Preemptive {
		return
	}
	for c.suspender != nil && c.suspender != a {
		c.wait(a, t, false)
	}
	t.Mode = Cooperative
}

// wait blocks t in preemptive mode until the runtime resumes.
func (c *CLR) wait(a *sched.Actor, t *Thread, resumable bool) {
	mode := t.Mode
	block := func() {
		t.Mode = Preemptive
		for c.suspender != nil && c.suspender != a {
			a.WaitUntil("the runtime to go on",
				func() bool { return c.suspender == nil || c.suspender == a }, c.stopper())
		}
		t.Mode = mode
	}
	if c.Wait == nil {
		block()
		return
	}
	c.Wait(a, t, resumable, block)
}

// stopper is the actor that currently suspends the runtime. The next suspension may
// start before a waiter notices that the last one has ended.
func (c *CLR) stopper() sched.Waitee {
	return &sched.Group{Name: "the suspender of the runtime", Members: func() []sched.Waitee {
		if c.suspender == nil {
			return nil
		}
		return []sched.Waitee{c.suspender}
	}}
}

// redirect makes t continue in the stub where it will wait for the end of the suspension. t must be
// stopped in managed code; another actor may hold it suspended too. redirect returns false if it changed
// nothing. Source: Thread::HandledJITCase, CheckForAndDoRedirect.
func (c *CLR) redirect(t *Thread) bool {
	ip := t.M.State().PC
	if c.Redirect == nil || t.Trap || !c.Codes.inBody(ip) || !c.Redirect(t, ip) {
		return false
	}
	t.Redirected = true
	return true
}

// hijack replaces the return address of the managed frame in which t runs, so that the thread
// returns into the CLR. The thread must be stopped. hijack returns false, and changes nothing, if
// t is not in managed code, is hijacked already, or has its return address in a register.
func (c *CLR) hijack(t *Thread) bool {
	st := t.M.State()
	if c.HijackStub == 0 || t.hijacked != 0 || !c.Codes.Managed(st.PC) {
		return false
	}
	next, ok := machine.Unwind(c.Arch, c.Codes.Find, st, true, t.M.Word)
	slot, found := c.slotOf(t, &st, &next)
	if !ok || !found {
		return false // frameless on ARM64: the address is in a register
	}
	t.slot, t.hijacked = slot, next.PC
	t.said.slot, t.said.ra = slot, next.PC
	t.M.Poke(slot, c.HijackStub)
	return true
}

// slotOf returns the address of the stack slot with the return address from st to next. It returns false if
// the return address is in a register.
func (c *CLR) slotOf(t *Thread, st, next *machine.State) (uint64, bool) {
	if c.Arch == image.AMD64 {
		return next.R[c.Arch.SP()] - 8, true
	}
	for a := st.R[31]; a < next.R[31]; a += 8 {
		if v, ok := t.M.Word(a); ok && v == next.PC {
			return a, true
		}
	}
	return 0, false
}

// Unhijack returns the true return address of a thread that has reached the hijack stub, and ends the
// hijack.
func (t *Thread) Unhijack() uint64 {
	ra := t.hijacked
	t.slot, t.hijacked = 0, 0
	return ra
}

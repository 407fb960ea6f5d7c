package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

var net9 = sim.Setup{Variant: vm.Net9Linux}

// unix are the rules of the other way: the runtime is suspended, and threads
// copy their own stacks in a signal handler.
func unix() []*Rule {
	return []*Rule{
		{
			Name:   "held-in-handler",
			Line:   "On Linux, hold no thread while the CLR walks.",
			Text:   "The CLR's walker there unwinds with a libunwind of its own, behind one mutex. A thread in the middle of an exception may own it. If the signal handler keeps the thread until DoStackSnapshot has returned, the walk waits for a mutex whose owner waits for the walk. It need not be kept: in a suspended runtime a thread can only run unmanaged code, so that its managed frames stay as they were when it copied its stack.",
			Source: "seen: .NET 9.0.5, an exception-heavy program, within seconds",
			Setup:  net9, Bounds: small(2), Wants: sched.Deadlock, Says: "libunwind",
			Broken: func(w *sim.World) { throws(w); holdsInHandler(w) },
			Kept:   func(w *sim.World) { throws(w); kept(w, 2) },
		},
		{
			Name:   "resume-runtime",
			Line:   "Every SuspendRuntime that succeeded has its ResumeRuntime, on every path.",
			Text:   "A suspended runtime stays suspended until the profiler resumes it: a path that forgets, because a walk failed or a thread was gone, stops the whole program at its next return to managed code.",
			Source: "ICorProfilerInfo10::SuspendRuntime in corprof.idl",
			Setup:  net9, Bounds: small(2), Wants: sched.Deadlock, Says: "sampler",
			Broken: func(w *sim.World) { works(w, "target"); forgetsResume(w) },
			Kept:   func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
	}
}

// throws is a thread that unwinds an exception: in preemptive mode, with the
// CLR's libunwind.
func throws(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.PInvoke(sim.ThrowHelper, func() { t.Holding(w.CLR.Unwinder, sim.NativeOther, nil) })
	})
}

// holdsInHandler is a sampler whose signal handler keeps the thread.
func holdsInHandler(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		if w.CLR.SuspendRuntime(a).Failed() {
			return
		}
		caught, done := false, false
		sent := a.Signal(t.A, func(h *sched.Actor) {
			caught = true
			h.WaitUntil("the walk to end", func() bool { return done }, a)
		})
		if sent {
			a.WaitUntil("the thread's answer", func() bool { return caught || t.A.Ended() }, t.A)
			snap(w, a, t, nil)
		}
		done = true
		w.CLR.ResumeRuntime(a)
	})
}

// forgetsResume is a sampler that returns early when a walk fails.
func forgetsResume(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		if w.CLR.SuspendRuntime(a).Failed() {
			return
		}
		if snap(w, a, w.Threads()[0], nil).Failed() {
			return
		}
		w.CLR.ResumeRuntime(a)
	})
}

package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
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
			Text:   "On Linux, the CLR's walker uses its own libunwind with one global mutex. A thread that handles an exception may own it. If the signal handler keeps that thread until DoStackSnapshot returns, the walk waits for a mutex whose owner waits for the walk. Let the thread run: while the runtime is suspended it can run only unmanaged code, so its managed frames stay as they were when it copied its stack.",
			Source: "seen: .NET 9.0.5, an exception-heavy program, within seconds",
			Setup:  net9, Bounds: small(3), Wants: sched.Deadlock, Says: "libunwind",
			Broken: func(w *sim.World) { throws(w); holdsInHandler(w) },
			Kept:   func(w *sim.World) { throws(w); kept(w, 2) },
		},
		{
			Name:   "resume-runtime",
			Line:   "Call ResumeRuntime after every successful SuspendRuntime, on every path.",
			Text:   "The runtime stays suspended until the profiler resumes it. If a path forgets that, for example because a walk failed or a thread ended, every thread of the program stops when it next returns to managed code.",
			Source: "ICorProfilerInfo10::SuspendRuntime in corprof.idl",
			Setup:  net9, Bounds: small(3), Wants: sched.Deadlock, Says: "sampler",
			Broken: func(w *sim.World) { works(w, "target"); forgetsResume(w) },
			Kept:   func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
		{
			Name:   "alternate-stack",
			Line:   "Run the sampling signal's handler on the thread's own stack (no SA_ONSTACK).",
			Text:   "The CLR gives its threads an alternate signal stack of 16 KiB, for stack overflows, and a thread may be using it. It has no room for a second handler, which would overwrite the memory below. The Go runtime adds SA_ONSTACK to every handler that is installed when it starts, including the CLR's: a profiler in Go must restore them.",
			Source: "golang/go#78883, dotnet/runtime#127320; seen: SIGSEGV under collections",
			Setup:  net9, Bounds: small(3), Wants: sched.Fault, Says: "overflows",
			Broken: func(w *sim.World) { handlesSignal(w); signalsOnAlternate(w) },
			Kept:   func(w *sim.World) { handlesSignal(w); kept(w, 2) },
		},
	}
}

// alternate is the room of the alternate stack here, bytes: for one signal frame
// and its handler, as 16 KiB are for the real ones.
func alternate(a image.Arch) uint64 {
	l := image.SignalLayout(a)
	return uint64(l.Size+0x1ff) &^ 0xff
}

// handlesSignal is a thread that handles a signal of the CLR's on its alternate
// stack.
func handlesSignal(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.M.AltStack(0x6000_0000, 0x6000_0000+alternate(w.Arch))
		t.PInvoke(sim.NativeWork, func() {
			if !t.Signal(sim.NativeOther, nil) {
				t.A.Fault("no room for one signal")
			}
		})
	})
}

// signalsOnAlternate is a sampler whose handler was given SA_ONSTACK.
func signalsOnAlternate(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		a.Signal(t.A, func(*sched.Actor) {
			if t.M.Depth() > 0 && !t.Signal(sim.NativeWork, nil) {
				t.A.Fault("the handler overflows the alternate stack")
			}
		})
	})
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

package rules

import (
	"slices"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// snap is a bare DoStackSnapshot that throws its frames away.
func snap(w *sim.World, a *sched.Actor, t *sim.Thread, seed *machine.State) clr.HRESULT {
	return w.CLR.DoStackSnapshot(a,
		vm.Call{Thread: t.ID, Seed: seed, Receive: func(*vm.Callback) clr.HRESULT { return clr.S_OK }})
}

// works is a thread that enters and leaves managed code.
func works(w *sim.World, name string) *sim.Thread {
	return w.SpawnManaged(name, func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { t.PInvoke(sim.NativeWork, nil) })
	})
}

// suspension are the rules about stopping threads.
func suspension() []*Rule { return slices.Concat(whoSuspends(), whileSuspended()) }

// whoSuspends are the rules for the sampler thread and for what it may suspend.
func whoSuspends() []*Rule {
	return []*Rule{
		{
			Name:   "two-samplers",
			Line:   "Use one sampler thread, and never suspend it.",
			Text:   "Two threads that suspend each other stay suspended: each has stopped the only thread that would resume it. No lock is involved, and a second feature of the profiler with its own sampler is enough.",
			Source: "Broman, rule 1 and problem 2; seen: deadlock at the first cycle",
			Setup:  core22, Bounds: small(3), Wants: sched.Deadlock, Says: "sampler",
			Broken: func(w *sim.World) { eachOther(w) },
			Kept:   func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
		{
			Name:   "managed-sampler",
			Line:   "The sampler never runs managed code.",
			Text:   "A collection stops every thread that has run managed code, and waits until each is at a safe point. If the sampler is such a thread, it can be stopped while it holds a target suspended. Then the target never reaches its safe point, the collection never ends, and the sampler never continues. The CLR never stops a thread that it does not know.",
			Source: "Broman, rule 1",
			Setup:  core22, Bounds: small(2), Wants: sched.Deadlock, Says: "suspended by",
			Broken: func(w *sim.World) { managedSampler(w) },
			Kept:   func(w *sim.World) { polls(w, "target"); collector(w); kept(w, 1) },
		},
		{
			Name:   "thread-destroyed",
			Line:   "Block in ThreadDestroyed until the walk of that thread is over.",
			Text:   "A ThreadID is a pointer, and the CLR keeps no reference for the profiler. After ThreadDestroyed returns, the thread's memory is freed, and a walk of the thread ends the process. The sampler must claim a thread before it walks it, and the callback must wait until the claim is released.",
			Source: "Broman, rule 2; seen: the process ends with 8013135e within seconds, 2 of 2",
			Setup:  core22, Bounds: small(4), Reach: sched.Unbounded, Wants: sched.Fault, Says: "8013135e",
			Broken: func(w *sim.World) {
				w.CLR.Callbacks.ThreadDestroyed = nil
				works(w,
					"target")
				walksUnclaimed(w)
			},
			Kept: func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
		{
			Name:   "claim-order",
			Line:   "To check whether a thread is alive, read \"dead\" before its number.",
			Text:   "An entry of the thread list can be reused between two loads: the old thread ends, and a new thread clears the mark. In the other order, the sampler reads the old thread's number and then the new thread's mark. It then takes the ended thread as alive and walks it. The system also reuses thread numbers, so the sampler must read the entry's owner once more at the end.",
			Source: "reasoned; seen in the C, with the loads the other way round: 15 of 53,436 interleavings",
			Setup:  core22, Bounds: small(3), Wants: sched.Fault, Says: "8013135e",
			Broken: func(w *sim.World) { listed(w, true); claimsAndWalks(w) },
			// The product's whole sampler makes 70 times as many orders of it.
			Kept: func(w *sim.World) { listed(w, false); claimsAndWalks(w) },
		},
		{
			Name:   "resume-twice",
			Line:   "Resume a thread exactly as often as you suspended it.",
			Text:   "The system counts suspensions, whoever makes them. One ResumeThread too many cancels another one's suspension: that of the CLR in DoStackSnapshot, of a debugger, or of another profiler. The thread then runs while it is read. One SuspendRuntime too many is worse: it answers S_OK, and after the first ResumeRuntime threads spin and never continue.",
			Source: "the remarks on SuspendThread and ResumeThread in Microsoft's reference",
			Setup:  core22, Bounds: small(5), Reach: sched.Unbounded, Wants: sched.Fault, Says: "two moments",
			Broken: func(w *sim.World) { works(w, "target"); debugger(w, false); resumesTwice(w) },
			Kept: func(w *sim.World) {
				meets(w, 1, func(t *sim.Thread) { t.PInvoke(sim.NativeWork, nil) })
				debugger(w, true)
			},
		},
	}
}

// whileSuspended are the rules for what is done from the suspension on.
func whileSuspended() []*Rule {
	return []*Rule{
		{
			Name:   "asynchronous-suspend",
			Line:   "A thread is stopped once GetThreadContext has returned, not once SuspendThread has.",
			Text:   "SuspendThread only requests the suspension: the target runs until the kernel stops it, and only GetThreadContext waits for that. Registers and stack that were read before belong to different moments, and a walk finds frames that never existed together.",
			Source: "the remarks on SuspendThread and GetThreadContext in Microsoft's reference",
			Setup:  core22, Bounds: small(3), Wants: sched.Fault, Says: "two moments",
			Broken: func(w *sim.World) { works(w, "target"); readsEarly(w) },
			Kept:   func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
		{
			Name:   "collector-wait",
			Line:   "If the CLR answers E_FAIL to a good seed, keep the frames that you walked, resume the target, and try later.",
			Text:   "A thread that was redirected for a collection waits for its end in preemptive mode, in a call of the stub. While such a thread is suspended, the CLR ignores the seed and refuses to walk. It answers a moment after the thread is resumed, and never before.",
			Source: "stackwalk.cpp, the resumable frame of a suspended thread; seen: 430 of 6,000 samples",
			Setup:  core22, Bounds: small(2), Wants: sched.StepLimit,
			Broken: func(w *sim.World) { polls(w, "target"); collector(w); asksAgain(w, clr.E_FAIL) },
			Kept:   func(w *sim.World) { polls(w, "target"); collector(w); kept(w, 1) },
		},
		{
			Name:   "priming",
			Line:   "Make the first call of the profiling API while nothing is suspended.",
			Text:   "On the first call of a profiler's thread, the CLR creates state for that thread, under locks that a suspended target may own. One DoStackSnapshot of a running thread, which the CLR suspends itself, does that. Once it has reported a frame, the sampler may suspend threads.",
			Source: "the remarks on DoStackSnapshot in Microsoft's reference",
			Setup:  core22, Bounds: small(4), Reach: sched.Unbounded,
			Wants: sched.Deadlock, Says: "per-thread",
			Broken: func(w *sim.World) {
				starts(w)
				inWindow(w,
					func(a *sched.Actor, t *sim.Thread) { snap(w, a, t, nil) })
			},
			Kept: func(w *sim.World) { starts(w); kept(w, 1) },
		},
	}
}

// eachOther is two samplers that walk all threads but themselves.
func eachOther(w *sim.World) {
	var samplers [2]*sched.Actor
	for i, name := range []string{"sampler A", "sampler B"} {
		samplers[i] = w.S.Go(name, func(a *sched.Actor) {
			other := samplers[1-i]
			if _, err := a.SuspendThread(other); err == nil {
				a.Stop(other)
				a.ResumeThread(other)
			}
		})
	}
}

// polls is a thread in cooperative mode that comes to safe points.
func polls(w *sim.World, name string) *sim.Thread {
	return w.SpawnManaged(name, func(t *sim.Thread) {
		t.Poll()
		t.Method(sim.Method(1), func() { t.Poll() })
	})
}

// collector is a thread that starts a collection.
func collector(w *sim.World) *sim.Thread {
	return w.SpawnManaged("collector", func(t *sim.Thread) { t.Collect() })
}

// managedSampler is a sampler that the CLR knows, beside a collection.
func managedSampler(w *sim.World) {
	target := polls(w, "target")
	collector(w)
	suspends(w, target)
}

// suspends is a sampler that the CLR knows, and that suspends a thread.
func suspends(w *sim.World, target *sim.Thread) {
	w.SpawnManaged("sampler", func(t *sim.Thread) {
		if _, err := t.A.SuspendThread(target.A); err != nil {
			return
		}
		if t.A.Stop(target.A) == nil {
			t.Poll() // any return to managed code
		}
		t.A.ResumeThread(target.A)
	})
}

// walksUnclaimed is a sampler that walks a thread it has seen once.
func walksUnclaimed(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		for range 3 {
			if t := w.Threads()[0]; t.Hijack != nil {
				snap(w, a, t, nil)
			}
			a.Yield("waits for its next sample")
		}
	})
}

// listed is a thread that ends, and one that begins and takes its entry of the list.
func listed(w *sim.World, idFirst bool) {
	w.SpawnManaged("target", func(*sim.Thread) {})
	w.SpawnManaged("successor", func(t *sim.Thread) { t.Created() })
	w.Host.List(&sim.List{IDFirst: idFirst})
}

// claimsAndWalks is a sampler that walks the first thread if it may.
func claimsAndWalks(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		id := clr.Thread{ID: t.ID, TID: t.TID}
		if w.Host.Claim(id) {
			snap(w, a, t, nil)
			w.Host.Release(id)
		}
	})
}

// debugger is another process that stops the first thread and reads it twice: before the sampler with
// first.
func debugger(w *sim.World, first bool) {
	there := false
	if first {
		w.Host.Ready = func() bool { return there }
	}
	w.S.Go("debugger", func(a *sched.Actor) {
		a.WaitUntil("the sampler's first call", func() bool { return !first || w.Host.Primed })
		t := w.Threads()[0]
		_, err := a.SuspendThread(t.A)
		if there = true; err != nil {
			return
		}
		if a.Stop(t.A) == nil {
			a.Reads(t.A)
			readsTwice(a, t, "reads the stack")
		}
		a.ResumeThread(t.A)
	})
}

// readsTwice reads a thread before and after a step.
func readsTwice(a *sched.Actor, t *sim.Thread, step string) {
	before := t.M.State()
	a.Yield("%s", step)
	if now := t.M.State(); now != before {
		a.Fault("registers at %#x and stack at %#x: a sample of two moments", before.PC, now.PC)
	}
}

// resumesTwice is a sampler with two ways out of its window that both resume.
func resumesTwice(w *sim.World) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) { a.ResumeThread(t.A) })
}

// readsEarly is a sampler that reads registers and stack before the suspension
// is in force.
func readsEarly(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		if _, err := a.SuspendThread(t.A); err != nil {
			return
		}
		readsTwice(a, t, "reads the registers")
		a.ResumeThread(t.A)
	})
}

// starts is a thread whose start is in the CLR's hands: it owns the lock of
// per-thread state. Another one runs already.
func starts(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.PInvoke(sim.Native(0), func() { t.Holding(w.CLR.PerThread, sim.JitCompile, nil) })
	})
}

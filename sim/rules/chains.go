package rules

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// chains are the rules about locks that are reached in a roundabout way.
func chains() []*Rule {
	return []*Rule{
		{
			Name:   "snapshot-callback",
			Line:   "In the StackSnapshotCallback, take no lock and allocate nothing.",
			Text:   "The callback runs while the target is suspended: the CLR calls it for each frame. A table of names, a growing vector, or a log line is the same mistake there as between suspend and resume. It is only harder to see, because the call is in another function. Write into memory that was allocated before.",
			Source: "Broman, problem 1",
			Setup:  core22, Bounds: small(3), Wants: sched.Deadlock, Says: "profiler",
			Broken: func(w *sim.World) { holder(w, w.Profiler, sim.NativeWork); locksInCallback(w) },
			Kept:   func(w *sim.World) { holder(w, w.Profiler, sim.NativeWork); kept(w, 2) },
		},
		{
			Name:   "lock-chain",
			Line:   "A lock that the target never takes can hang too, if its owner waits for a lock of the target.",
			Text:   "The sampler waits for lock X. Its owner is a running thread that waits for lock Y, and the suspended target owns Y. A suspension is an edge in the graph of waiting threads, and a cycle may have any number of threads. It is not enough that the target does not use a lock: no thread may be able to own it.",
			Source: "Broman, problem 1, the chain of locks",
			Setup:  core22, Bounds: small(2), Wants: sched.Deadlock, Says: "log",
			Broken: func(w *sim.World) { chain(w); takesInWindow(w, w.Log) },
			Kept:   func(w *sim.World) { chain(w); kept(w, 1) },
		},
		{
			Name:   "walks-collector",
			Line:   "A thread that can be stopped for a collection must not suspend the thread that collects.",
			Text:   "Two threads are enough. A sampler that has run managed code suspends the thread that is about to collect, and then reaches a safe point. It waits there for the end of the collection, and the suspended thread cannot collect. The rule managed-sampler is the same with a third thread.",
			Source: "Broman, problem 2",
			Setup:  core22, Bounds: small(2), Wants: sched.Deadlock, Says: "suspended by",
			Broken: func(w *sim.World) { stopsCollector(w) },
			Kept:   func(w *sim.World) { collector(w); kept(w, 1) },
		},
		{
			Name:   "cooperative-callback",
			Line:   "In ThreadAssignedToOSThread and the other cooperative callbacks, never wait for a lock that is held over SuspendRuntime.",
			Text:   "Some callbacks arrive while the thread is in cooperative mode, and SuspendRuntime waits until the thread leaves it. If the sampler holds the lock of its thread list during SuspendRuntime, it waits for that thread, and the thread waits for the list. `seedwalk rules NAME` shows for each callback whether it may wait; ThreadAssignedToOSThread, ModuleLoadStarted, and ObjectAllocated may not.",
			Source: "eetoprofinterfaceimpl.cpp (the contracts); seen: .NET 9.0.5, 1 of 2 runs of a first profiler with one mutex for its list of threads",
			Setup:  net9, Bounds: small(2), Wants: sched.Deadlock, Says: "profiler",
			Broken: func(w *sim.World) { locksInCooperative(w); suspendsUnderLock(w) },
			Kept:   func(w *sim.World) { locksInCooperative(w); kept(w, 1) },
		},
	}
}

// locksInCallback is a sampler that takes the profiler's lock for each frame.
func locksInCallback(w *sim.World) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) {
		w.CLR.DoStackSnapshot(a, vm.Call{Thread: t.ID, Receive: func(*vm.Callback) clr.HRESULT {
			a.Lock(w.Profiler)
			a.Unlock(w.Profiler)
			return clr.S_OK
		}})
	})
}

// chain is a target that takes one lock, and a thread that owns another while it
// waits for that.
func chain(w *sim.World) {
	holder(w, w.Heap, sim.HeapAlloc)
	w.SpawnManaged("logger", func(t *sim.Thread) {
		t.PInvoke(sim.Native(0), func() {
			t.Holding(w.Log, sim.NativeOther, func() { t.Holding(w.Heap, sim.HeapAlloc, nil) })
		})
	})
}

// stopsCollector is a sampler that the CLR knows, and that suspends the thread
// which collects.
func stopsCollector(w *sim.World) { suspends(w, collector(w)) }

// locksInCooperative is a thread whose callback, in cooperative mode, takes the
// profiler's lock.
func locksInCooperative(w *sim.World) {
	w.SpawnManaged("starting", func(t *sim.Thread) {
		t.Helper(sim.JitCompile, func() {
			t.A.Note("callback ThreadAssignedToOSThread")
			t.A.Lock(w.Profiler)
			t.A.Unlock(w.Profiler)
		})
	})
}

// suspendsUnderLock is a sampler that holds the lock over the suspension.
func suspendsUnderLock(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		a.Lock(w.Profiler)
		if !w.CLR.SuspendRuntime(a).Failed() {
			w.CLR.ResumeRuntime(a)
		}
		a.Unlock(w.Profiler)
	})
}

package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

var core22 = sim.Setup{Variant: vm.Core22Windows}

// locks are the rules about what a suspended thread may own.
func locks() []*Rule {
	return []*Rule{{
		Name:   "heap",
		Line:   "Between suspend and resume, allocate nothing.",
		Text:   "The suspended thread may stand inside the allocator, with the heap's lock. A sampler that allocates then waits for a lock whose owner it has stopped itself.",
		Source: "Broman, problem 1; seen: HeapAlloc deadlocks after 978 suspensions",
		Setup:  core22,
		Bounds: sched.ExploreOptions{Options: sched.Options{Preemptions: 3}},
		Broken: func(w *sim.World) { holder(w, w.Heap, sim.HeapAlloc); takesInWindow(w, w.Heap) },
		Kept:   func(w *sim.World) { holder(w, w.Heap, sim.HeapAlloc); kept(w, 2) },
		Wants:  sched.Deadlock,
		Says:   "process heap",
	}}
}

// holder is a thread that takes l inside the function in, in a P/Invoke.
func holder(w *sim.World, l *sched.Lock, in string) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.PInvoke(sim.NativeWork, func() { t.Holding(l, in, nil) })
	})
}

// takesInWindow is a sampler that takes l while a thread is suspended.
func takesInWindow(w *sim.World, l *sched.Lock) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		if _, err := a.SuspendThread(t.A); err != nil {
			return
		}
		if a.Stop(t.A) == nil {
			a.Lock(l)
			a.Unlock(l)
		}
		a.ResumeThread(t.A)
	})
}

// kept is the product's sampler: n rounds over all threads, every merged stack
// held against the truth.
func kept(w *sim.World, n int) {
	w.Host.Sampler(func(a *sched.Actor) { w.Host.SampleAll(n) })
}

package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// collections are the rules about calls that can start or meet a collection.
func collections() []*Rule {
	return []*Rule{
		{
			Name:   "gc-callback",
			Line:   "Hold no lock across a call that can wait for a collection (GarbageCollectionStarted).",
			Text:   "Thread A holds a lock of the profiler and calls an information function, which waits for the collection that thread B started. B calls GarbageCollectionStarted, where the profiler waits for the lock. Both threads hang, without any suspension.",
			Source: "Broman, rule 3, first example",
			Setup:  core22, Bounds: small(2), Wants: sched.Deadlock, Says: "profiler",
			Broken: func(w *sim.World) { onCollection(w); asksWithLock(w, true); collector(w) },
			Kept:   func(w *sim.World) { onCollection(w); asksWithLock(w, false); collector(w); kept(w, 1) },
		},
		{
			Name:   "module-load",
			Line:   "Hold no lock across a call that can start a collection (ModuleLoadStarted).",
			Text:   "Here A's own call starts the collection, which waits until B reaches a safe point. B is in ModuleLoadStarted, in cooperative mode, and waits for the lock that A holds.",
			Source: "Broman, rule 3, second example",
			Setup:  core22, Bounds: small(2), Wants: sched.Deadlock, Says: "profiler",
			Broken: func(w *sim.World) { onModule(w); collectsWithLock(w, true); loadsModule(w) },
			Kept: func(w *sim.World) {
				onModule(w)
				collectsWithLock(w,
					false)
				loadsModule(w)
				kept(w, 1)
			},
		},
	}
}

// onCollection is a profiler that takes its lock in GarbageCollectionStarted.
func onCollection(w *sim.World) {
	w.CLR.Callbacks.GarbageCollectionStarted = func(a *sched.Actor) {
		a.Lock(w.Profiler)
		a.Unlock(w.Profiler)
	}
}

// asksWithLock starts a thread in a callback of the profiler. The callback takes the profiler's
// lock, and then makes a call that enters cooperative mode. If holding is false, it releases the
// lock before that call.
func asksWithLock(w *sim.World, holding bool) {
	w.SpawnManaged("A", func(t *sim.Thread) {
		t.PInvoke(sim.NativeWork, func() {
			t.A.Lock(w.Profiler)
			if !holding {
				t.A.Unlock(w.Profiler)
			}
			w.CLR.Return(t.A, t.Thread)
			w.CLR.Leave(t.Thread)
			if holding {
				t.A.Unlock(w.Profiler)
			}
		})
	})
}

// onModule is a profiler that takes its lock in ModuleLoadStarted.
func onModule(w *sim.World) {
	w.CLR.Callbacks.ModuleLoadStarted = func(a *sched.Actor) {
		a.Lock(w.Profiler)
		a.Unlock(w.Profiler)
	}
}

func loadsModule(w *sim.World) {
	w.SpawnManaged("B", func(t *sim.Thread) {
		t.Helper(sim.JitCompile, func() { w.CLR.LoadModule(t.A) })
		t.Poll()
	})
}

func collectsWithLock(w *sim.World, holding bool) {
	w.SpawnManaged("A", func(t *sim.Thread) {
		t.A.Lock(w.Profiler)
		if !holding {
			t.A.Unlock(w.Profiler)
		}
		t.Collect()
		if holding {
			t.A.Unlock(w.Profiler)
		}
	})
}

package rules

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// seeds are the rules about what the CLR is given.
func seeds() []*Rule {
	return []*Rule{
		{
			Name:   "adjusted-seed",
			Line:   "A seed's ip is an interrupted ip or a return address, never one byte less.",
			Text:   "To look up a return address in a table, use the byte before it, because the call may be the last instruction of its function. A seed is different: the CLR decodes instructions at its ip. If the ip is in the middle of an instruction, the CLR faults on a thread that it does not know, and that ends the process.",
			Source: "excep.cpp, AVInRuntimeImplOkay; seen: the process dies, 4 of 4",
			Setup:  core22, Bounds: small(0), Wants: sched.Fault, Says: "80131506",
			Broken: func(w *sim.World) { helps(w); givesAdjusted(w) },
			Kept:   func(w *sim.World) { meets(w, 2, throwHelper) },
		},
		hijacked(), redirected(),
	}
}

// helps is a thread that is in a helper of the CLR in cooperative mode: what
// needs a seed.
func helps(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { throwHelper(t) })
	})
}

func throwHelper(t *sim.Thread) { t.Helper(sim.ThrowHelper, nil) }

// givesAdjusted is a sampler that gives the top managed frame with the ip it
// would look up.
func givesAdjusted(w *sim.World) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) {
		for _, f := range t.M.Truth(nil) {
			if w.CLR.Codes.Managed(f.State.PC) {
				seed := f.State
				seed.PC--
				snap(w, a, t, &seed)
				return
			}
		}
	})
}

// hijacked is the rule about return addresses that the CLR has replaced.
func hijacked() *Rule {
	world := func(w *sim.World) {
		w.SpawnManaged("target", func(t *sim.Thread) {
			t.Method(sim.Method(1), nil)
			t.Method(sim.Method(2), nil)
		})
		collector(w)
	}
	return &Rule{
		Name:   "hijacked-return",
		Line:   "Let the CLR walk managed frames: it replaces their return addresses.",
		Text:   "To stop a thread that runs managed code, the CLR replaces the return address of its frame by the address of a stub. A walk by unwind data alone reads the stub's address, and then loses the rest of the stack or invents frames. DoStackSnapshot knows the true address.",
		Source: "threadsuspend.cpp, HijackThread; seen: 3,113 samples below the stub",
		Setup:  core22, Bounds: small(2), Wants: sched.Fault, Says: "hijack_stub",
		Broken: func(w *sim.World) { world(w); walksItself(w) },
		Kept:   func(w *sim.World) { world(w); kept(w, 1) },
	}
}

// redirected is the rule about a thread that a collection finds while the sampler
// holds it.
func redirected() *Rule {
	world := func(w *sim.World, begins func() bool) {
		over := false
		w.Redirects(func(uint64) bool { return true })
		w.SpawnManaged("target", func(t *sim.Thread) {
			t.Method(sim.Method(1), func() {
				t.WaitUntil("loops until a flag is set",
					func() bool { return over })
			})
		})
		w.S.Go("collector", func(a *sched.Actor) {
			a.WaitUntil("a collection to be due", begins)
			w.CLR.Collect(a, nil)
			over = true
		})
	}
	return &Rule{
		Name:   "redirected-target",
		Line:   "If DoStackSnapshot answers UNMANAGED_CTX for a method on top, seed it with the context that you captured, not with a new one.",
		Text:   "A collection may start while the sampler holds the target. It suspends the target once more, finds it in managed code, changes its context so that it continues in the CLR's redirect stub, and resumes it once. The thread is now at a stub that has not run. No call entered the stub, so no return address is on the stack. DoStackSnapshot without a seed answers CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, and a walk from the new context invents a stack. The context captured before is still valid, because no frame has moved: use it as the seed. Check first that only the ip has changed, and that it is in the stub.",
		Source: "threadsuspend.cpp, CheckForAndDoRedirect; RedirectedHandledJITCase.asm; seen: 98 of 439 samples with a method on top, .NET Core 2.2.2",
		Setup:  core22, Bounds: small(3), Wants: sched.Fault, Says: "redirect_entry",
		Broken: func(w *sim.World) { world(w, func() bool { return true }); looksAgain(w) },
		// From the first suspension on, or most orders would be those of priming.
		Kept: func(w *sim.World) {
			world(w, func() bool { return w.Host.Counts.Suspends != 0 || w.Host.A.Ended() })
			kept(w, 1)
		},
	}
}

// looksAgain is a sampler that takes UNMANAGED_CTX for the truth: if no managed
// code is on top, what is there now must be walked by unwind data.
func looksAgain(w *sim.World) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) {
		if kind, _ := w.CLR.Codes.At(t.M.State().PC); kind != vm.Method {
			return
		}
		if snap(w, a, t, nil) != clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX {
			return
		}
		now := t.M.Truth(nil)
		a.Note("takes the context again: in %s", now[0].Func.Name)
		next, ok := machine.Unwind(w.Arch, w.Find, now[0].State, true, t.M.Word)
		if ok && next.PC == now[1].State.PC {
			return
		}
		at := "nowhere"
		if _, f := w.Find(next.PC); f != nil {
			at = f.Name
		}
		a.Fault("a wrong stack: above %s stands %s, it finds %s", now[0].Func.Name, now[1].Func.Name, at)
	})
}

// walksItself is a sampler that steps over managed frames by true unwind data,
// without the CLR.
func walksItself(w *sim.World) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) {
		truth := t.M.Truth(nil)
		st := truth[0].State
		for i := 1; i < len(truth); i++ {
			next, ok := machine.Unwind(w.Arch, w.Find, st, i == 1, t.M.Word)
			if !ok || next.PC != truth[i].State.PC {
				at := "nowhere"
				if _, f := w.Find(next.PC); f != nil {
					at = f.Name
				}
				a.Fault("a wrong stack: above %s stands %s, it finds %s",
					truth[i-1].Func.Name, truth[i].Func.Name, at)
			}
			st = next
		}
	})
}

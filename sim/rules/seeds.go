package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// seeds are the rules about what the CLR is given.
func seeds() []*Rule {
	return []*Rule{
		{
			Name:   "adjusted-seed",
			Line:   "A seed's ip is an interrupted ip or a return address, never one byte less.",
			Text:   "Tables are looked up with the byte before a return address, since the call may be a function's last instruction. A seed is not a look-up: the CLR decodes instructions from it. One that points into the middle of an instruction makes it fault inside itself, on a thread it does not know, and that ends the process.",
			Source: "excep.cpp, AVInRuntimeImplOkay; seen: the process dies, 4 of 4",
			Setup:  core22, Bounds: small(3), Wants: sched.Fault, Says: "80131506",
			Broken: func(w *sim.World) { helps(w); givesAdjusted(w) },
			Kept:   func(w *sim.World) { helps(w); kept(w, 2) },
		},
		hijacked(),
	}
}

// helps is a thread that is in a helper of the CLR in cooperative mode: what
// needs a seed.
func helps(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { t.Helper(sim.ThrowHelper, nil) })
	})
}

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
		Line:   "Let the CLR walk managed frames: their return addresses may not be where they were.",
		Text:   "To stop a thread that runs managed code the CLR replaces the return address of its frame by that of a stub. Who walks managed frames by unwind data alone reads the stub's address there, and loses the rest of the stack or invents one. DoStackSnapshot knows the true address.",
		Source: "threadsuspend.cpp, HijackThread; seen: 3,113 samples below the stub",
		Setup:  core22, Bounds: small(2), Wants: sched.Fault, Says: "hijack_stub",
		Broken: func(w *sim.World) { world(w); walksItself(w) },
		Kept:   func(w *sim.World) { world(w); kept(w, 1) },
	}
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
				a.Fault("a wrong stack: above %s stands %s, it finds %s", truth[i-1].Func.Name, truth[i].Func.Name, at)
			}
			st = next
		}
	})
}

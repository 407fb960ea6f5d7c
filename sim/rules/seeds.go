package rules

import (
	"github.com/seedwalk/seedwalk/sim"
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
			Setup:  core22, Bounds: small(2), Wants: sched.Fault, Says: "80131506",
			Broken: func(w *sim.World) { helps(w); givesAdjusted(w) },
			Kept:   func(w *sim.World) { helps(w); kept(w, 2) },
		},
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

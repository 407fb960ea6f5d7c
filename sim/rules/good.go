package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Good returns no rule, but a world in the same form. It shows one good sample step by step. Its
// stack is the published example, leaf first: an unmanaged block in a P/Invoke, D, the block that
// called D through a delegate, C, B, a COM-like block of unmanaged code, A, Main.
func Good() *Rule {
	return &Rule{Name: "good-sample", Setup: core22, Bounds: small(0), Kept: func(w *sim.World) {
		there, taken := false, false
		w.SpawnManagedIn("target", GoodFrames[7], func(t *sim.Thread) {
			eightFrames(t, func() {
				there = true
				t.WaitUntil("the sample", func() bool { return taken })
			})
		})
		w.Host.Sampler(func(a *sched.Actor) {
			a.WaitUntil("the stack of the figure", func() bool { return there }, w.Threads()[0].A)
			w.Host.SampleAll(1)
			taken = true
		})
	}}
}

// GoodFrames are the functions of the example, leaf first; between a method and
// the unmanaged code that calls it stands the CLR's call_managed.
var GoodFrames = [8]string{sim.NativeWork, sim.Method(4), sim.Native(2), sim.Method(3), sim.Method(2),
	sim.Native(1), sim.Method(1), sim.Method(0)}

func eightFrames(t *sim.Thread, top func()) {
	f := &GoodFrames
	t.Method(f[6], func() { // A
		t.PInvoke(f[5], func() { // what stands for COM: out of managed code, and in again
			t.Managed(f[4], func() { // B
				t.Method(f[3], func() { // C
					t.PInvoke(f[2], func() { // who was given a delegate
						t.Managed(f[1], func() { // D
							t.PInvoke(f[0], top)
						})
					})
				})
			})
		})
	})
}

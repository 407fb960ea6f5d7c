package vm

import "github.com/seedwalk/seedwalk/sim/sched"

// Hash returns a hash of what threads share in the CLR. The machine of a thread is not part of it, and the
// sched package hashes locks itself.
func (c *CLR) Hash() (h uint64) {
	if c.suspender != nil {
		h = sched.Mix(h, uint64(c.suspender.ID())+1)
	}
	h = sched.Mix(h, sched.Flags(c.Started, c.Detaching, c.NoGC, c.stopped, c.profiler))
	for a := range c.known {
		h += sched.Mix(1, uint64(a.ID()))
	}
	for a, n := range c.refusing {
		h += sched.Mix(2+uint64(n), uint64(a.ID()))
	}
	for _, t := range c.Threads {
		h = sched.Mix(h, sched.Flags(t.Dead, t.Trap, t.Redirected, t.Except.Unwinding, t.Except.Inconsistent,
			t.Mode == Cooperative))
		h = sched.Mix(h, uint64(t.Forbid)<<32|uint64(len(t.Handlers))<<16|uint64(len(t.Chain)))
		for _, word := range [...]uint64{t.slot, t.hijacked, t.said.slot, t.said.ra} {
			h = sched.Mix(h, word)
		}
	}
	return h
}

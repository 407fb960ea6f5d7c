package sim

import "github.com/seedwalk/seedwalk/sim/sched"

// hash returns a hash of what the process's threads share, for the scheduler's comparison of states. It
// leaves out the threads' machines: an actor that reads the machine of another thread calls Reads.
func (w *World) hash() uint64 {
	h, host := w.CLR.Hash(), w.Host
	for _, t := range w.threads {
		h = sched.Mix(h, sched.Flags(t.Hijack != nil))
	}
	for id := range host.destroyed {
		h += sched.Mix(3, uint64(id))
	}
	h = sched.Mix(h, uint64(host.claimed)<<8|uint64(host.window))
	watch := &host.watch
	if watch.asking != nil {
		h = sched.Mix(h, uint64(watch.asking.ID))
	}
	h = sched.Mix(h, sched.Flags(host.inside, host.Primed, watch.taken, watch.busy, watch.rescued))
	for _, s := range host.slots {
		h = sched.Mix(h, uint64(s.status)<<1|sched.Flags(s.answered))
	}
	if l := host.list; l != nil {
		h = sched.Mix(sched.Mix(sched.Mix(h, l.id), l.tid), l.claimed<<1|sched.Flags(l.dead))
	}
	return h
}

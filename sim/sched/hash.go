package sched

import "math/bits"

const hashStart = 0x9e3779b97f4a7c15

// mix folds v into h: two multiplications, enough that a changed bit of either
// reaches every bit of the result.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^0xa0761d6478bd642f, 0xe7037ed1a0b428db^bits.RotateLeft64(v, 31))
	return (hi ^ lo) * 0x9fb21c651e98df25
}

// Mix folds v into the hash h.
func Mix(h, v uint64) uint64 { return mix(h, v) }

// Flags packs up to 64 flags into a word.
func Flags(all ...bool) (n uint64) {
	for i, f := range all {
		if f {
			n |= 1 << i
		}
	}
	return n
}

// hashString hashes eight bytes at a time; it is the same in every process.
func hashString(s string) uint64 {
	h := uint64(len(s))
	for len(s) >= 8 {
		h = mix(h, uint64(s[0])|uint64(s[1])<<8|uint64(s[2])<<16|uint64(s[3])<<24|
			uint64(s[4])<<32|uint64(s[5])<<40|uint64(s[6])<<48|uint64(s[7])<<56)
		s = s[8:]
	}
	var tail uint64
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	return mix(h, tail)
}

// hashes reports whether anybody will read the actors' histories.
func (w *World) hashes() bool { return w.exp == nil || w.exp.opt.Prune != PruneNone }

// state hashes everything the rest of the run depends on.
func (w *World) state() uint64 {
	h := uint64(hashStart)
	if w.Hash != nil {
		h = mix(h, w.Hash())
	}
	for _, a := range w.actors {
		h = mix(h, a.state())
	}
	if w.judged {
		h = mix(h, w.verdict)
	}
	if w.opt.Preemptions > 0 || w.opt.Preemptions == NoPreemption {
		h = mix(h, uint64(w.preempted))
		if w.current != nil {
			h = mix(h, uint64(w.current.id))
		}
	}
	return h
}

// state hashes an actor: its history stands for its stack, since a body is a
// deterministic function of its inputs.
func (a *Actor) state() uint64 {
	h := mix(a.hist, a.held)
	if a.ended {
		h = mix(a.held, 1) // but AtEnd may look at its suspend count
	}
	flags := uint64(a.suspends)<<16 | uint64(len(a.signals))<<8
	for i, f := range [...]bool{a.stopped, a.inHandler, a.daemon, a.rescuer} {
		if f {
			flags |= 1 << i
		}
	}
	for _, s := range a.signals {
		h = mix(h, s.from)
	}
	by := uint64(0)
	for _, id := range a.suspenders {
		by += mix(hashStart, uint64(id))
	}
	return mix(mix(h, flags), by)
}

package agent

import "github.com/seedwalk/seedwalk/clr"

// Copies holds the copies that threads made of their own stacks. At fills a capture from
// slot i, or returns false if the slot is empty. Done frees the slot.
type Copies interface {
	Len() int
	At(i int, c *clr.Capture) bool
	Done(i int)
}

// proofs bounds how often copies wait for verified tables before they are walked without
// tables.
const proofs = 200

// Copied turns copies into stacks. The CLR has not reported their frames, so methods are
// found through its tables. Until these tables are verified, the copies stay in their slots.
func (a *Agent) Copied(copies Copies, use func(*Stack)) Round {
	a.openRaw()
	a.events()
	a.tables.refresh(a, false)
	a.threads = a.host.Threads(a.threads[:0])
	for i := range a.threads { // their CPU time belongs to samples
		a.clocks[a.threads[i].TID] = a.known(&a.threads[i])
	}
	a.expire()
	if a.proven() {
		a.use = use
		a.pin()
		for i := range copies.Len() {
			*a.copied = clr.Capture{}
			if copies.At(i, a.copied) {
				a.sample(a.copied)
				copies.Done(i)
			}
		}
		a.host.Unpin()
		a.use = nil
	}
	a.stream.Out.Reset()
	a.stream.Raw.Flush()
	return a.sofar()
}

// proven reports whether waiting longer would not improve the walk of copies.
func (a *Agent) proven() bool {
	r, ok := a.take.(*rounds)
	if !ok || r.managed.settled() || a.unproven == proofs {
		return true
	}
	if j, ok := a.host.(Jitted); ok {
		r.managed.Learn(a.merger, &clr.Capture{Frames: j.Jitted(nil)})
	}
	a.unproven++
	return r.managed.settled()
}

// Jitted is a host that lists some compiled methods, each with an address in its code. The
// CLR's answers for them verify its tables, as the report of a stack does.
type Jitted interface {
	Jitted(buf []clr.SnapshotFrame) []clr.SnapshotFrame
}

// settled reports whether the verification of the tables has succeeded or failed.
func (c *Contracts) settled() bool { return c.tables == nil || c.inUse || c.tables.Refuted() }

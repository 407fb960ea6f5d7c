package agent

import "github.com/seedwalk/seedwalk/clr"

// Copies are what threads have copied of themselves. At fills a capture from the i-th
// place, or answers false if nothing is there; Done gives the place back.
type Copies interface {
	Len() int
	At(i int, c *clr.Capture) bool
	Done(i int)
}

// proofs bounds how often copies wait for the runtime's tables to be proven before
// they are walked without.
const proofs = 200

// Copied makes stacks of copies. Nothing was asked of the CLR for them, so its
// methods are found by its own tables: these must be proven first, and as long as they
// are not the copies are left where they are.
func (a *Agent) Copied(copies Copies, use func(*Stack)) Round {
	a.openRaw()
	a.events()
	a.tables.refresh(a, false)
	a.threads = a.host.Threads(a.threads[:0])
	for i := range a.threads { // their processor time belongs to samples
		a.clocks[a.threads[i].TID] = a.known(&a.threads[i])
	}
	a.expire()
	if a.proven() {
		a.use = use
		a.host.Pin()
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

// proven reports whether copies can be walked as well as they ever will be.
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

// Jitted is a host that can name some methods that were compiled, with an address in
// the code of each. What the CLR says of them is the proof of its tables, as its report
// of a stack is.
type Jitted interface {
	Jitted(buf []clr.SnapshotFrame) []clr.SnapshotFrame
}

// settled reports whether it is known that the tables serve, or do not.
func (c *Contracts) settled() bool { return c.tables == nil || c.inUse || c.tables.Refuted() }

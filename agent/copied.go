package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
)

// proofs bounds how often copies wait for the runtime's tables to be proven before
// they are walked without.
const proofs = 50

// proofRest is the least time between two rounds made for a proof only.
const proofRest = 20 * time.Millisecond

// Copied makes stacks of what threads have copied of themselves: next fills a
// capture, or answers false when there is no more. Nothing was asked of the CLR for
// them, so its methods are found by its own tables: these must be proven first, and as
// long as they are not the copies are left where they are.
func (a *Agent) Copied(next func(*clr.Capture) bool, use func(*Stack)) Round {
	a.events()
	a.tables.refresh(a, false)
	a.threads = a.host.Threads(a.threads[:0])
	for i := range a.threads {
		a.tick(&a.threads[i])
	}
	a.expire()
	if a.proven() {
		a.use = use
		a.host.Pin()
		for *a.copied = (clr.Capture{}); next(a.copied); *a.copied = (clr.Capture{}) {
			a.sample(a.copied)
		}
		a.host.Unpin()
		a.use = nil
	}
	a.stream.Out.Reset()
	return a.sofar()
}

// proven reports whether copies can be walked as well as they ever will be. If not
// it takes a round: what the CLR reports of it is the proof.
func (a *Agent) proven() bool {
	r, ok := a.take.(*rounds)
	if !ok || r.managed.settled() || a.unproven == proofs {
		return true
	}
	if time.Since(a.proof) < proofRest {
		return false
	}
	a.proof = time.Now()
	a.unproven++
	a.use = func(*Stack) {}
	if a.choose() {
		a.host.Pin()
		a.take.round(a, a.chosen)
		a.host.Unpin()
	}
	a.use = nil
	return r.managed.settled()
}

// settled reports whether it is known how, or that, the tables serve.
func (c *Contracts) settled() bool { return c.tables == nil || c.inUse || c.tables.Refuted() }

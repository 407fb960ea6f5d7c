package agent

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// rounds suspends the runtime and samples all threads at once.
type rounds struct {
	host    Host
	sampler *snapshot.Sampler
	managed contracts
}

// prime always succeeds. Priming avoids a lock that a stopped thread may own, and this
// strategy stops no thread during a walk.
func (r *rounds) prime(threads []clr.Thread) bool {
	r.host.Prime(threads[0].ID)
	return true
}

func (r *rounds) round(a *Agent, threads []clr.Thread) string {
	o := r.sampler.Round(threads)
	a.stats.round(&o)
	for i := range r.sampler.Captures[:o.Captures] {
		a.sample(&r.sampler.Captures[i])
	}
	return ""
}

func (r *rounds) tables(a *Agent, t *module.Table) { r.managed.Find(t) }

func (r *rounds) merging(a *Agent, c *clr.Capture) {
	r.managed.Learn(a.merger, c)
	r.managed.compare(a, c)
}

func (r *rounds) write(w *wire.Writer) { r.managed.write(w) }

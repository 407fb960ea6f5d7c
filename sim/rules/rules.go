// Package rules holds the rules of asynchronous stack walking as worlds. A world
// deadlocks, faults, or gives a wrong stack if its sampler breaks the rule. It
// never does so if the sampler keeps the rule.
//
// Sources: David Broman, "Profiler stack walking: basics and beyond"; the
// remarks on ICorProfilerInfo2::DoStackSnapshot in Microsoft's reference;
// dotnet/runtime docs/design/coreclr/botr/profilability.md; runs on real CLRs.
//
// Glossary. *Broken* is a sampler that was written to break the rule. *Kept* is
// the product's sampler, package snapshot, in the same process.
//
// Known gaps: the worlds do not show where a real CLR differs from package vm.
// Package conform looks for these differences.
//
// Strategy: each family of rules has a file, and each rule is one value. All
// lists them. The explorer runs both sides. `seedwalk sim` and docs/rules.md show
// what it found.
package rules

import (
	"fmt"
	"slices"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Rule is one rule with the worlds that show it.
type Rule struct {
	Name   string // as on the command line
	Line   string // what the rule says, one line
	Text   string // why, a paragraph for a reader new to the subject
	Source string // where it is written, or was seen

	// Enforced names the test that fails if the product breaks the rule. Provoked names the
	// real CLR, and the test, on which the effect of a broken rule was seen.
	Enforced, Provoked string
	// Idle: no change of the product's sampler can make the kept side fail. The simulator has
	// no step on that side that does what the rule forbids.
	Idle bool
	// Hazard is what makes the rule necessary. Met reports whether a kept run met it. A run that did
	// not proves nothing about the rule. Both are empty for an idle rule.
	Hazard string
	Met    func(c *sim.Counts) bool
	// Locks are what the rule can be about, where it has a parameter: With is the rule
	// for one of them. Nil: it has none.
	Locks []Lock

	Setup  sim.Setup
	Bounds sched.ExploreOptions
	// Reach is the bound of preemptions of the kept side, which may be above that of the broken one;
	// 0: the same. Runs of the kept side are cut at states that an earlier run has reached.
	Reach int

	// Broken and Kept make the same process with another sampler.
	Broken func(w *sim.World)
	Kept   func(w *sim.World)
	// Wants is how some run of the broken side ends: Deadlock or Fault.
	Wants sched.Outcome
	// Says is a part of what the fault says or the graph of the deadlock names.
	Says string
}

// All lists every rule in the order to read them.
func All() []*Rule {
	all := slices.Concat(locks(), chains(), suspension(), collections(), seeds(), unix())
	for _, r := range all {
		k := keeps[r.Name]
		z := hazards[r.Name]
		r.Enforced, r.Provoked, r.Idle = k.enforced, k.provoked, k.idle
		r.Hazard, r.Met = z.text, z.met
		for i := range r.Locks {
			l := &r.Locks[i]
			l.Enforced, l.Provoked = keeps[l.Name].enforced, keeps[l.Name].provoked
		}
	}
	return all
}

// Each lists every rule, one with a parameter once for each lock in its place.
func Each() (all []*Rule) {
	for _, r := range All() {
		if r.Locks == nil {
			all = append(all, r)
		}
		for i := range r.Locks {
			all = append(all, r.With(&r.Locks[i]))
		}
	}
	return all
}

// Find returns a rule by name; the name of a lock is the rule with that lock.
func Find(name string) (*Rule, error) {
	for _, r := range append(All(), Each()...) {
		if r.Name == name {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no scenario is called %q; seedwalk sim lists them", name)
}

// build makes one side of r on a scheduler.
func (r *Rule) build(s *sched.World, setup sim.Setup, side func(w *sim.World)) {
	w, err := sim.NewWorld(s, setup)
	if err != nil {
		panic(err) // a kit that cannot be made is a bug, found by the first run
	}
	side(w)
	if r.Met != nil && w.Host != nil {
		met, shared := func() bool { return r.Met(&w.Host.Counts) }, s.Hash
		s.Meets(met)
		s.Hash = func() uint64 {
			if met() {
				return sched.Mix(shared(), 1)
			}
			return shared()
		}
	}
}

// Preemptions returns the bound of the kept side.
func (r *Rule) Preemptions() int {
	if r.Reach != 0 {
		return r.Reach
	}
	return r.Bounds.Preemptions
}

// Explore tries every order of the kept side's steps, within its bound.
func (r *Rule) Explore() sched.Report {
	opt := r.Bounds
	opt.Preemptions, opt.Prune = r.Preemptions(), sched.PruneObserved
	return r.explore(opt, r.Kept)
}

// MakeEachRun makes every run of one side within Bounds, and cuts none.
func (r *Rule) MakeEachRun(broken bool) sched.Report {
	if broken {
		return r.explore(r.Bounds, r.Broken)
	}
	return r.explore(r.Bounds, r.Kept)
}

// Fail makes runs of the broken side until one fails.
func (r *Rule) Fail() sched.Report {
	opt := r.Bounds
	opt.StopAtFirst = true
	return r.explore(opt, r.Broken)
}

func (r *Rule) explore(opt sched.ExploreOptions, side func(w *sim.World)) sched.Report {
	return sched.Explore(opt, func(s *sched.World) { r.build(s, r.Setup, side) })
}

// Run runs one side once under a schedule, with its trace.
func (r *Rule) Run(broken bool, ch sched.Chooser) sched.Result {
	side := r.Kept
	if broken {
		side = r.Broken
	}
	opt := r.Bounds.Options
	opt.Trace = true
	s := sched.New(ch, opt)
	r.build(s, r.Setup, side)
	return s.Run()
}

// Package story presents the rules of package sim/rules: as text for `seedwalk sim`, and as
// Markdown and pictures for docs/rules.md (`make rules`).
//
// Sources: those of package sim/rules, which each story names.
//
// Glossary. The *broken* side of a rule is a sampler that breaks it, the *kept*
// side seedwalk's own. A *timeline* is a run step by step, one column a thread.
//
// Strategy: a story is data first (Tell), then a rendering. The broken side is shown by its
// shortest failing schedule, so that a reader can follow it. The kept side is shown by a run
// that came close to a failure. Examples are a thread that was stopped while it owned a lock, a
// walk that was refused and made later, and a thread that had to wait.
//
// Known gaps: the words of a run's trace decide whether the run is shown. A search gives up
// after maxRuns.
package story

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Side is the result of all orders of one side's steps.
type Side struct {
	Report sched.Report
	Wrong  string // difference from the expected result, or ""
}

// Story contains everything that is printed about a rule. A side that was not requested is nil.
type Story struct {
	Rule         *rules.Rule
	Broken, Kept *Side
	Locks        []*Side       // broken, with each of the rule's locks
	Failing      *sched.Result // the broken side's, traced; nil if none fails
	Passing      *sched.Result // of the kept side, traced; nil if none passes
	PassingRun   uint64        // number of the random run Passing
}

// Wrong lists the differences of both sides from the expected result. It is empty if there are none.
func (s *Story) Wrong() (out []string) {
	for _, side := range append([]*Side{s.Broken, s.Kept}, s.Locks...) {
		if side != nil && side.Wrong != "" {
			out = append(out, side.Wrong)
		}
	}
	return out
}

// Tell explores the requested sides of a rule, within the rule's bounds, and picks the runs to show.
func Tell(r *rules.Rule, broken, kept bool) *Story {
	s := &Story{Rule: r}
	if broken {
		s.Broken = Explore(r, true)
		for i := range r.Locks {
			s.Locks = append(s.Locks, Explore(r.With(&r.Locks[i]), true))
		}
	}
	if kept {
		s.Kept = Explore(r, false)
	}
	s.pick()
	return s
}

// pick finds the runs to show of the requested sides.
func (s *Story) pick() {
	if s.Broken != nil {
		s.Failing = Shortest(s.Rule)
		if s.Failing == nil {
			s.Failing = s.Broken.Report.First // whatever it is
		}
	}
	if s.Kept != nil {
		s.Passing, s.PassingRun = Instructive(s.Rule)
	}
}

// Explore tries one side in every order within its bound.
func Explore(r *rules.Rule, broken bool) *Side {
	var rep sched.Report
	if broken {
		rep = r.MakeEachRun(true)
	} else {
		rep = r.Explore()
	}
	return &Side{Report: rep, Wrong: judge(r, broken, &rep)}
}

func judge(r *rules.Rule, broken bool, rep *sched.Report) string {
	switch {
	case broken && (rep.First == nil || rep.First.Outcome != r.Wants):
		return fmt.Sprintf("%s, broken: no %v in %d interleavings", r.Name, r.Wants, rep.Interleavings)
	case broken && !shows(r, rep.First):
		return fmt.Sprintf("%s, broken: its %v does not speak of %q", r.Name, r.Wants, r.Says)
	case !broken && rep.First != nil:
		return strings.TrimSpace(fmt.Sprintf("%s, kept: %v after %d steps: %s", r.Name, rep.First.Outcome,
			rep.First.Steps, firstLine(rep.First.Fault)))
	case !broken && !rep.Exhausted:
		return fmt.Sprintf("%s, kept: not every order within the bounds was tried", r.Name)
	}
	return ""
}

// shows reports whether res ended with the failure that the rule predicts.
func shows(r *rules.Rule, res *sched.Result) bool {
	if res.Outcome != r.Wants {
		return false
	}
	says := res.Fault
	if res.Graph != nil {
		says += res.Graph.Text()
	}
	return strings.Contains(says, r.Says)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

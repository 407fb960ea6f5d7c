package story

import (
	"strings"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// maxRuns bounds each search for a shorter schedule.
const maxRuns = 200_000

// Shortest returns the failing schedule of the broken side with the fewest steps. If several have
// as few steps, it returns one with the fewest preemptions. It returns nil if no schedule fails in
// the way that the rule describes.
func Shortest(r *rules.Rule) *sched.Result {
	if r.Wants == sched.StepLimit {
		return loop(r)
	}
	var best *sched.Result
	for _, p := range preemptions(r.Bounds.Preemptions) {
		try := *r
		try.Bounds.Preemptions, try.Bounds.MaxRuns = p, maxRuns
		best = shorten(&try, best)
	}
	return best
}

// preemptions lists the bounds to try, up to most.
func preemptions(most int) []int {
	bounds := []int{sched.NoPreemption}
	last := most
	if most <= 0 {
		last = 2 // and then everything
	}
	for p := 1; p <= last; p++ {
		bounds = append(bounds, p)
	}
	switch {
	case most == sched.NoPreemption:
		return bounds[:1]
	case most <= 0:
		bounds = append(bounds, sched.Unbounded)
	}
	return bounds
}

func failing(r *rules.Rule) *sched.Result {
	if rep := r.Fail(); rep.First != nil && shows(r, rep.First) {
		return rep.First
	}
	return nil
}

// shorten searches for failing schedules with fewer and fewer steps, and returns the last one that
// it finds. It starts with best; nil means that none is known.
func shorten(r *rules.Rule, best *sched.Result) *sched.Result {
	for {
		try := *r
		if best != nil {
			try.Bounds.MaxSteps = best.Steps - 1
		}
		if best != nil && best.Steps <= 1 {
			return best
		}
		next := failing(&try)
		if next == nil {
			return best
		}
		best = next
	}
}

// loopSteps is the number of steps after which a run counts as a loop.
const loopSteps = 160

// loop returns an endless run of the broken side. Of several random runs, it chooses the one whose
// trace has the most words of the rule. If several have as many, it chooses the first to repeat.
func loop(r *rules.Rule) (best *sched.Result) {
	try := *r
	try.Bounds.MaxSteps = min(loopSteps, try.Bounds.MaxSteps)
	most, fewest := -1, 0
	for n := uint64(1); n <= runsTried; n++ {
		res := try.Run(true, sched.Random(n))
		if res.Outcome != sched.StepLimit {
			continue
		}
		trace, found := endless(fold(res.Trace))
		if !found {
			continue
		}
		score := interest(&res) + spoken(r, trace)
		if score > most || score == most && len(trace) < fewest {
			best, most, fewest = &res, score, len(trace)
		}
	}
	if best == nil {
		return failing(r) // too rare for random orders
	}
	whole := r.Run(true, sched.Replay(best.Choices))
	return &whole
}

// Weights of an HRESULT that the rule mentions: by its name, such as UNSAFE, in the rule's line, and
// by each long word in the rule's text.
const weightName, weightWord, longWord = 20, 3, 8

// spoken adds up the weights of such results of the CLR in a trace.
func spoken(r *rules.Rule, trace []sched.Event) (score int) {
	notes := ""
	for _, e := range trace {
		if e.Kind == sched.KindNote {
			notes += e.Text + "\n"
		}
	}
	name := func(c rune) bool { return c != '_' && (c < 'A' || c > 'Z') }
	for _, word := range strings.FieldsFunc(r.Line, name) {
		if len(word) > 3 && strings.Contains(notes, word) {
			score += weightName
			break
		}
	}
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(notes, func(c rune) bool { return c < 'a' || c > 'z' }) {
		if len(word) >= longWord && !seen[word] && strings.Contains(r.Text, word) {
			seen[word] = true
			score += weightWord
		}
	}
	return score
}

// runsTried is the number of runs of the kept side from which the shown one is chosen.
const runsTried = 300

// Instructive returns a run of the kept side that came close to a failure and is not too long, and
// its number. It returns nil if no run passes.
func Instructive(r *rules.Rule) (best *sched.Result, run uint64) {
	most := 0
	for n := uint64(1); n <= runsTried; n++ {
		res := r.Run(false, sched.Random(n))
		if res.Outcome != sched.Done {
			continue
		}
		s := interest(&res) + spoken(r, res.Trace) - res.Steps/stepsAPoint
		if best == nil || s > most || s == most && res.Steps < best.Steps {
			best, run, most = &res, n, s
		}
	}
	return best, run
}

// Weights of the events that make a run worth reading.
const (
	weightWalk   = 30 // frames were reported
	weightOwner  = 15 // a thread was stopped while it owned a lock
	weightSeed   = 5  // the CLR was given a seed
	weightAnswer = 2  // for each kind of answer of the CLR
	weightWait   = 2  // for each reason to wait
	stepsAPoint  = 8  // so many steps more to read weigh one point
)

func interest(r *sched.Result) (score int) {
	owned := map[string]int{} // locks by thread
	seen := map[string]bool{}
	for _, e := range r.Trace {
		name, points := "", 0
		switch e.Kind {
		case sched.KindLock:
			owned[r.Actors[e.Actor]]++
		case sched.KindUnlock:
			owned[r.Actors[e.Actor]]--
		case sched.KindStop:
			target, _, _ := strings.Cut(strings.TrimPrefix(e.Text, "stop "), ":")
			if owned[target] > 0 {
				name, points = "owner", weightOwner
			}
		case sched.KindHandler:
			if owned[r.Actors[e.Actor]] > 0 {
				name, points = "owner", weightOwner
			}
		case sched.KindBlocked:
			name, points = e.Text, weightWait
		case sched.KindNote:
			name, points = answer(e.Text)
		}
		if name != "" && !seen[name] {
			seen[name] = true
			score += points
		}
	}
	return score
}

// answer reads a note of package sim/vm. name is the HRESULT in the note. points are the weights for a
// seed and for reported frames.
func answer(note string) (name string, points int) {
	if strings.Contains(note, ", seed in ") {
		return "seed", weightSeed
	}
	rest, ok := strings.CutPrefix(note, "DoStackSnapshot: ")
	if !ok {
		return "", 0
	}
	hr, _, _ := strings.Cut(rest, ",")
	if strings.Contains(rest, ", reported ") {
		return hr + " with frames", weightWalk
	}
	return hr, weightAnswer
}

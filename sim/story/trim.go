package story

import (
	"fmt"

	"github.com/seedwalk/seedwalk/sim/sched"
)

// Trim returns r with a shorter trace for people. Equal events in a row become one, and a repeated
// sequence is shown once. If untilEnd is not "", the trace stops at the end of that actor. left is a
// sentence that says what was omitted. It is "" if nothing was.
func Trim(r *sched.Result, untilEnd string) (short *sched.Result, left string) {
	c := *r
	c.Trace, left = cut(&c, untilEnd)
	c.Trace = fold(c.Trace)
	if r.Outcome == sched.StepLimit {
		c.Trace, _ = endless(c.Trace)
	}
	c.Trace = unrepeat(c.Trace)
	return &c, left
}

// cut drops the events after the end of the actor called name.
func cut(r *sched.Result, name string) ([]sched.Event, string) {
	for i, e := range r.Trace {
		if e.Kind != sched.KindEnd || r.Actors[e.Actor] != name || i+1 == len(r.Trace) {
			continue
		}
		return r.Trace[: i+1 : i+1],
			fmt.Sprintf("Left out: steps %d to %d, in which the other threads run to their ends.",
				e.Step+1, r.Steps)
	}
	return r.Trace, ""
}

// same reports whether two events look the same but for their steps.
func same(a, b *sched.Event) bool {
	return a.Actor == b.Actor && a.Kind == b.Kind && a.Text == b.Text && a.Lines == b.Lines
}

// fold joins equal events in a row.
func fold(in []sched.Event) (out []sched.Event) {
	for i := 0; i < len(in); {
		n := 1
		for i+n < len(in) && same(&in[i], &in[i+n]) {
			n++
		}
		e := in[i+n-1]
		if n > 1 {
			e.Text += fmt.Sprintf(" (%d times)", n)
		}
		out = append(out, e)
		i += n
	}
	return out
}

// A repetition has at most maxPeriod events and saves at least minSaved of them.
const maxPeriod, minSaved = 64, 4

// repeats counts how often the p events at i are repeated directly after them.
func repeats(in []sched.Event, i, p int) int {
	n := 0
	for at := i + p; at+p <= len(in); at += p {
		for k := range p {
			if !same(&in[i+k], &in[at+k]) {
				return n
			}
		}
		n++
	}
	return n
}

// unrepeat replaces the repetitions of a sequence of events by one event.
func unrepeat(in []sched.Event) (out []sched.Event) {
	for i := 0; i < len(in); {
		p, n := bestPeriod(in, i)
		out = append(out, in[i:i+p]...)
		if n > 0 {
			out = append(out, again(&in[i+p*(n+1)-1], fmt.Sprintf("the last %d events again%s", p, times(n))))
		}
		i += p * (n + 1)
	}
	return out
}

// bestPeriod finds the period at i that saves the most events, and its number of repetitions. It
// returns 1 and 0 if no period saves minSaved events.
func bestPeriod(in []sched.Event, i int) (period, n int) {
	period, saved := 1, minSaved-1
	for p := 2; p <= maxPeriod && i+2*p <= len(in); p++ {
		if k := repeats(in, i, p); k*p > saved {
			period, n, saved = p, k, k*p
		}
	}
	return period, n
}

// endless shortens a loop at the end of a trace to one round. It returns false if there is no loop.
func endless(in []sched.Event) ([]sched.Event, bool) {
	for p := 1; p <= maxPeriod && 3*p <= len(in); p++ {
		n := 0 // events that equal the one a period before
		for i := len(in) - 1; i >= p && same(&in[i], &in[i-p]); i-- {
			n++
		}
		if n < 2*p {
			continue
		}
		keep := len(in) - n
		out := append([]sched.Event{}, in[:keep]...)
		return append(out, again(&out[keep-1],
			fmt.Sprintf("and so on: the last %d events again and again", p))), true
	}
	return in, false
}

// again returns an event that replaces several others. The last of them is e.
func again(e *sched.Event, text string) sched.Event {
	return sched.Event{Step: e.Step, Actor: e.Actor, Kind: sched.KindNote,
		Text: "(" + text + ")", Lines: e.Lines}
}

func times(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(", %d times", n)
}

package sched

import (
	"fmt"
	"slices"
	"strings"
)

// Result describes a run that has ended.
type Result struct {
	Outcome Outcome
	Steps   int
	Actors  []string // names, by ID
	Trace   []Event  // nil unless Options.Trace
	Graph   *Graph   // nil unless Outcome is Deadlock
	Hash    uint64   // equal runs have equal hashes; under Explore, the order of steps does not count
	Choices []int    // for Replay
	Fault   string   // who and why, if Outcome is Fault
	Stack   string   // of the panic, if one caused the Fault
}

// Kind is the kind of an event, or of the point where an actor waits.
type Kind uint8

const (
	KindStart Kind = iota // not at a point yet
	KindStep
	KindLock
	KindTryLock
	KindUnlock
	KindWait
	KindSuspend
	KindStop
	KindResume
	KindRun // runs again after suspending itself
	KindSignal
	KindHandler    // a signal handler begins or returns
	KindChoose     // no step
	KindNote       // no step
	KindBlocked    // no step: the actor must wait
	KindKernelStop // a step of the kernel
	KindEnd
	KindFault
)

// Event is one line of a trace.
type Event struct {
	Step  int // the step it belongs to, from 1; 0 before the first
	Actor int
	Kind  Kind
	Text  string
	Lines string // one byte an actor, see the line constants
}

// The bytes of Event.Lines: the state of each actor after the event.
const (
	lineNone    = ' ' // not started, or ended
	lineRuns    = '|'
	lineWaits   = '.'
	lineStopped = '#' // a suspension is in force
	lineGrace   = '!' // suspended, not yet in force
)

// mark adds an event if the run is traced.
func (w *World) mark(a *Actor, k Kind, text string) {
	if w.opt.Trace {
		w.events = append(w.events, Event{w.steps, a.id, k, text, w.lines()})
	}
}

func (w *World) markBlocked(a *Actor) {
	if w.opt.Trace && !a.stopped {
		w.mark(a, KindBlocked, "waits: "+a.waitsFor())
	}
}

func (w *World) lines() string {
	var b strings.Builder
	for i, a := range w.actors {
		b.WriteByte(a.line(i < w.started))
	}
	return b.String()
}

func (a *Actor) line(started bool) byte {
	switch {
	case a.ended || !started:
		return lineNone
	case a.stopped:
		return lineStopped
	case a.suspends > 0:
		return lineGrace
	case a != a.w.running && a.blocked():
		return lineWaits
	}
	return lineRuns
}

// blocked reports whether the pending operation must wait. Of a condition it uses the last noted answer.
func (a *Actor) blocked() bool {
	switch a.op.kind {
	case KindLock:
		return !a.op.lock.free(a)
	case KindWait:
		return !a.can
	}
	return false
}

// waitsFor describes the pending operation.
func (a *Actor) waitsFor() string {
	switch a.op.kind {
	case KindStart:
		return "begins"
	case KindLock:
		if o := a.op.lock.owner; o != nil {
			return fmt.Sprintf("lock %s (held by %s)", a.op.lock.Name, o.name)
		}
		return "lock " + a.op.lock.Name
	case KindTryLock:
		return "try lock " + a.op.what
	case KindUnlock:
		return "unlock " + a.op.what
	case KindSuspend:
		return "suspend " + a.op.what
	case KindStop:
		return "stop " + a.op.what
	case KindResume:
		return "resume " + a.op.what
	case KindSignal:
		return "signal " + a.op.what
	}
	if a.op.text != "" {
		return a.op.text
	}
	return a.op.what
}

// result collects what is known at the end, before the actors are unwound.
func (w *World) result() Result {
	r := Result{
		Outcome: w.outcome, Steps: w.steps, Trace: w.events, Hash: w.trail,
		Choices: slices.Clone(w.choices), Fault: w.fault, Stack: w.stack,
	}
	for _, a := range w.actors {
		r.Hash = mix(r.Hash, a.hist)
		r.Actors = append(r.Actors, a.name)
	}
	if w.outcome == Deadlock {
		w.stuck()
		r.Graph = w.graph()
	}
	return r
}

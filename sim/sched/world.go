package sched

import "fmt"

// Outcome is how a run ended.
type Outcome uint8

const (
	Done      Outcome = iota // every actor that must end has ended
	Deadlock                 // an actor that must end never can
	Fault                    // Fault was called, an actor panicked, or AtEnd objected
	StepLimit                // MaxSteps were taken
	pruned                   // explorer: a state seen before
)

func (o Outcome) String() string {
	return [...]string{"done", "deadlock", "fault", "step limit", "pruned"}[min(o, pruned)]
}

// Values of Preemptions.
const (
	Unbounded    = -1 // the same as 0
	NoPreemption = -2 // an actor runs until it blocks or ends
)

// DefaultMaxSteps bounds a run whose Options give no bound.
const DefaultMaxSteps = 10_000

// Options of a run. The zero value is the widest: every schedule, no trace.
type Options struct {
	MaxSteps    int  // steps after which the run is cut; 0 is DefaultMaxSteps
	Trace       bool // keep what happened, for people
	Preemptions int  // at most that many switches away from an actor that could go on; see Unbounded, NoPreemption
}

// World is one run: its actors, the schedule and the shared state's hash.
type World struct {
	// Hash describes the state that actors share, for Prune; nil means they
	// share nothing but this package's locks. It must not call any method of
	// an actor.
	Hash func() uint64
	// AtEnd is asked once every actor that must end has ended; a text other
	// than "" makes the run a Fault. It sees what no single actor can, such as
	// suspend counts that do not balance.
	AtEnd func() string
	// Keep is the builder's own: what it wants to have again when Explore builds
	// the next run on the same worker. The scheduler never looks at it.
	Keep any

	ch  Chooser
	opt Options
	exp *explorer // nil outside Explore

	slots   []*Actor // kept from run to run with their coroutines
	actors  []*Actor // slots in use
	started int      // actors[:started] have run to their first point
	alive   int      // actors that must end and have not
	running *Actor   // whose coroutine runs or is to be resumed; nil at the end
	current *Actor   // who took the last step, for preemptions
	asking  *Actor   // whose condition is being evaluated, to blame it for a panic
	cutting bool     // actors are unwound
	over    bool     // a finish has been recorded

	steps, preempted int
	options          []option
	choices          []int
	dirty            bool   // an actor came to a halt since the last call of stuck
	trail            uint64 // hash of every step so far

	judged  bool   // Judge was called
	verdict uint64 // hash of what Judge was given
	met     func() bool

	outcome Outcome
	fault   string
	stack   string
	events  []Event
}

// option is one thing that can happen next.
type option struct {
	a  *Actor
	do optionKind
}

type optionKind uint8

const (
	doStep   optionKind = iota // the actor does what it waits to do
	doSignal                   // the actor runs its oldest pending signal handler
	doStop                     // the kernel puts its suspension in force
)

// New makes a world whose schedule comes from ch.
func New(ch Chooser, opt Options) *World {
	w := &World{opt: opt}
	w.reset(ch)
	return w
}

// reset readies w for another run; actors and buffers are reused.
func (w *World) reset(ch Chooser) {
	if w.opt.MaxSteps <= 0 {
		w.opt.MaxSteps = DefaultMaxSteps
	}
	*w = World{
		ch: ch, opt: w.opt, exp: w.exp, slots: w.slots, actors: w.slots[:0],
		options: w.options[:0], choices: w.choices[:0], trail: hashStart, Keep: w.Keep,
	}
}

// Judge notes that the run compared a result with the truth, by the hash of the result. A run
// that judged nothing proves nothing.
func (w *World) Judge(hash uint64) {
	w.judged = true
	w.verdict = mix(w.verdict, hash)
}

// Meets sets the hazard of the world: met is called at the end of each run that judged a result.
func (w *World) Meets(met func() bool) { w.met = met }

// Go adds an actor. Its body runs to its first point before the next step of
// anybody; what stands before that point must be of no interest to others.
// Names should differ: traces and graphs know actors by them.
func (w *World) Go(name string, body func(a *Actor)) *Actor {
	if w.cutting {
		panic(cut)
	}
	n := len(w.actors)
	if n == len(w.slots) {
		w.slots = append(w.slots, &Actor{})
	}
	w.actors = w.slots[:n+1]
	a := w.slots[n]
	a.reset(w, n, name, body)
	if w.running != nil {
		a.hist = mix(a.hist, w.running.hist) // which the body may have captured
	}
	w.alive++
	return a
}

// Steps returns how many steps were taken.
func (w *World) Steps() int { return w.steps }

// Run runs the world to its end. A world runs once.
func (w *World) Run() Result {
	defer w.close()
	w.run()
	r := w.result()
	w.cut()
	return r
}

// run drives the coroutines until the run is over; the actors are left where
// they stand, for the graph.
func (w *World) run() Outcome {
	w.advance()
	for w.running != nil {
		w.running.resume()
	}
	if w.outcome == Done && w.AtEnd != nil {
		w.atEnd()
	}
	return w.outcome
}

func (w *World) atEnd() {
	defer func() {
		if p := recover(); p != nil {
			w.outcome, w.fault = Fault, fmt.Sprint("AtEnd: ", p)
		}
	}()
	if text := w.AtEnd(); text != "" {
		w.outcome, w.fault = Fault, text
	}
}

// finish records how the run ended; the first word counts.
func (w *World) finish(o Outcome, text string) {
	w.running = nil
	if w.over {
		return
	}
	w.over, w.outcome, w.fault = true, o, text
}

// advance chooses the next actor: one that has not started, or one of all options.
// It stores the choice in w.running.
func (w *World) advance() {
	if w.over {
		w.running = nil
		return
	}
	if w.started < len(w.actors) {
		w.running = w.actors[w.started]
		w.started++
		return
	}
	for {
		if w.alive == 0 {
			w.finish(Done, "")
			return
		}
		w.listOptions()
		if len(w.options) == 0 || w.dirty && w.stuck() {
			w.finish(Deadlock, "")
			return
		}
		w.dirty = false
		if w.steps >= w.opt.MaxSteps {
			w.finish(StepLimit, "")
			return
		}
		i, ok := w.choose(len(w.options), true)
		if !ok {
			return
		}
		if w.take(w.options[i]) {
			return
		}
	}
}

// take performs o. It returns false if that was a step of the kernel, so that an
// actor must still be chosen.
func (w *World) take(o option) bool {
	w.steps++
	if o.do == doStop {
		o.a.stopped, w.dirty = true, true
		w.mark(o.a, KindKernelStop, "the suspension takes effect")
		return false
	}
	if w.current != nil && w.current != o.a && w.current.can {
		w.preempted++
	}
	w.current, w.running = o.a, o.a
	o.a.takesSignal = o.do == doSignal
	return true
}

// listOptions fills w.options: the actor of the last step first, so that the
// choice 0 is always to go on; then the others by number.
func (w *World) listOptions() {
	free := false
	for _, a := range w.actors {
		was := a.can || a.sig
		a.can = !a.ended && !a.stopped && a.ready()
		a.sig = len(a.signals) > 0 && !a.ended && !a.stopped && !a.inHandler
		now := a.can || a.sig
		free = free || now && !a.daemon && a.suspends == 0
		if !now && !a.ended && (was || !a.halted) {
			a.halted, w.dirty = true, true
			w.markBlocked(a)
		}
		a.halted = !now
	}
	w.options = w.options[:0]
	w.offer(w.current)
	if w.mayPreempt() {
		for _, a := range w.actors {
			if a != w.current {
				w.offer(a)
			}
		}
	}
	if !free {
		w.offerStops()
	}
}

func (w *World) offer(a *Actor) {
	if a == nil {
		return
	}
	if a.can {
		w.options = append(w.options, option{a, doStep})
	}
	if a.sig {
		w.options = append(w.options, option{a, doSignal})
	}
}

// offerStops lets the kernel stop those in grace; see the package comment for
// why only here.
func (w *World) offerStops() {
	for _, a := range w.actors {
		if a.suspends > 0 && (a.can || a.sig) {
			w.options = append(w.options, option{a, doStop})
		}
	}
}

func (w *World) mayPreempt() bool {
	bound := w.opt.Preemptions
	if bound == NoPreemption {
		bound = 0
	} else if bound <= 0 {
		return true
	}
	return w.preempted < bound || w.current == nil || !w.current.can
}

// choose asks the chooser for one of n; false if the run is over instead.
func (w *World) choose(n int, schedule bool) (int, bool) {
	if n == 1 {
		return 0, true
	}
	if schedule && w.exp != nil && w.exp.seen(w) {
		w.finish(pruned, "")
		return 0, false
	}
	i := w.ch.Choose(n)
	if i < 0 || i >= n {
		w.finish(Fault, fmt.Sprintf("choice %d: the chooser says %d of %d", len(w.choices), i, n))
		return 0, false
	}
	w.choices = append(w.choices, i)
	return i, true
}

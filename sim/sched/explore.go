package sched

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Prune selects which states count as seen before.
type Prune uint8

const (
	PruneNone     Prune = iota // every interleaving is run to its end
	PruneObserved              // actors Observe what they read and keep
	PruneSeen                  // sound for any actor: each step takes in World.Hash; merges less
)

// ExploreOptions bounds an exploration. The zero value explores every schedule, on one worker.
// Trace is ignored: only First is traced.
type ExploreOptions struct {
	Options
	Prune       Prune
	StopAtFirst bool // at the first Deadlock or Fault
	MaxRuns     int  // most runs, complete or cut; 0 = no bound
	Workers     int  // goroutines; 0 = 1; if there are several, they call build at the same time
	Split       int  // first choices that define a share of the work; 0 = 3, or none under Prune; -1 = none
}

// Report is the result of an exploration. It depends on Split and MaxRuns, but not on Workers. Each
// share of the work gets an equal part of MaxRuns.
type Report struct {
	Interleavings int // complete runs
	Pruned        int // runs cut at a state seen before
	States        int // distinct states, under Prune; the sum over the shares
	MaxDepth      int // steps of the longest run
	Done          int
	Deadlocks     int
	Faults        int
	StepLimits    int
	Results       map[uint64]bool // distinct judged results, by hash
	Orders        Paths           // all orders of steps, with those that Prune has cut; 0 if not Exhausted
	First         *Result         // the first Deadlock or Fault in order, else StepLimit, traced; nil if none
	Exhausted     bool            // no schedule within the bounds is left
}

// Paths counts complete runs: all, those that ended well with a judged result (see World.Judge), and of
// these those that met the world's hazard (see World.Meets). Under Prune, the runs that were cut are in it
// too. The counts are exact up to 2^53.
type Paths struct{ All, Judged, Met float64 }

func (p *Paths) add(q Paths) {
	p.All += q.All
	p.Judged += q.Judged
	p.Met += q.Met
}

// Explore runs build's world under every schedule within the bounds. It searches depth first: it
// runs the world again with another prefix of choices. It calls build once per run, and build must
// make the same world each time. A run with different options after the same prefix is a Fault.
func Explore(opt ExploreOptions, build func(w *World)) Report {
	opt.Trace = false
	shares, bad := deal(opt, build)
	if bad != nil {
		return Report{Interleavings: 1, Faults: 1, First: bad}
	}
	parts := make([]Report, len(shares))
	var next, failed atomic.Int64
	failed.Store(int64(len(shares)))
	work := func() {
		e := newExplorer(opt, build)
		defer e.w.close()
		for {
			i := next.Add(1) - 1
			// Shares after a failed one do not count, so that the totals are
			// those of a single worker.
			if i >= int64(len(shares)) || opt.StopAtFirst && i > failed.Load() {
				return
			}
			parts[i] = e.share(shares[i], len(shares),
				func() bool { return opt.StopAtFirst && i > failed.Load() })
			if parts[i].failures() > 0 {
				lower(&failed, i)
			}
		}
	}
	var all sync.WaitGroup
	for range max(opt.Workers, 1) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
	return collect(opt, parts)
}

// lower sets v to i if that is less.
func lower(v *atomic.Int64, i int64) {
	for old := v.Load(); i < old; old = v.Load() {
		if v.CompareAndSwap(old, i) {
			return
		}
	}
}

// collect adds the shares up in order. With StopAtFirst, it ends at the first failure.
func collect(opt ExploreOptions, parts []Report) Report {
	sum := Report{Exhausted: true}
	for _, p := range parts {
		sum.Interleavings += p.Interleavings
		sum.Pruned += p.Pruned
		sum.States += p.States
		sum.MaxDepth = max(sum.MaxDepth, p.MaxDepth)
		sum.Done += p.Done
		sum.Deadlocks += p.Deadlocks
		sum.Faults += p.Faults
		sum.StepLimits += p.StepLimits
		sum.Orders.add(p.Orders)
		for h := range p.Results {
			sum.result(h)
		}
		sum.Exhausted = sum.Exhausted && p.Exhausted
		if p.First != nil && worse(sum.First, p.First.Outcome) {
			sum.First = p.First
		}
		if opt.StopAtFirst && p.failures() > 0 {
			break
		}
	}
	return sum
}

func (r *Report) result(hash uint64) {
	if r.Results == nil {
		r.Results = map[uint64]bool{}
	}
	r.Results[hash] = true
}

func (r *Report) failures() int { return r.Deadlocks + r.Faults }

// worse reports whether a run that ended in o replaces first. A failure replaces a StepLimit,
// because a world with a busy daemon may reach the step limit long before its failure.
func worse(first *Result, o Outcome) bool {
	return first == nil || first.Outcome == StepLimit && o != StepLimit
}

// deal returns the prefixes of choices that define the shares of the work, in the order of the
// search. bad is a run that proves that build is not deterministic, or nil.
func deal(opt ExploreOptions, build func(*World)) (shares [][]int, bad *Result) {
	depth := opt.Split
	if depth == 0 && opt.Prune == PruneNone {
		depth = 3
	}
	if depth <= 0 {
		return [][]int{nil}, nil
	}
	opt.Prune, opt.StopAtFirst = PruneNone, false
	e := newExplorer(opt, build)
	defer e.w.close()
	e.limit = depth
	for more := true; more; more = e.backtrack(0) {
		e.once()
		if e.err != "" {
			return nil, e.tell()
		}
		shares = append(shares, e.prefix())
	}
	return shares, nil
}

// explorer searches one share after another, on one goroutine, and reuses its world. It is the
// world's Chooser.
type explorer struct {
	opt   ExploreOptions
	build func(*World)
	w     *World
	limit int // choices after which a run is cut, while the work is dealt; 0 is none

	stack   []branch
	depth   int // choices of the run so far
	visited map[uint64]visit
	state   uint64 // before the next choice, under Prune
	end     Paths  // from the end of the current run, or from the state where it was cut
	err     string
}

// visit is a state that was reached. paths are valid when all runs from it are explored.
type visit struct {
	steps int
	paths Paths
}

// branch is a choice of the current run.
type branch struct {
	chosen, of int
	state      uint64 // before it, under Prune; 0: an actor chooses
	paths      Paths  // of the options explored
}

func newExplorer(opt ExploreOptions, build func(*World)) *explorer {
	e := &explorer{opt: opt, build: build}
	e.w = &World{opt: opt.Options, exp: e}
	return e
}

// Choose follows the prefix and then always takes the first option.
func (e *explorer) Choose(n int) int {
	if e.depth == len(e.stack) {
		e.stack = append(e.stack, branch{of: n, state: e.state})
	}
	e.state = 0
	b := e.stack[e.depth]
	e.depth++
	if b.of != n && b.of != 0 {
		e.err = fmt.Sprintf("not deterministic: choice %d was one of %d and is one of %d", e.depth-1, b.of, n)
		return n
	}
	e.stack[e.depth-1].of = n
	return b.chosen
}

// seen reports whether to cut the run here, because an earlier run reached the same state in as many
// steps or fewer.
func (e *explorer) seen(w *World) bool {
	if e.depth < len(e.stack) {
		return false
	}
	if e.limit > 0 && e.depth >= e.limit {
		return true
	}
	if e.opt.Prune == PruneNone {
		return false
	}
	s := w.state()
	// Reached in fewer steps, a state has more before the step limit.
	if v, ok := e.visited[s]; ok && v.steps <= w.steps {
		e.end = v.paths
		return true
	}
	e.state, e.visited[s] = s, visit{steps: w.steps}
	return false
}

// once makes one run with the choices on the stack.
func (e *explorer) once() Outcome {
	e.depth, e.state, e.end = 0, 0, Paths{}
	e.w.reset(e)
	e.build(e.w)
	o := e.w.run()
	e.w.cut()
	return o
}

// backtrack moves to the next prefix in order. It keeps the first base choices, and returns false if
// no other prefix begins with them.
func (e *explorer) backtrack(base int) bool {
	for n := len(e.stack); n > base; n-- {
		b := &e.stack[n-1]
		b.paths.add(e.end)
		if b.chosen+1 < b.of {
			b.chosen++
			return true
		}
		e.end = b.paths
		if v, ok := e.visited[b.state]; ok {
			e.visited[b.state] = visit{v.steps, b.paths}
		}
		e.stack = e.stack[:n-1]
	}
	return false
}

func (e *explorer) prefix() []int {
	p := make([]int, len(e.stack))
	for i, b := range e.stack {
		p[i] = b.chosen
	}
	return p
}

// share explores everything below prefix.
func (e *explorer) share(prefix []int, shares int, enough func() bool) (r Report) {
	e.stack = e.stack[:0]
	for _, c := range prefix {
		e.stack = append(e.stack, branch{chosen: c})
	}
	if e.opt.Prune != PruneNone {
		e.visited = make(map[uint64]visit)
	}
	bound := (e.opt.MaxRuns + shares - 1) / shares
	for more := true; more; more = e.backtrack(len(prefix)) {
		if enough() || bound > 0 && r.Interleavings+r.Pruned >= bound {
			return r
		}
		e.count(&r, e.once())
		r.States = len(e.visited)
		if e.opt.StopAtFirst && r.failures() > 0 || e.err != "" {
			return r
		}
	}
	r.Exhausted, r.Orders = true, e.end
	return r
}

func (e *explorer) count(r *Report, o Outcome) {
	r.MaxDepth = max(r.MaxDepth, e.w.steps)
	if o == pruned {
		r.Pruned++
		return
	}
	r.Interleavings++
	e.end.All = 1
	switch o {
	case Done:
		r.Done++
		if e.w.judged {
			e.end.Judged = 1
			if e.w.met != nil && e.w.met() {
				e.end.Met = 1
			}
			r.result(e.w.verdict)
		}
		return
	case Deadlock:
		r.Deadlocks++
	case Fault:
		r.Faults++
	case StepLimit:
		r.StepLimits++
	}
	if worse(r.First, o) {
		r.First = e.tell()
	}
}

// tell repeats the current run with a trace.
func (e *explorer) tell() *Result {
	if e.err != "" {
		return &Result{Outcome: Fault, Fault: e.err, Choices: e.prefix()}
	}
	opt := e.opt.Options
	opt.Trace = true
	w := New(Replay(e.w.choices), opt)
	e.build(w)
	r := w.Run()
	return &r
}

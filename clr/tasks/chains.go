package tasks

import (
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/objects"
	"github.com/seedwalk/seedwalk/internal/intern"
)

// Group is a chain and the number of equal ones.
type Group struct {
	Count   int
	Chain   []string // the awaited operation first, then each method that awaits the one before it
	Task    uint64   // address of the first task of one such chain
	Threads []uint32 // that block until the chain ends, or run its first method; at most maxThreads
	Blocks  bool     // Threads block on it
	Limited bool     // Threads block on it, and a timer ends one of its tasks, or the wait through a token
	State   string   // of the chain's first task, see state; "" if unknown
}

// Result holds a process's pending tasks.
type Result struct {
	Groups      []Group // the most frequent first
	Chains      int     // sum over Groups
	Pending     int     // pending tasks, boxes, and the sources that boxes await
	Tasks       int     // tasks, also those that have ended
	Queued      int     // work items in the queues of the thread pool
	QueueRead   bool    // all queues of the pool could be read
	Unconfirmed int     // omitted: continuations without a link back, and waits that are on no stack
	Changed     int     // omitted: continuations that could not be read, and chains that changed meanwhile
	Unread      int     // pending tasks beyond the bound
	Moved       bool    // a collection ran, or may have run, during the reading: chains may be missing
	Busy        bool    // a collection was changing the heap when it was read
	Cut         bool    // a bound was reached: chains are missing
	ArraysCut   bool    // arrays of awaited tasks were too large: some chains end early
	Heap        objects.Walked
	// Limited are threads that wait for a task, an event, or a semaphore until a timer ends the wait
	// through a token.
	Limited []uint32
	Edges   []Edge // threads that wait for tasks which other threads run; at most maxEdges
}

// Bounds of the counted chains.
const (
	maxSteps  = 1 << 26 // of all chains
	maxLength = 1 << 12 // methods of one
	maxGroups = 1 << 16
	// maxThreads bounds the threads that are listed with a chain.
	maxThreads = 1 << 10
)

// A running process's heap is read again if a collection ran meanwhile. These bound the number of readings,
// and the start of the last one.
const (
	maxReadings = 5
	lastReading = 2 * time.Second
)

// Read finds the pending chains. Of several readings it returns the one that lacks least. It fails with
// ErrNoHeap, a *contract.Error, or an error for an unknown layout or an inconsistent list of regions. An
// error after the first reading is ignored.
func Read(src *Source) (*Result, error) {
	g := &graph{src: src}
	if err := g.open(); err != nil {
		return nil, err
	}
	var best *Result
	began := time.Now()
	for i := 0; i == 0 || i < maxReadings && time.Since(began) < lastReading; i++ {
		g.all, g.slab, g.arena, g.queues, g.sources, g.out = nil, nil, nil, nil, nil, &Result{}
		if err := g.read(); err != nil {
			if best != nil {
				return best, nil
			}
			return nil, err
		}
		g.connect()
		g.wait()
		g.out.Busy = g.heap.Busy
		g.out.Moved = g.heap.Busy || src.Moves && !g.heap.Unchanged()
		g.chains()
		if best == nil || g.out.missing() < best.missing() {
			best = g.out
		}
		if !g.out.Moved {
			break
		}
	}
	return best, nil
}

// missing returns the most continuations that a reading may lack.
func (r *Result) missing() uint64 { return uint64(r.Changed) + r.Heap.Lost/minBox }

// minBox is a lower bound of the size in bytes of any object that holds a continuation.
const minBox = 32

// step is a node in the tree of all chains; chains with equal beginnings share it.
type step struct {
	parent int32
	name   int32
}

// tree counts equal chains.
type tree struct {
	names []string
	ids   map[string]int32
	steps []step
	find  map[step]int32
	ends  map[end]*Group
	left  int     // steps that may still be made
	cut   bool    // a bound was reached
	path  []int32 // tasks from the chain's first one to the current one
	place []int32 // of each task: its 1-based place in path, offPath if it was in one, 0 if it was in none
}

// offPath is the place of a task that was climbed to and is not in the current path.
const offPath = -1

// end distinguishes chains with the same methods.
type end struct {
	step   int32
	blocks bool
	timed  bool
	state  string
}

func (t *tree) id(name string) int32 {
	return intern.Value(t.ids, &t.names, name)
}

func (t *tree) step(parent, name int32) int32 {
	return intern.Value(t.find, &t.steps, step{parent, name})
}

// chains counts the chains. A chain begins at a task for which no awaited operation was found, or at one task
// of a circle.
// Tasks that nothing awaits are omitted, except boxes that are tasks.
func (g *graph) chains() {
	t := &tree{ids: map[string]int32{}, find: map[step]int32{}, ends: map[end]*Group{}, left: maxSteps,
		place: make([]int32, len(g.all))}
	for i := range g.all {
		p := g.all[i]
		g.out.Pending++
		if p.below == 0 && (len(p.next) > 0 || len(p.blocks) > 0 ||
			p.shape.kind == box && p.shape.flags != 0) {
			g.climb(t, int32(i), -1, int32(i), way{})
		}
	}
	g.circles(t)
	g.out.Cut = t.cut
	for e, group := range t.ends {
		for s := e.step; s >= 0; s = t.steps[s].parent {
			group.Chain = append(group.Chain, t.names[t.steps[s].name])
		}
		slices.Reverse(group.Chain)
		g.out.Groups, g.out.Chains = append(g.out.Groups, *group), g.out.Chains+group.Count
	}
	slices.SortFunc(g.out.Groups, compare)
}

func compare(a, b Group) int {
	if a.Count != b.Count {
		return b.Count - a.Count
	}
	return strings.Compare(strings.Join(a.Chain, "\n"), strings.Join(b.Chain, "\n"))
}

// way describes the tasks from the first one of a chain to the current one.
type way struct {
	depth int  // number of tasks before the current one
	timed bool // a timer ends one of them
	open  bool // one of them may end before the task that it awaits
}

// climb adds task i below the node parent of the tree, and then each task that awaits it below that.
func (g *graph) climb(t *tree, first, parent, i int32, w way) {
	if t.left--; t.left <= 0 || len(t.ends) > maxGroups {
		t.cut = true
		return
	}
	state, thread := g.state(first)
	if w.depth > maxLength {
		t.cut = true
		g.end(t, first, end{step: parent, state: state}, thread)
		return
	}
	t.path = append(t.path, i)
	t.place[i] = int32(len(t.path))
	defer func() { t.path, t.place[i] = t.path[:len(t.path)-1], offPath }()
	p := g.all[i]
	// A token ends a task with code of its own only before that runs.
	w.timed = w.timed || p.word(p.shape.timer) != 0 || g.tokens.ends[p.addr] && p.state&stateInvoked == 0
	w.open = w.open || i != first && p.opens()
	at := t.step(parent, t.id(p.name()))
	for _, b := range p.blocks {
		g.end(t, first, end{at, true, w.timed || g.tokens.ends[b], state}, g.stacks[b])
		if !w.open {
			g.addEdge(g.all[first], b, w.timed || g.tokens.ends[b])
		}
	}
	for _, to := range p.next {
		if n := t.place[to]; n > 0 {
			g.close(t, first, at, t.path[n-1:])
		} else {
			g.climb(t, first, at, to, way{w.depth + 1, w.timed, w.open})
		}
	}
	if len(p.blocks) == 0 && len(p.next) == 0 {
		if g.out.Moved && (state == orphan || g.round[first] != "" || g.cut(first, p)) {
			g.out.Changed++
			return
		}
		g.end(t, first, end{step: at, state: state}, thread)
	}
}

// cut reports whether a chain seems incomplete: its first task is a promise whose task was not found, or its
// last task has a continuation that was not followed.
func (g *graph) cut(first int32, last *pending) bool {
	begins := g.all[first].shape.kind
	return begins == combined || begins == oneWay || last.shape.next != 0 && last.word(last.shape.next) != 0
}

// Queued is the state of a task that waits for a thread of the pool.
const Queued = "queued in the thread pool"

// orphan is the state of a method for which no awaited operation was found.
const orphan = "running, queued, or awaiting an object of its own"

// state returns the state of a chain's first task: in a circle, queued, running, or orphan. It returns "" for
// other tasks. thread runs the task; it is 0 if no thread does.
func (g *graph) state(first int32) (state string, thread uint32) {
	p := g.all[first]
	if thread = g.stacks[p.addr]; g.waiting[thread] {
		thread = 0 // it waits for the task
	}
	switch {
	case g.round[first] != "":
		return g.round[first], 0
	case g.queued[p.addr]:
		return Queued, 0
	case p.shape.kind == box && thread != 0:
		return "running", thread
	case p.shape.kind == box:
		return orphan, 0
	case p.shape.kind == task && p.state&stateInvoked != 0:
		return "running", thread
	}
	return "", 0
}

// end counts a chain. If stacks were read, it omits waits on which no thread blocks any more.
func (g *graph) end(t *tree, first int32, e end, thread uint32) {
	if e.blocks && thread == 0 && len(g.src.Stacks) > 0 {
		g.out.Unconfirmed++ // no thread blocks on it any more
		return
	}
	group := t.ends[e]
	if group == nil {
		group = &Group{Task: g.all[first].addr, Blocks: e.blocks, Limited: e.timed, State: e.state}
		t.ends[e] = group
	}
	group.Count++
	if thread != 0 && len(group.Threads) < maxThreads && !slices.Contains(group.Threads, thread) {
		group.Threads = append(group.Threads, thread)
	}
}

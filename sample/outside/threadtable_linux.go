package outside

import (
	"math"
	"slices"
	"time"
)

// threadTable is the list of a process's threads, kept in step with the kernel's, and when each
// has to be looked at. While any thread of the process runs now and then, those that sleep
// cost a look every few seconds; while none does, nothing but a look at the process's clock.
type threadTable struct {
	clock   clock
	kernel  taskFiles
	tasks   map[uint32]*task
	due     int64 // when the next has to be looked at, 0 = not known
	maxOpen int   // of their files

	came func(*task) // a thread is new
	name func(*task) // or may have another name
	gone func(*task) // or has ended

	listed  time.Time
	listing uint64 // counts listings
	links   uint64 // at the last one, and the process's clock
	ran     int64

	order   []*task // the tasks, in which visits go round
	at      int     // where the pass under way goes on, 0 = none is
	passDue int64   // the least due of those that the pass has seen
	redo    bool    // another pass has to follow at once
}

// What a round may do where there are many threads: it must read the probe's ring in time.
const (
	visitCalls   = 2048                  // calls of the kernel in visits, until they go on in the next round
	resumeVisits = 10 * time.Millisecond // until the next round then, at most
	listRest     = time.Millisecond      // between listings, for each listShare threads
	listShare    = 64
)

func newThreadTable(pid int) threadTable {
	return threadTable{kernel: newTaskFiles(pid), tasks: map[uint32]*task{}, maxOpen: mayOpen(2, mostOpen)}
}

// watch looks at the process's clock, if that is due.
func (r *threadTable) watch(now int64) {
	if !r.clock.due(now) {
		return
	}
	was := r.idle()
	ran, ok := r.kernel.ran()
	r.clock.saw(now, ran, ok)
	if was && !r.idle() {
		r.due, r.redo = 0, true // those that nobody has had to look at
	}
}

// idle reports whether no thread has run from one look at the clock to the next.
func (r *threadTable) idle() bool { return r.clock.idle }

// list lists the threads anew if there may be others than before, but for the helper.
func (r *threadTable) list(now time.Time, helper uint32) {
	if r.idle() && r.links != 0 {
		return
	}
	links, ok := r.kernel.links()
	if rest := time.Duration(len(r.tasks)/listShare) * listRest; !ok || now.Sub(r.listed) < rest || links == r.links && now.Sub(r.listed) < listEvery {
		return
	}
	r.listed = now
	ran, known := r.kernel.ran() // before the listing: what runs after this moves the clock
	if known && links == r.links && ran == r.ran {
		return
	}
	r.links, r.ran = links, ran
	r.listing++
	whole := r.kernel.list(func(tid uint32) {
		if tid != helper {
			r.there(tid, now.UnixNano())
		}
	})
	if whole {
		r.drop()
	}
}

// drop forgets the threads that were not in the last listing. The pass under way goes on with
// the thread that was next.
func (r *threadTable) drop() {
	before := len(r.tasks)
	for _, t := range r.tasks {
		if t.listing != r.listing {
			r.gone(t)
			delete(r.tasks, t.tid)
		}
	}
	if len(r.tasks) == before {
		return
	}
	i, at := 0, r.at
	r.order = slices.DeleteFunc(r.order, func(t *task) bool {
		ended := t.listing != r.listing
		if i++; ended && i <= at {
			r.at--
		}
		return ended
	})
}

// again has the next round list the threads.
func (r *threadTable) again() { r.links = 0 }

// there takes note of a thread that is there.
func (r *threadTable) there(tid uint32, now int64) {
	t := r.tasks[tid]
	switch {
	case t == nil:
		t = &task{tid: tid, stat: -1, place: -1, slot: -1, visited: now, born: now, listing: r.listing}
		r.tasks[tid], r.due = t, 0
		r.order = append(r.order, t)
		r.came(t)
		if len(r.tasks) < r.maxOpen {
			if fd, err := r.kernel.open(tid, "schedstat"); err == nil {
				t.stat = fd
			}
		}
		r.name(t)
	case t.rename(now):
		r.name(t)
	}
	t.listing = r.listing
}

// visits gives the threads that are due to visit, one after the other. A pass over many threads
// takes several rounds, so that each costs a bounded number of calls.
func (r *threadTable) visits(now int64, visit func(*task)) {
	if r.due > now {
		return
	}
	if r.at == 0 {
		r.passDue, r.redo = math.MaxInt64, false
	}
	for most := r.kernel.calls + visitCalls; r.at < len(r.order); r.at++ {
		if r.kernel.calls >= most {
			return
		}
		t := r.order[r.at]
		if r.dueOf(t) <= now {
			visit(t)
		}
		r.passDue = min(r.passDue, r.dueOf(t))
	}
	if r.at, r.due = 0, r.passDue; r.redo {
		r.due = 0
	}
}

// unfinished reports whether a pass is under way.
func (r *threadTable) unfinished() bool { return r.at > 0 }

// idlePoll is after how long a thread is looked at though it cannot have run: the tool
// learns then that it has rested, and that the clock is to be trusted.
const idlePoll = int64(time.Minute)

// dueOf is when a thread has to be looked at: one that has been since the process's clock
// moved last, and rested, only when it moves again.
func (r *threadTable) dueOf(t *task) int64 {
	if r.idle() && t.rest && t.lull == r.clock.lull {
		return max(t.due, t.visited+idlePoll)
	}
	return t.due
}

// since is what a thread did from one visit to the next.
type since struct {
	counters
	passed int64  // nanoseconds
	used   uint64 // of a processor
	rested bool   // it has not run, and has the stack that it had
	stood  int64  // nanoseconds before passed in which it had that stack, though it has run since
}

// look reads what a thread did since its last visit, and says when the next one is. False:
// it has ended.
func (r *threadTable) look(t *task, now, period int64) (s since, ok bool) {
	c, ok := r.kernel.counters(t)
	if !ok {
		r.again()
		t.ended = true
		t.due = now + int64(time.Millisecond)
		return since{stood: t.stoodTill()}, false
	}
	s = since{counters: c, used: c.cpu - t.last.cpu, rested: t.rest && t.seen && c == t.last}
	if !s.rested {
		s.stood = t.stoodTill()
	}
	s.passed = now - t.visited
	t.visited, t.seen, t.last, t.rest, t.lull = now, true, c, s.rested, r.clock.lull
	if s.rested {
		t.every = min(2*t.every, maxRest)
		t.due = together(now+t.every, t.every)
	} else {
		t.every = max(period, int64(time.Millisecond))
		t.due = now + t.every
	}
	return s, true
}

// together puts the visits of resting threads on common instants, between which the
// engine can sleep: the rarer the visits are, the further apart these.
func together(due, every int64) int64 {
	step := max(int64(longest), every/8)
	return (due + step - 1) / step * step
}

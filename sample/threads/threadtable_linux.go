package threads

import (
	"math"
	"slices"
	"time"
)

// Table is the list of a process's threads, kept in step with the kernel's, and when each
// has to be looked at. While any thread of the process runs now and then, those that sleep
// cost a look every few seconds; while none does, only a reading of the process's clock.
type Table struct {
	Clock   clock
	Kernel  Files
	Tasks   map[uint32]*Task
	Due     int64 // when the next has to be looked at, 0 = not known
	maxOpen int   // of their files

	Came func(*Task) // a thread is new
	Name func(*Task) // or may have another name
	Gone func(*Task) // or has ended

	listed  time.Time
	Listing uint64 // counts listings
	links   uint64 // at the last one, and the process's clock
	ran     int64

	Order   []*Task // the tasks, in which visits go round
	At      int     // where the pass under way goes on, 0 = none is
	passDue int64   // the least due of those that the pass has seen
	Redo    bool    // another pass has to follow at once
}

// How often threads are looked for and visited.
const (
	ListEvery = time.Second            // where their number has not changed
	Longest   = 40 * time.Millisecond  // that the engine sleeps while a thread may wake up
	MaxRest   = int64(4 * time.Second) // between visits to a thread that rests
	mostOpen  = 1 << 13                // schedstat files kept open
)

// What a round may do where there are many threads: it must read the probe's ring in time.
const (
	VisitCalls   = 2048                  // calls of the kernel in visits, until they go on in the next round
	ResumeVisits = 10 * time.Millisecond // until the next round then, at most
	listRest     = time.Millisecond      // between listings, for each listShare threads
	listShare    = 64
)

func NewTable(pid int) Table {
	return Table{Kernel: OpenFiles(pid), Tasks: map[uint32]*Task{}, maxOpen: MayOpen(2, mostOpen)}
}

// Watch looks at the process's clock, if that is due.
func (r *Table) Watch(now int64) {
	if !r.Clock.due(now) {
		return
	}
	was := r.Idle()
	ran, ok := r.Kernel.Ran()
	r.Clock.saw(now, ran, ok)
	if was && !r.Idle() {
		r.Due, r.Redo = 0, true // those that nobody has had to look at
	}
}

// Idle reports whether no thread has run from one look at the clock to the next.
func (r *Table) Idle() bool { return r.Clock.Idle }

// List lists the threads again if there may be others than before, but for the helper.
func (r *Table) List(now time.Time, helper uint32) {
	if r.Idle() && r.links != 0 {
		return
	}
	links, ok := r.Kernel.links()
	if rest := time.Duration(len(r.Tasks)/listShare) * listRest; !ok || now.Sub(r.listed) < rest || links == r.links && now.Sub(r.listed) < ListEvery {
		return
	}
	r.listed = now
	ran, known := r.Kernel.Ran() // before the listing: what runs after this moves the clock
	if known && links == r.links && ran == r.ran {
		return
	}
	r.links, r.ran = links, ran
	r.Listing++
	whole := r.Kernel.list(func(tid uint32) {
		if tid != helper {
			r.Add(tid, now.UnixNano())
		}
	})
	if whole {
		r.Drop()
	}
}

// Drop forgets the threads that were not in the last listing. The pass under way goes on with
// the thread that was next.
func (r *Table) Drop() {
	before := len(r.Tasks)
	for _, t := range r.Tasks {
		if t.Listing != r.Listing {
			r.Gone(t)
			delete(r.Tasks, t.TID)
		}
	}
	if len(r.Tasks) == before {
		return
	}
	i, at := 0, r.At
	r.Order = slices.DeleteFunc(r.Order, func(t *Task) bool {
		ended := t.Listing != r.Listing
		if i++; ended && i <= at {
			r.At--
		}
		return ended
	})
}

// Relist has the next round list the threads.
func (r *Table) Relist() { r.links = 0 }

// Add takes note of a thread that is there.
func (r *Table) Add(tid uint32, now int64) {
	t := r.Tasks[tid]
	switch {
	case t == nil:
		t = &Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Visited: now, Born: now, Listing: r.Listing}
		r.Tasks[tid], r.Due = t, 0
		r.Order = append(r.Order, t)
		r.Came(t)
		if len(r.Tasks) < r.maxOpen {
			if fd, err := r.Kernel.open(tid, "schedstat"); err == nil {
				t.Stat = fd
			}
		}
		r.Name(t)
	case t.Rename(now):
		r.Name(t)
	}
	t.Listing = r.Listing
}

// Visits gives the threads that are due to visit, one after the other. A pass over many threads
// takes several rounds, so that each costs a bounded number of calls.
func (r *Table) Visits(now int64, visit func(*Task)) {
	if r.Due > now {
		return
	}
	if r.At == 0 {
		r.passDue, r.Redo = math.MaxInt64, false
	}
	for most := r.Kernel.Calls + VisitCalls; r.At < len(r.Order); r.At++ {
		if r.Kernel.Calls >= most {
			return
		}
		t := r.Order[r.At]
		if r.dueOf(t) <= now {
			visit(t)
		}
		r.passDue = min(r.passDue, r.dueOf(t))
	}
	if r.At, r.Due = 0, r.passDue; r.Redo {
		r.Due = 0
	}
}

// Unfinished reports whether a pass is under way.
func (r *Table) Unfinished() bool { return r.At > 0 }

// idlePoll is after how long a thread is looked at though it cannot have run: the tool
// learns then that it has rested, and that the clock is to be trusted.
const idlePoll = int64(time.Minute)

// dueOf is when a thread has to be looked at: one that has been since the process's clock
// moved last, and rested, only when it moves again.
func (r *Table) dueOf(t *Task) int64 {
	if r.Idle() && t.Rest && t.Lull == r.Clock.Lull {
		return max(t.Due, t.Visited+idlePoll)
	}
	return t.Due
}

// since is what a thread did from one visit to the next.
type since struct {
	Counters
	Passed int64  // nanoseconds
	Used   uint64 // of a processor
	Rested bool   // it has not run, and has the stack that it had
	Stood  int64  // nanoseconds before passed in which it had that stack, though it has run since
}

// Look reads what a thread did since its last visit, and says when the next one is. False:
// it has ended.
func (r *Table) Look(t *Task, now, period int64) (s since, ok bool) {
	c, ok := r.Kernel.Counters(t)
	if !ok {
		r.Relist()
		t.Ended = true
		t.Due = now + int64(time.Millisecond)
		return since{Stood: t.StoodTill()}, false
	}
	s = since{Counters: c, Used: c.Cpu - t.Last.Cpu, Rested: t.Rest && t.Seen && c == t.Last}
	if !s.Rested {
		s.Stood = t.StoodTill()
	}
	s.Passed = now - t.Visited
	t.Visited, t.Seen, t.Last, t.Rest, t.Lull = now, true, c, s.Rested, r.Clock.Lull
	if s.Rested {
		t.Every = min(2*t.Every, MaxRest)
		t.Due = together(now+t.Every, t.Every)
	} else {
		t.Every = max(period, int64(time.Millisecond))
		t.Due = now + t.Every
	}
	return s, true
}

// together puts the visits of resting threads on common instants, between which the
// engine can sleep: the rarer the visits are, the further apart these.
func together(due, every int64) int64 {
	step := max(int64(Longest), every/8)
	return (due + step - 1) / step * step
}

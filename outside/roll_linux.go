package outside

import (
	"math"
	"time"
)

// roll is the list of a process's threads, kept in step with the kernel's, and when each
// has to be looked at. While any thread of the process runs now and then, those that sleep
// cost a look every few seconds; while none does, nothing but a look at the process's clock.
type roll struct {
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
}

func newRoll(pid int) roll {
	return roll{kernel: newTaskFiles(pid), tasks: map[uint32]*task{}, maxOpen: mayOpen(2, mostOpen)}
}

// watch looks at the process's clock, if that is due.
func (r *roll) watch(now int64) {
	if !r.clock.due(now) {
		return
	}
	was := r.calm()
	ran, ok := r.kernel.ran()
	r.clock.saw(now, ran, ok)
	if was && !r.calm() {
		r.due = 0 // those that nobody has had to look at
	}
}

// calm reports whether no thread has run from one look at the clock to the next.
func (r *roll) calm() bool { return r.clock.still }

// list lists the threads anew if there may be others than before, but for the helper.
func (r *roll) list(now time.Time, helper uint32) {
	if r.calm() && r.links != 0 {
		return
	}
	links, ok := r.kernel.links()
	if !ok || links == r.links && now.Sub(r.listed) < listEvery {
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
	for _, t := range r.tasks {
		if whole && t.listing != r.listing {
			r.gone(t)
			delete(r.tasks, t.tid)
		}
	}
}

// again has the next round list the threads.
func (r *roll) again() { r.links = 0 }

// there takes note of a thread that is there.
func (r *roll) there(tid uint32, now int64) {
	t := r.tasks[tid]
	switch {
	case t == nil:
		t = &task{tid: tid, stat: -1, place: -1, slot: -1, visited: now, born: now}
		if len(r.tasks) < r.maxOpen {
			if fd, err := r.kernel.open(tid, "schedstat"); err == nil {
				t.stat = fd
			}
		}
		r.tasks[tid], r.due = t, 0
		r.name(t)
		r.came(t)
	case t.rename(now):
		r.name(t)
	}
	t.listing = r.listing
}

// visits gives the threads that are due to visit, if any is.
func (r *roll) visits(now int64, visit func(*task)) {
	if r.due > now {
		return
	}
	r.due = math.MaxInt64
	for _, t := range r.tasks {
		if r.dueOf(t) <= now {
			visit(t)
		}
		r.due = min(r.due, r.dueOf(t))
	}
}

// calmFor is after how long a thread is looked at though it cannot have run: the tool
// learns then that it has rested, and that the clock is to be trusted.
const calmFor = int64(time.Minute)

// dueOf is when a thread has to be looked at: one that has been since the process's clock
// moved last, and rested, only when it moves again.
func (r *roll) dueOf(t *task) int64 {
	if r.calm() && t.rest && t.lull == r.clock.lull {
		return max(t.due, t.visited+calmFor)
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
func (r *roll) look(t *task, now, period int64) (s since, ok bool) {
	c, ok := r.kernel.counters(t)
	if !ok {
		r.again()
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

package threads

import (
	"math"
	"slices"
	"sort"
	"time"
)

// Table is the list of a process's threads, kept in step with the kernel's, with the time of each next
// poll. While any thread of the process runs now and then, a sleeping thread costs one poll every few
// seconds. While none runs, the process's clock is read, and each thread is polled once a minute.
type Table struct {
	Clock   clock
	Kernel  Files
	Tasks   map[uint32]*Task
	Due     int64 // time of the next poll, 0 = unknown
	maxOpen int   // limit of open schedstat files

	Unix func(time.Time) int64 // Unix time of a moment, nanoseconds
	Came func(*Task)           // called for a new thread
	Name func(*Task)           // called when a thread may have a new name
	Gone func(*Task)           // called when a thread has ended

	listed  time.Time
	Listing uint64 // counts listings
	links   uint64 // Kernel.links at the last listing; 0 = list at the next round
	ran     int64  // the process's clock then
	shared  bool   // ShareRest was called

	Delayed uint64 // nanoseconds in which threads were ready to run without a processor; a lower bound

	Order   []*Task // the tasks in the order of polls
	At      int     // where the current pass continues, 0 = none
	passDue int64   // earliest due time that the pass has seen
	Redo    bool    // another pass has to follow at once
}

// How often threads are listed and polled.
const (
	ListEvery = time.Second            // while their number does not change
	Longest   = 40 * time.Millisecond  // longest sleep of the engine while a thread may wake up
	MaxRest   = int64(4 * time.Second) // longest time between polls of a resting thread
	mostOpen  = 1 << 13                // open schedstat files
)

// What one round may do in a process with many threads: it must read the probe's ring in time.
const (
	PollCalls   = 2048                  // system calls for polls in one round; the next round continues
	ResumePolls = 10 * time.Millisecond // longest wait for that round
	listRest    = time.Millisecond      // between listings, for each listShare threads
	listShare   = 64
)

func NewTable(pid int) Table {
	return Table{Kernel: OpenFiles(pid), Tasks: map[uint32]*Task{}, maxOpen: MayOpen(2, mostOpen),
		Unix: time.Time.UnixNano}
}

// Watch reads the process's clock if that is due.
func (r *Table) Watch(now int64) {
	if !r.Clock.due(now) {
		return
	}
	prev := r.Idle()
	ran, ok := r.Kernel.Ran()
	r.Clock.saw(now, ran, ok)
	if prev && !r.Idle() {
		r.Due, r.Redo = 0, true // also the threads that were skipped as idle
	}
}

// Idle reports whether no thread ran between the last two readings of the clock.
func (r *Table) Idle() bool { return r.Clock.Idle }

// List lists the threads again if they may have changed, without the helper thread.
func (r *Table) List(now time.Time, helper uint32) {
	if r.Idle() && r.links != 0 {
		return
	}
	links, ok := r.Kernel.links()
	if rest := time.Duration(len(r.Tasks)/listShare) * listRest; !ok || now.Sub(r.listed) < rest ||
		links == r.links && now.Sub(r.listed) < ListEvery {
		return
	}
	r.listed = now
	ran, known := r.Kernel.Ran() // read before the listing: anything that runs later moves the clock
	if known && links == r.links && ran == r.ran {
		return
	}
	r.links, r.ran = links, ran
	r.Listing++
	whole := r.Kernel.list(func(tid uint32) {
		if tid != helper {
			r.Add(tid, r.Unix(now))
		}
	})
	if whole {
		r.Drop(helper)
	}
}

// Drop removes the helper thread, and threads that have ended. A listing may lack a living thread (see
// Files.list). It stays: if it were removed and added again, its CPU time would count twice. A thread
// that has ended may be listed, because another one has its number: that one is added by the next listing.
// The current pass continues with the thread that was next.
func (r *Table) Drop(helper uint32) {
	before := len(r.Tasks)
	for _, t := range r.Tasks {
		listed := t.Listing == r.Listing
		if listed && !t.Ended {
			continue
		}
		if _, lives := r.Kernel.Counters(t); lives && t.TID != helper {
			t.Listing, t.Ended = r.Listing, false
			r.Relist() // new threads may be missing too
			continue
		}
		r.Gone(t)
		delete(r.Tasks, t.TID)
		if t.Listing = 0; listed {
			r.Relist()
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

// Relist makes List list the threads as soon as the pause after the last listing is over.
func (r *Table) Relist() { r.links = 0 }

// Add adds a thread, or marks a known one as listed.
func (r *Table) Add(tid uint32, now int64) {
	t := r.Tasks[tid]
	switch {
	case t == nil:
		t = &Task{TID: tid, Stat: -1, Place: -1, Slot: -1, Polled: now, Born: now, Listing: r.Listing}
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

// Polls calls poll for each thread that is due. A pass over many threads takes several rounds, so that each
// costs a bounded number of system calls.
func (r *Table) Polls(now int64, poll func(*Task)) {
	if r.Due > now {
		return
	}
	if r.At == 0 {
		r.passDue, r.Redo = math.MaxInt64, false
	}
	for most := r.Kernel.Calls + PollCalls; r.At < len(r.Order); r.At++ {
		if r.Kernel.Calls >= most {
			return
		}
		t := r.Order[r.At]
		if r.dueOf(t) <= now {
			poll(t)
		}
		r.passDue = min(r.passDue, r.dueOf(t))
	}
	if r.At, r.Due = 0, r.passDue; r.Redo {
		r.Due = 0
	}
}

// Unfinished reports whether a pass is in progress.
func (r *Table) Unfinished() bool { return r.At > 0 }

// idlePoll is the time after which a thread is polled although it cannot have run. The poll confirms that
// it has rested and that the clock is right.
const idlePoll = int64(time.Minute)

// dueOf returns when to poll a thread. A thread that rested at a poll since the clock last moved is due
// only when the clock moves again.
func (r *Table) dueOf(t *Task) int64 {
	if r.Idle() && t.Rest && t.IdleSpan == r.Clock.IdleSpan {
		return max(t.Due, t.Polled+idlePoll)
	}
	return t.Due
}

// since is the change in a thread between two polls.
type since struct {
	Counters
	Passed  int64  // nanoseconds
	Used    uint64 // of a processor, nanoseconds
	Rested  bool   // it has not run and its stack is unchanged
	Stood   int64  // nanoseconds before Passed for which it kept its stack, although it has run since
	Blocked int64  // nanoseconds of Passed without need of a processor, after a long rest; else 0
}

// Leave returns how much of Passed belongs to the stack of the last poll, at which the thread rested, and
// takes it from Passed. A thread that runs now has hardly blocked since it woke up. For a blocked one, the
// moment of waking is unknown, and half is right on average.
func (s *since) Leave(where Where) (wall int64) {
	if wall = s.Blocked; where != Running {
		wall /= 2
	}
	s.Passed -= wall
	return wall
}

// Look reads what a thread did since its last poll and sets the time of the next one. It returns false if
// the thread has ended.
func (r *Table) Look(t *Task, now, period int64) (s since, ok bool) {
	c, ok := r.Kernel.Counters(t)
	if !ok {
		r.Relist()
		t.Ended = true
		t.Due = now + int64(time.Millisecond)
		s.Stood = t.StoodTill()
		s.Passed = now - t.Polled
		return s, false
	}
	s = since{Counters: c, Used: c.Cpu - t.Last.Cpu, Rested: t.Rest && t.Seen && c == t.Last}
	if !s.Rested {
		s.Stood = t.StoodTill()
	}
	s.Passed = now - t.Polled
	if t.Seen {
		delayed := c.Wait - min(c.Wait, t.Last.Wait)
		r.Delayed += delayed
		if t.Rest && s.Passed > 2*max(period, int64(time.Millisecond)) {
			s.Blocked = max(s.Passed-int64(s.Used+delayed), 0)
		}
	}
	t.Read(c)
	t.Polled, t.Seen, t.Rest, t.IdleSpan = now, true, s.Rested, r.Clock.IdleSpan
	if s.Rested {
		t.Every = min(2*t.Every, MaxRest)
		t.Due = together(now+t.Every, t.Every)
	} else {
		t.Every = max(period, int64(time.Millisecond))
		t.Due = now + t.Every
	}
	return s, true
}

// together moves the polls of resting threads to common instants, between which the engine can sleep. Rarer
// polls have instants that are further apart.
func together(due, every int64) int64 {
	step := max(int64(Longest), every/8)
	return (due + step - 1) / step * step
}

// PollAfter returns when to poll a thread after a number of failed polls: at a multiple of a step,
// one to two steps after the last poll, so that several threads share a moment. The step is the
// period, doubled for each failed poll up to Longest.
func PollAfter(polled, period int64, misses int) int64 {
	step := max(period, int64(time.Millisecond))
	for step < int64(Longest)/2+1 && misses > 0 {
		step *= 2
		misses--
	}
	return (polled + 2*step - 1) / step * step
}

// LeaveOrder returns the threads in the order in which the engine asks them, by a signal, to end the
// recording. Threads in a system call that the signal would end are the last. Of the others, threads with a
// slot come first, and of these the ones with the most CPU time.
func (r *Table) LeaveOrder() []*Task {
	tids := make([]*Task, 0, len(r.Tasks))
	sleeps := map[*Task]bool{}
	for _, t := range r.Tasks {
		tids, sleeps[t] = append(tids, t), r.Kernel.Sleeps(t.TID)
	}
	sort.Slice(tids, func(i, j int) bool {
		a, b := tids[i], tids[j]
		if sleeps[a] != sleeps[b] {
			return sleeps[b]
		}
		if (a.Slot >= 0) != (b.Slot >= 0) {
			return a.Slot >= 0
		}
		return a.Last.Cpu > b.Last.Cpu
	})
	return tids
}

// ShareRest gives the threads of a process that has ended what it used after their counters were last read.
// all is the time of the process without that of the threads whose time has been sent. Each other thread that
// is Uncounted gets a share like that of its last use, up to twice that use: the end of the process may need
// more than all threads before it. Further calls change nothing.
func (t *Table) ShareRest(all uint64) {
	if t.shared {
		return
	}
	t.shared = true
	var known, recent uint64
	for _, k := range t.Tasks {
		if k.Accounted {
			continue
		}
		if known += k.SpentToEnd(); k.Uncounted() {
			recent += k.recent
		}
	}
	for _, k := range t.Tasks {
		if all > known && !k.Accounted && k.Uncounted() && k.recent > 0 {
			k.unread = min(uint64(float64(all-known)*float64(k.recent)/float64(recent)), 2*k.recent)
		}
	}
}

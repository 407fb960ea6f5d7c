package outside

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// manyTasks returns a table of n threads that are always due. Each poll counts as many system calls as
// a poll of a blocked thread makes.
func manyTasks(n int) (r *threads.Table, poll func(*threads.Task), polls map[uint32]int) {
	r, polls = &threads.Table{Kernel: threads.Files{Dir: -1}, Tasks: map[uint32]*threads.Task{}},
		map[uint32]int{}
	r.Gone, r.Name, r.Came = func(*threads.Task) {}, func(*threads.Task) {}, func(*threads.Task) {}
	for i := range n {
		r.Add(uint32(i+1), 0)
	}
	return r, func(k *threads.Task) {
		polls[k.TID]++
		r.Kernel.Calls += 8
	}, polls
}

// A pass over many threads takes several rounds, each with a bounded number of system calls. Every thread is
// polled once before any is polled again.
func TestPollsAreBounded(t *testing.T) {
	const many = 5000
	r, poll, polls := manyTasks(many)
	rounds := 0
	for len(polls) < many {
		before := r.Kernel.Calls
		r.Polls(1, poll)
		rounds++
		n := r.Kernel.Calls - before
		must.True(t, n != 0 && n <= threads.PollCalls+8, "round %d: %d calls", rounds, n)
		expect.Equal(t, r.Unfinished(), (len(polls) < many),
			"round %d, %d polled: unfinished", rounds, len(polls))
	}
	for tid, n := range polls {
		expect.Equal(t, n, 1, "thread %d: polls", tid)
	}
	want := many*8/threads.PollCalls + 1
	expect.True(t, rounds == want, "%d rounds, want %d", rounds, want)
}

// Every thread is polled even if others start or end during a pass.
func TestPollsWhileThreadsChange(t *testing.T) {
	const many = 2000
	r, poll, polls := manyTasks(many)
	next := uint32(many)
	for range 2 * many * 8 / threads.PollCalls {
		r.Polls(1, poll)
		r.Listing++
		for tid, k := range r.Tasks {
			if tid%5 != uint32(r.Listing%5) || tid <= many/2 {
				k.Listing = r.Listing
			}
		}
		for range 100 {
			next++
			r.Add(next, 0)
		}
		r.Drop(0)
		must.True(t, len(r.Order) == len(r.Tasks) && r.At <= len(r.Order),
			"%d in order of %d, at %d", len(r.Order), len(r.Tasks), r.At)
	}
	for tid := uint32(1); tid <= many/2; tid++ {
		expect.True(t, polls[tid] != 0, "thread %d has not been polled", tid)
	}
}

// The pass continues with the thread that was next, whichever thread ends.
func TestDropKeepsPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		ended []uint32
		want  uint32 // the next thread
	}{
		{"nobody", nil, 4}, {"before", []uint32{1, 3}, 4}, {"behind", []uint32{5, 6}, 4},
		{"the next one", []uint32{4}, 5},
		{"the last polled", []uint32{3}, 4}, {"all polled", []uint32{1, 2, 3}, 4},
		{"the rest", []uint32{4, 5, 6}, 0},
	} {
		r, _, _ := manyTasks(6)
		r.At, r.Listing = 3, 1
		for tid, k := range r.Tasks {
			if !slices.Contains(c.ended, tid) {
				k.Listing = 1
			}
		}
		r.Drop(0)
		got := uint32(0)
		if r.At < len(r.Order) {
			got = r.Order[r.At].TID
		}
		expect.True(t, got == c.want && len(r.Order) == 6-len(c.ended),
			"%s: thread %d is next of %d", c.name, got, len(r.Order))
	}
}

// If a process starts to run during a pass, the threads that the pass has skipped as idle are polled too.
func TestPassAfterIdle(t *testing.T) {
	r, poll, polls := manyTasks(1000)
	r.Clock.IdleSpan, r.Clock.Idle = &threads.IdleSpan{}, true
	for i, k := range r.Order {
		if i < 500 { // these rest
			k.Rest, k.IdleSpan = true, r.Clock.IdleSpan
		}
	}
	r.Polls(1, poll)
	must.True(t, r.Unfinished() && len(polls) != 0, "unfinished %v, %d polls", r.Unfinished(), len(polls))
	r.Clock.Idle, r.Redo, r.Due = false, true, 0 // as Watch does
	for range 10 {
		r.Polls(1, poll)
	}
	expect.Equal(t, len(polls), 1000, "threads polled")
}

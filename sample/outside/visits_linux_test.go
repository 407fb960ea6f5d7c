package outside

import (
	"slices"
	"testing"
)

// manyTasks is a list of so many threads that are due all the time. Each visit costs as many
// calls as one to a blocked thread does.
func manyTasks(n int) (r *threadTable, visit func(*task), visits map[uint32]int) {
	r, visits = &threadTable{kernel: taskFiles{dir: -1}, tasks: map[uint32]*task{}}, map[uint32]int{}
	r.gone, r.name, r.came = func(*task) {}, func(*task) {}, func(*task) {}
	for i := range n {
		r.there(uint32(i+1), 0)
	}
	return r, func(k *task) {
		visits[k.tid]++
		r.kernel.calls += 8
	}, visits
}

// A pass over many threads takes several rounds, each of which makes a bounded number of calls.
// No thread is visited twice before all have been.
func TestVisitsAreBounded(t *testing.T) {
	const threads = 5000
	r, visit, visits := manyTasks(threads)
	rounds := 0
	for len(visits) < threads {
		before := r.kernel.calls
		r.visits(1, visit)
		rounds++
		if n := r.kernel.calls - before; n == 0 || n > visitCalls+8 {
			t.Fatalf("round %d: %d calls", rounds, n)
		}
		if r.unfinished() != (len(visits) < threads) {
			t.Errorf("round %d, %d visited: unfinished %v", rounds, len(visits), r.unfinished())
		}
	}
	for tid, n := range visits {
		if n != 1 {
			t.Errorf("thread %d: %d visits", tid, n)
		}
	}
	if want := threads*8/visitCalls + 1; rounds != want {
		t.Errorf("%d rounds, want %d", rounds, want)
	}
}

// Threads that start or end during a pass do not keep other threads from being visited.
func TestVisitsWhileThreadsChange(t *testing.T) {
	const threads = 2000
	r, visit, visits := manyTasks(threads)
	next := uint32(threads)
	for range 2 * threads * 8 / visitCalls {
		r.visits(1, visit)
		r.listing++
		for tid, k := range r.tasks {
			if tid%5 != uint32(r.listing%5) || tid <= threads/2 {
				k.listing = r.listing
			}
		}
		for range 100 {
			next++
			r.there(next, 0)
		}
		r.drop()
		if len(r.order) != len(r.tasks) || r.at > len(r.order) {
			t.Fatalf("%d in order of %d, at %d", len(r.order), len(r.tasks), r.at)
		}
	}
	for tid := uint32(1); tid <= threads/2; tid++ {
		if visits[tid] == 0 {
			t.Errorf("thread %d has not been visited", tid)
		}
	}
}

// The pass goes on with the thread that was next, whichever end.
func TestDropKeepsPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		ended []uint32
		want  uint32 // that is next
	}{
		{"nobody", nil, 4}, {"before", []uint32{1, 3}, 4}, {"behind", []uint32{5, 6}, 4}, {"the next one", []uint32{4}, 5},
		{"the last visited", []uint32{3}, 4}, {"all visited", []uint32{1, 2, 3}, 4}, {"the rest", []uint32{4, 5, 6}, 0},
	} {
		r, _, _ := manyTasks(6)
		r.at, r.listing = 3, 1
		for tid, k := range r.tasks {
			if !slices.Contains(c.ended, tid) {
				k.listing = 1
			}
		}
		r.drop()
		got := uint32(0)
		if r.at < len(r.order) {
			got = r.order[r.at].tid
		}
		if got != c.want || len(r.order) != 6-len(c.ended) {
			t.Errorf("%s: thread %d is next of %d", c.name, got, len(r.order))
		}
	}
}

// A process that begins to run while a pass is under way has those visited again that the pass
// has left out because nobody ran.
func TestPassAfterCalm(t *testing.T) {
	r, visit, visits := manyTasks(1000)
	r.clock.lull, r.clock.idle = &idleSpan{}, true
	for i, k := range r.order {
		if i < 500 { // these rest
			k.rest, k.lull = true, r.clock.lull
		}
	}
	r.visits(1, visit)
	if !r.unfinished() || len(visits) == 0 {
		t.Fatalf("unfinished %v, %d visits", r.unfinished(), len(visits))
	}
	r.clock.idle, r.redo, r.due = false, true, 0 // as watch does
	for range 10 {
		r.visits(1, visit)
	}
	if len(visits) != 1000 {
		t.Errorf("%d of 1000 threads visited", len(visits))
	}
}

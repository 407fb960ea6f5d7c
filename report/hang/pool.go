package hang

import "slices"

// workers are the workers of a thread pool if all of them block.
type workers struct {
	blocked []uint32
	still   int  // did not run between the snapshots, and wait for tasks
	queued  int  // wait for tasks that are in the pool's own queue
	grows   bool // at least one ran between the snapshots or is new, and waits for a task now
	passes  bool // at least one ran between the snapshots and is not new
	limited bool // a time limit ends each wait
}

// workers returns the workers of the thread pool, nil if there are none, or if one is free or makes progress.
func (j *judge) workers() *workers {
	out := &workers{limited: true}
	for i := range j.p.Threads {
		t := &j.p.Threads[i]
		is, busy := t.worker()
		if !is {
			continue
		}
		w, _ := t.Wait()
		switch {
		case !busy || w == NoWait || w == Idle || t.Ran && !t.New && w != Task:
			return nil
		case w == Task && t.Ran:
			out.grows = true
		case w == Task:
			out.still++
		}
		if j.p.behindQueued(t.TID) {
			out.queued++
		}
		out.passes = out.passes || t.Ran && !t.New
		out.limited = out.limited && (t.Limited || j.p.limited(t))
		out.blocked = append(out.blocked, t.TID)
	}
	if len(out.blocked) == 0 {
		return nil
	}
	return out
}

// behindQueued reports whether a thread waits for a task that is in the queue of the thread pool. One of
// several is enough, unless another one ends the wait too.
func (p *Process) behindQueued(tid uint32) bool {
	all := p.chains(tid)
	queued := func(c *Chain) bool { return c.Queued }
	ends := func(c *Chain) bool { return !c.Queued && slices.Contains(c.Names, "Task.WhenAny") }
	return slices.ContainsFunc(all, queued) && !slices.ContainsFunc(all, ends)
}

// starvation finds a thread pool whose workers all block. If each waits for work in the pool's own queue, it
// hangs, unless all waits have a time limit. Otherwise at least as many workers as there are processors, and
// at least two, must be still and wait for tasks. This counts as a hang if there are more such workers than
// processors, or if the pool grows: another worker ran between the snapshots and waits for a task now.
func (j *judge) starvation() {
	w := j.workers()
	switch {
	case w == nil:
	case w.still > 0 && w.queued == len(w.blocked):
		limit := ""
		if w.limited {
			limit = " All waits have a time limit."
		}
		j.add(Starvation, !w.limited, w.blocked, j.list(w.blocked, j.does),
			"All %s of the thread pool wait for work that is queued behind them in the same pool.%s",
			count(w.queued, "worker"), limit)
	case w.still >= max(2, j.p.Processors) && !j.p.NoneQueued: // with an empty queue, no task lacks a worker
		j.add(Starvation, w.grows || w.still > j.p.Processors, w.blocked, j.list(w.blocked, j.does),
			"All %d workers of the thread pool block, %d of them on a task. If it needs a worker to complete, it waits forever.",
			len(w.blocked), w.still)
	}
}

// backlog finds queued work behind workers that all block, whatever they wait for, if no other verdict
// explains all of them. It is no hang: a wait may end, or the pool may add a worker.
func (j *judge) backlog() {
	w := j.workers()
	if w == nil || w.passes || len(w.blocked) < max(2, j.p.Processors) || j.p.Queued == 0 ||
		!slices.ContainsFunc(w.blocked, func(tid uint32) bool { return !j.seen[tid] }) {
		return
	}
	j.add(Starvation, false, w.blocked, j.list(w.blocked, j.does),
		"All %d workers of the thread pool block, and %s in its queue. Queued work starts when a wait ends or the pool adds a worker.",
		len(w.blocked), isAre(j.p.Queued, "work item"))
}

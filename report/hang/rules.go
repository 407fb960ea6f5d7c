package hang

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names a verdict; it is also the name of the section in docs/hang.md.
type Kind string

// Verdicts, in the order in which they are tried.
const (
	Stopped    Kind = "stopped"
	Deadlock   Kind = "deadlock"
	Abandoned  Kind = "abandoned"
	Suspension Kind = "collection"
	HeldLock   Kind = "held-lock"
	Starvation Kind = "starvation"
	Convoy     Kind = "convoy"
	Waiting    Kind = "waiting"
	Nothing    Kind = "nothing"
)

// Verdict is one finding.
type Verdict struct {
	Kind     Kind     `json:"kind"`
	Hang     bool     `json:"hang"`    // the verdict makes the exit code 1
	Summary  string   `json:"summary"` // one sentence
	Evidence []string `json:"evidence,omitempty"`
	Threads  []uint32 `json:"threads,omitempty"`
}

// Refutable reports whether a hang may turn out to be slow progress if more time passes.
func (v *Verdict) Refutable() bool { return v.Hang && v.Kind != Stopped && v.Kind != Deadlock }

// leastConvoy is the least number of threads that queue for one lock in a convoy.
const leastConvoy = 3

// judge is the state of one call of Judge.
type judge struct {
	p    *Process
	by   map[uint32]*Thread
	out  []Verdict
	seen map[uint32]bool // threads that a verdict explains
}

// Judge tries every rule on the snapshots in p, which `seedwalk hang` takes. The first verdict is the most
// certain one. If no rule applies, the only verdict is Waiting or Nothing, with the wait of each thread of
// the program. The verdicts are never empty.
func Judge(p *Process) []Verdict {
	j := &judge{p: p, by: map[uint32]*Thread{}, seen: map[uint32]bool{}}
	for i := range p.Threads {
		j.by[p.Threads[i].TID] = &p.Threads[i]
	}
	for _, rule := range []func(){j.stopped, j.deadlock, j.circles, j.abandoned, j.suspension, j.held,
		j.starvation, j.convoy, j.backlog} {
		rule()
	}
	if len(j.out) == 0 {
		j.rest()
	}
	return j.out
}

// add keeps a verdict. After a single snapshot, only verdicts that no time can refute count as a hang.
func (j *judge) add(kind Kind, hang bool, threads []uint32, evidence []string, format string, args ...any) {
	hang = hang && (!j.p.Once || kind == Stopped || kind == Deadlock || kind == Abandoned)
	j.out = append(j.out, Verdict{kind, hang, fmt.Sprintf(format, args...), evidence, threads})
	for _, t := range threads {
		j.seen[t] = true
	}
}

// limited reports whether a thread waits for a task that a timer ends. Task.WhenAll and Task.WaitAll end once
// all of their tasks have ended, so each needs a timer. Of others, one is enough.
func (p *Process) limited(t *Thread) bool {
	one, all, found := false, true, false
	for i := range p.Chains {
		if c := &p.Chains[i]; slices.Contains(c.Blocked, t.TID) {
			all, found = all && c.Limited, true
			one = one || c.Limited && !slices.Contains(c.Names, "Task.WhenAll")
		}
	}
	return all && found || one && !t.has("System.Threading.Tasks.Task.WaitAll")
}

func (j *judge) stopped() {
	if j.p.Stopped != "" {
		j.add(Stopped, true, nil, nil, "The whole process is stopped by %s.", j.p.Stopped)
	}
}

// next returns the thread that holds the lock for which a still thread waits, or nil.
func (j *judge) next(t *Thread) *Thread {
	if t == nil || t.Ran || t.Lock.Kind == "" || t.Lock.Ended {
		return nil
	}
	return j.by[t.Lock.Owner]
}

// edge is a thread for which another one waits. The wait may end by itself if it is limited.
type edge struct {
	to      *Thread
	limited bool
}

// awaited returns the threads that must go on before a still thread can: the owner of the lock for which it
// waits, the thread whose end it waits for, and those that run the tasks for which it waits.
func (j *judge) awaited(t *Thread) (out []edge) {
	if t.Ran {
		return nil
	}
	add := func(tid uint32, limited bool) {
		if to := j.by[tid]; to != nil {
			out = append(out, edge{to, limited || t.Limited})
		}
	}
	if owner := j.next(t); owner != nil {
		add(owner.TID, false)
	}
	add(t.Joins, false)
	for i := range t.Awaits {
		add(t.Awaits[i].Runner, t.Awaits[i].Limited)
	}
	return out
}

// ring returns the threads of a circle that begins at first. limited reports whether a time limit ends the
// circle. A circle without a time limit is preferred. Without any circle, ring returns nil.
func (j *judge) ring(first *Thread) (ring []uint32, limited bool) {
	for _, limited = range []bool{false, true} {
		seen := map[uint32]bool{}
		if ring = j.path(first, first, limited, seen); ring != nil {
			break
		}
	}
	return ring, limited
}

// path returns the threads that lead from one thread to another, nil if they are not connected. It follows
// waits with a time limit only if limited is set.
func (j *judge) path(from, to *Thread, limited bool, seen map[uint32]bool) []uint32 {
	seen[from.TID] = true
	for _, e := range j.awaited(from) {
		if e.limited && !limited {
			continue
		}
		if e.to == to {
			return []uint32{from.TID}
		}
		if !seen[e.to.TID] {
			if rest := j.path(e.to, to, limited, seen); rest != nil {
				return append([]uint32{from.TID}, rest...)
			}
		}
	}
	return nil
}

// mover follows the waits of t to a thread that runs, sleeps, or waits with a time limit. It returns nil if
// every thread on the way is blocked.
func (j *judge) mover(t *Thread, seen map[uint32]bool) *Thread {
	seen[t.TID] = true
	for _, e := range j.awaited(t) {
		if seen[e.to.TID] {
			continue
		}
		if w, _ := e.to.Wait(); e.to.Ran || e.to.Limited || w == Sleep || j.p.limited(e.to) {
			return e.to
		}
		if m := j.mover(e.to, seen); m != nil {
			return m
		}
	}
	return nil
}

// deadlock finds threads that each wait for the next one. If one of them waits with a time limit, the circle
// ends by itself and is no hang. A thread is in one circle at most.
func (j *judge) deadlock() {
	reported := map[uint32]bool{}
	for i := range j.p.Threads {
		first := &j.p.Threads[i]
		ring, limited := j.ring(first)
		if ring == nil || slices.ContainsFunc(ring, func(tid uint32) bool { return reported[tid] }) {
			continue
		}
		var lines []string
		for _, tid := range ring {
			reported[tid] = true
			lines = append(lines, j.who(tid)+" "+j.does(j.by[tid]))
		}
		summary := fmt.Sprintf("%d threads wait for each other in a circle. They never continue.", len(ring))
		switch {
		case limited:
			summary = fmt.Sprintf("%d threads wait for each other in a circle until a wait with a time limit ends.", len(ring))
		case len(ring) == 1 && first.Lock.Owner == first.TID:
			summary = j.who(ring[0]) + " waits for a lock that it holds itself. It never continues."
		case len(ring) == 1:
			summary = j.who(ring[0]) + " waits for a task that it runs itself. It never continues."
		}
		j.add(Deadlock, !limited, ring, lines, "%s", summary)
	}
}

// circles finds async methods that await each other in a circle, and the threads that block on them.
func (j *judge) circles() {
	circle := func(c *Chain) bool { return c.Circle }
	lines, circles := j.chainLines(circle)
	if circles == 0 {
		return
	}
	var blocked []uint32
	for i := range j.p.Threads {
		if t := &j.p.Threads[i]; slices.ContainsFunc(j.p.chains(t.TID), circle) {
			blocked = append(blocked, t.TID)
		}
	}
	j.add(Deadlock, true, blocked, append(j.list(blocked, j.does), lines...),
		"Async methods wait for each other in a circle. They never continue.")
}

// abandoned finds locks whose owner has ended. No other thread can release a lock of managed code.
func (j *judge) abandoned() {
	for _, all := range j.queues(func(t *Thread) bool { return t.Lock.Ended && !t.Ran }) {
		limited := !slices.ContainsFunc(all, func(t *Thread) bool { return !t.Limited })
		end := "They never continue."
		if limited {
			end = "Their waits have time limits."
		}
		ids := idsOf(all)
		j.add(Abandoned, !limited, ids, j.list(ids, j.does),
			"The owner of the %s at %s ended without releasing it. Threads that wait for it: %d. %s",
			all[0].Lock.Kind, all[0].Lock.At, len(all), end)
	}
}

// suspension finds a collection that waits for a thread that does not stop for it. The runtime sends that
// thread signals, so it may use CPU time. Between them, the thread that collects may be at different places.
// If it is, only threads in system calls count: another thread may be in a short loop.
func (j *judge) suspension() {
	var collectors, holding []uint32
	still := false
	for i := range j.p.Threads {
		t := &j.p.Threads[i]
		switch w, _ := t.Wait(); {
		case w == Collection && (t.Suspends || !t.Moved):
			collectors, still = append(collectors, t.TID), still || !t.Moved
		case t.Cooperative && !t.Moved:
			holding = append(holding, t.TID)
		}
	}
	if !still {
		holding = slices.DeleteFunc(holding, func(tid uint32) bool { return j.by[tid].Blocks == NoWait })
	}
	if len(collectors) > 0 && len(holding) > 0 {
		lines := j.list(holding, func(t *Thread) string {
			return j.does(t) + "; the runtime counts this as running managed code"
		})
		j.add(Suspension, true, append(holding, collectors...), append(lines, j.list(collectors, j.does)...),
			"A garbage collection waits for %s, which does not stop for it. Every thread that allocates waits too.", j.who(holding[0]))
	}
}

// held finds locks whose owner itself waits, but not for a lock of another thread. An owner that sleeps, or
// whose wait has a time limit, makes the others slow, which is no hang. So does an owner that waits for the
// task or the end of a thread which runs, sleeps, or waits with a time limit.
func (j *judge) held() {
	waiters := map[uint32][]uint32{}
	for i := range j.p.Threads {
		t := &j.p.Threads[i]
		if owner := j.next(t); owner != nil && !j.seen[t.TID] {
			waiters[owner.TID] = append(waiters[owner.TID], t.TID)
		}
	}
	for i := range j.p.Threads {
		owner := &j.p.Threads[i]
		queue := waiters[owner.TID]
		if len(queue) == 0 || owner.Ran || j.next(owner) != nil {
			continue
		}
		w, _ := owner.Wait()
		if w == NoWait || w == Idle {
			continue
		}
		all := j.behind(waiters, owner.TID)
		verb := "wait"
		if len(all) == 1 {
			verb = "waits"
		}
		end, limited := "", owner.Limited || j.p.limited(owner)
		mover := j.mover(owner, map[uint32]bool{})
		switch {
		case w == Sleep:
			end = " Unless it sleeps forever, this is slow, not hung."
		case limited:
			end = " That wait has a time limit. Unless it is repeated forever, this is slow, not hung."
		case mover != nil:
			end = fmt.Sprintf(" That ends once %s continues, which %s. Unless that lasts forever, this is slow, not hung.",
				j.who(mover.TID), j.doesNow(mover))
		}
		involved := append([]uint32{owner.TID}, all...)
		j.add(HeldLock, w != Sleep && !limited && mover == nil, involved, j.list(involved, j.does),
			"%s %s behind a lock that %s holds while it waits for %s itself.%s", count(len(all), "thread"),
			verb, j.who(owner.TID), w, end)
	}
}

// behind lists the threads that wait for one, directly or not.
func (j *judge) behind(waiters map[uint32][]uint32, tid uint32) (all []uint32) {
	todo := slices.Clone(waiters[tid])
	for len(todo) > 0 && len(all) <= len(j.p.Threads) {
		all = append(all, todo[0])
		todo = append(todo[1:], waiters[todo[0]]...)
	}
	return all
}

// convoy finds many threads in a queue for one lock that no earlier verdict explains.
func (j *judge) convoy() {
	for _, all := range j.queues(func(t *Thread) bool { return !j.seen[t.TID] }) {
		if len(all) < leastConvoy {
			continue
		}
		ids := idsOf(all)
		j.add(Convoy, false, ids, j.list(ids, j.does), "%d threads queue for the %s at %s. %s", len(all),
			all[0].Lock.Kind, all[0].Lock.At, j.progress(all))
	}
}

// queues returns the chosen threads that wait for a lock, those of each lock together.
func (j *judge) queues(chosen func(*Thread) bool) (out [][]*Thread) {
	of := map[string]int{}
	for i := range j.p.Threads {
		t := &j.p.Threads[i]
		if t.Lock.Kind == "" || t.Lock.At == "" || !chosen(t) {
			continue
		}
		n, ok := of[t.Lock.At]
		if !ok {
			n = len(out)
			of[t.Lock.At], out = n, append(out, nil)
		}
		out[n] = append(out[n], t)
	}
	return out
}

func idsOf(threads []*Thread) (ids []uint32) {
	for _, t := range threads {
		ids = append(ids, t.TID)
	}
	return ids
}

// progress returns a sentence about the owner of the lock for which threads queue.
func (j *judge) progress(queue []*Thread) string {
	first := queue[0].Lock.Owner
	owner := j.by[first]
	switch {
	case slices.ContainsFunc(queue, func(t *Thread) bool { return t.Lock.Owner != first }):
		return "Its owner changes, so this is slow, not hung."
	case owner == nil:
		return "Its owner is not known."
	case j.p.Once:
		return "A core does not show whether its owner runs."
	case owner.Ran:
		return "Its owner runs, so this is slow, not hung."
	}
	return fmt.Sprintf("%s holds it and did not run between the two snapshots.", capital(j.who(first)))
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

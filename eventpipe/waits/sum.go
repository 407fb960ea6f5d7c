package waits

import (
	"cmp"
	"slices"
	"time"
)

// Filter chooses waits.
type Filter struct {
	Min          time.Duration
	Threads      []uint64      // none = all
	Since, Until time.Duration // from the trace's start; Until 0 = its end
}

// Match reports whether the filter accepts a wait.
func (a *Analysis) Match(w *Wait) bool {
	f := &a.Filter
	if w.Nanos < int64(f.Min) || len(f.Threads) > 0 && !slices.Contains(f.Threads, w.Thread) {
		return false
	}
	return a.At(w.Stop) >= f.Since && (f.Until == 0 || a.At(w.Start) <= f.Until)
}

// At converts a timestamp to the time since the start of the trace.
func (a *Analysis) At(ticks uint64) time.Duration {
	if ticks < a.First {
		return -time.Duration(a.Trace.Nanos(a.First - ticks))
	}
	return time.Duration(a.Trace.Nanos(ticks - a.First))
}

// Site is a place where threads wait: a stack and a kind of wait.
type Site struct {
	Kind   Kind
	Stack  StackID
	Count  int64 // top-level waits, including lower bounds
	Nanos  int64
	Max    int64
	Bounds int64  // lower bounds among Count
	When   uint64 // timestamp of one of them, for names
	Lost   int64  // unreliable waits, also inner ones; not in Count

	Native int32 // native frames with the most time at this site, see Leaves; 0 = none
	native int64 // time of the waits with Native
}

// Thread sums up a thread's top-level waits.
type Thread struct {
	Process, ID uint64
	Count       int64
	Nanos       int64
	Max         int64
}

// Group is a set of equal waits: of one thread, at one site, for one lock. If there are too many
// groups, a group has the waits of several threads and locks, and Thread, LockID, and Owner are 0.
type Group struct {
	GroupKey
	Count int64 // including unreliable waits
	Nanos int64
	Max   int64
	When  uint64 // timestamp of one of them, for names
}

// GroupKey is what the waits of a Group have in common.
type GroupKey struct {
	Kind            Kind
	State           State
	Inner           bool // inside another wait: not in sums
	Stack           StackID
	Native          int32
	Process, Thread uint64
	LockID, Owner   uint64
}

type siteKey struct {
	kind  Kind
	stack StackID
}

// take records an ended wait.
func (a *Analysis) take(w *Wait) {
	if a.OnWait != nil {
		a.OnWait(w)
	}
	if w.State == Unreliable {
		a.Unreliable++
	}
	if !a.Match(w) {
		return
	}
	a.addGroup(w)
	a.keep(w)
}

// keep lists a wait if it can be among the longest.
func (a *Analysis) keep(w *Wait) {
	limit := a.list()
	if a.pruned && longest(w, &a.shortest) > 0 {
		a.Unlisted++
		return
	}
	if most := limit + limit/4 + 1; len(a.Waits) == cap(a.Waits) && cap(a.Waits) > limit/2 &&
		cap(a.Waits) < most {
		a.Waits = slices.Grow(a.Waits, most-len(a.Waits)) // append would double it
	}
	a.Waits = append(a.Waits, *w)
	if len(a.Waits) > limit+limit/4 {
		a.prune(limit)
	}
}

func (a *Analysis) addGroup(w *Wait) {
	k := GroupKey{w.Kind, w.State, w.Depth > 0, w.Stack, w.Native, w.Process, w.Thread, w.LockID, w.Owner}
	recent := &a.recent[(uint64(w.Stack)*31+w.Thread)%uint64(len(a.recent))]
	g := *recent
	if g == nil || g.GroupKey != k {
		g = a.groups[k]
	}
	if g == nil {
		if len(a.groups) >= maxGroups {
			k.LockID, k.Owner, k.Thread = 0, 0, 0 // drop the fields with the most values
			g = a.groups[k]
		}
		if g == nil {
			g = &Group{GroupKey: k, When: w.Start}
			a.groups[k] = g
		}
	}
	*recent = g
	g.Count++
	g.Nanos += w.Nanos
	g.Max = max(g.Max, w.Nanos)
}

// site adds a group to its site, and thread to its thread.
func (g *Group) site(sites map[siteKey]*Site) {
	k := siteKey{g.Kind, g.Stack}
	s := sites[k]
	if s == nil {
		s = &Site{Kind: g.Kind, Stack: g.Stack, When: g.When}
		sites[k] = s
	}
	switch {
	case g.State == Unreliable:
		s.Lost += g.Count
		return
	case g.Inner:
		return
	case g.State != Complete:
		s.Bounds += g.Count
	}
	if g.Native != 0 && (g.Nanos > s.native || g.Nanos == s.native && g.Native < s.Native) {
		s.Native, s.native = g.Native, g.Nanos
	}
	s.Count, s.Nanos, s.Max = s.Count+g.Count, s.Nanos+g.Nanos, max(s.Max, g.Max)
}

func (g *Group) thread(threads map[threadKey]*Thread) {
	if g.Inner || g.State == Unreliable {
		return
	}
	k := threadKey{g.Process, g.Thread}
	t := threads[k]
	if t == nil {
		t = &Thread{Process: g.Process, ID: g.Thread}
		threads[k] = t
	}
	t.Count, t.Nanos, t.Max = t.Count+g.Count, t.Nanos+g.Nanos, max(t.Max, g.Max)
}

func (a *Analysis) list() int {
	if a.List > 0 {
		return a.List
	}
	return DefaultList
}

// prune keeps the longest waits.
func (a *Analysis) prune(keep int) {
	if len(a.Waits) <= keep {
		return
	}
	slices.SortFunc(a.Waits, func(x, y Wait) int { return longest(&x, &y) })
	a.Unlisted += int64(len(a.Waits) - keep)
	a.Waits = a.Waits[:keep]
	a.shortest, a.pruned = a.Waits[keep-1], true
}

// longest sorts the longest waits first.
func longest(x, y *Wait) int {
	if c := cmp.Compare(y.Nanos, x.Nanos); c != 0 {
		return c
	}
	return order(x, y)
}

// order sorts by time, then by thread, outer waits first.
func order(x, y *Wait) int {
	if c := cmp.Compare(x.Start, y.Start); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.Thread, y.Thread),
		cmp.Compare(x.Depth, y.Depth), cmp.Compare(x.Stop, y.Stop))
}

func (a *Analysis) sumUp() {
	sites, threads := map[siteKey]*Site{}, map[threadKey]*Thread{}
	for _, g := range a.groups {
		g.site(sites)
		g.thread(threads)
		a.Groups = append(a.Groups, *g)
	}
	slices.SortFunc(a.Groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.Stack, y.Stack),
			cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.State, y.State), cmp.Compare(x.LockID, y.LockID), cmp.Compare(x.Owner, y.Owner))
	})
	for _, s := range sites {
		a.Sites = append(a.Sites, *s)
	}
	slices.SortFunc(a.Sites, func(x, y Site) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.Stack, y.Stack))
	})
	for _, t := range threads {
		a.Threads = append(a.Threads, *t)
	}
	slices.SortFunc(a.Threads, func(x, y Thread) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.ID, y.ID))
	})
}

// Total returns the time and number of the top-level waits that the filter accepts.
func (a *Analysis) Total() (count, nanos int64) {
	for i := range a.Threads {
		count += a.Threads[i].Count
		nanos += a.Threads[i].Nanos
	}
	return
}

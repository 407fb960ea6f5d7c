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

// Match is whether a wait is asked for.
func (a *Analysis) match(w *Wait) bool {
	f := &a.Filter
	if w.Nanos < int64(f.Min) || len(f.Threads) > 0 && !slices.Contains(f.Threads, w.Thread) {
		return false
	}
	return a.At(w.Stop) >= f.Since && (f.Until == 0 || a.At(w.Start) <= f.Until)
}

// At is a timestamp as time since the trace's start.
func (a *Analysis) At(ticks uint64) time.Duration {
	if ticks < a.First {
		return -time.Duration(a.Trace.Nanos(a.First - ticks))
	}
	return time.Duration(a.Trace.Nanos(ticks - a.First))
}

// Site is a place where threads wait: a stack and what for.
type Site struct {
	Kind   Kind
	Stack  StackID
	Count  int64 // top-level waits, the lower bounds among them
	Nanos  int64
	Max    int64
	Bounds int64  // lower bounds among Count
	When   uint64 // timestamp of one of them, for names
	Lost   int64  // unreliable waits, not in Count
}

// Thread sums up a thread's top-level waits.
type Thread struct {
	Process, ID uint64
	Count       int64
	Nanos       int64
	Max         int64
}

type siteKey struct {
	kind  Kind
	stack StackID
}

// take keeps a wait that has ended.
func (a *Analysis) take(w *Wait) {
	if a.OnWait != nil {
		a.OnWait(w)
	}
	if w.State == Unreliable {
		a.Unreliable++
	}
	if !a.match(w) {
		return
	}
	a.addSite(w)
	if w.counts() {
		a.addThread(w)
	}
	a.Waits = append(a.Waits, *w)
	if len(a.Waits) >= 2*a.list() {
		a.prune(a.list())
	}
}

func (a *Analysis) addSite(w *Wait) {
	k := siteKey{w.Kind, w.Stack}
	s := a.sites[k]
	if s == nil {
		if len(a.sites) >= maxSites {
			return
		}
		s = &Site{Kind: w.Kind, Stack: w.Stack, When: w.Start}
		a.sites[k] = s
	}
	switch {
	case w.State == Unreliable:
		s.Lost++
	case w.Depth == 0:
		s.Count++
		s.Nanos += w.Nanos
		s.Max = max(s.Max, w.Nanos)
		if w.State != Complete {
			s.Bounds++
		}
	}
}

func (a *Analysis) addThread(w *Wait) {
	k := threadKey{w.Process, w.Thread}
	t := a.sums[k]
	if t == nil {
		if len(a.sums) >= maxThreads {
			return
		}
		t = &Thread{Process: w.Process, ID: w.Thread}
		a.sums[k] = t
	}
	t.Count++
	t.Nanos += w.Nanos
	t.Max = max(t.Max, w.Nanos)
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
	slices.SortFunc(a.Waits, func(x, y Wait) int { return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), order(&x, &y)) })
	a.Unlisted += int64(len(a.Waits) - keep)
	a.Waits = a.Waits[:keep]
}

// order is by time, then by thread, outer waits first.
func order(x, y *Wait) int {
	return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Process, y.Process), cmp.Compare(x.Thread, y.Thread), cmp.Compare(x.Depth, y.Depth), cmp.Compare(x.Stop, y.Stop))
}

func (a *Analysis) sumUp() {
	for _, s := range a.sites {
		a.Sites = append(a.Sites, *s)
	}
	slices.SortFunc(a.Sites, func(x, y Site) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Stack, y.Stack))
	})
	for _, t := range a.sums {
		a.Threads = append(a.Threads, *t)
	}
	slices.SortFunc(a.Threads, func(x, y Thread) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.ID, y.ID))
	})
}

// Total is the time and number of top-level waits that were asked for.
func (a *Analysis) Total() (count, nanos int64) {
	for i := range a.Threads {
		count += a.Threads[i].Count
		nanos += a.Threads[i].Nanos
	}
	return
}

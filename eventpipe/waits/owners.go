package waits

import (
	"cmp"
	"slices"
)

// Owners finds the waits of lock owners while other threads waited for them.
type Owners struct {
	a        *Analysis
	byThread map[threadKey][]int32  // indices into Waits, by start; top-level only
	byLock   map[threadKey][]int32  // the same of locks, by process and lock
	taken    map[threadKey][]uint64 // ends of the waits for a lock, by process and lock; sorted
}

// NewOwners indexes a finished Analysis.
func NewOwners(a *Analysis) *Owners {
	o := &Owners{a, map[threadKey][]int32{}, map[threadKey][]int32{}, map[threadKey][]uint64{}}
	for i := range a.Waits {
		w := &a.Waits[i]
		if w.Depth != 0 || w.State == Unreliable {
			continue
		}
		k, lock := threadKey{w.Process, w.Thread}, threadKey{w.Process, w.LockID}
		o.byThread[k] = append(o.byThread[k], int32(i))
		if w.Kind == Lock && w.LockID != 0 {
			o.byLock[lock] = append(o.byLock[lock], int32(i))
			if w.State != StillOpen {
				o.taken[lock] = append(o.taken[lock], w.Stop)
			}
		}
	}
	for _, stops := range o.taken {
		slices.Sort(stops)
	}
	return o
}

// maxChain bounds chains of owners.
const maxChain = 16

// Chain follows the owner of a lock, the owner of the lock that this thread waits for, and
// so on. It returns the waits of these owners, as indices into Waits. At one moment all these
// waits are open, and each owner still holds its lock. circle reports whether the chain
// returns to one of its threads: a deadlock, if the waits are still open.
func (o *Owners) Chain(w *Wait) (chain []int32, circle bool) {
	seen := map[uint64]*Wait{w.Thread: w}
	from, to := w.Start, w.Stop
	for at := w; at.Owner != 0 && len(chain) < maxChain; {
		to = min(to, o.released(at))
		if own := seen[at.Owner]; own != nil {
			return chain, from < to && !sameLock(own, at)
		}
		i, ok := o.during(at, from, to)
		if !ok {
			break
		}
		at = &o.a.Waits[i]
		seen[at.Thread] = at
		chain, from, to = append(chain, i), max(from, at.Start), min(to, at.Stop)
	}
	return chain, false
}

func sameLock(x, y *Wait) bool { return x.Kind == Lock && y.Kind == Lock && x.LockID == y.LockID }

// released returns the time, in ticks, until which the owner of w's lock certainly held it. After
// that, a thread's wait for the lock has ended, another owner is known, or the owner waits for it.
func (o *Owners) released(w *Wait) uint64 {
	lock, end := threadKey{w.Process, w.LockID}, w.Stop
	stops := o.taken[lock]
	if i, _ := slices.BinarySearch(stops, w.Start+1); i < len(stops) {
		end = min(end, stops[i])
	}
	list := o.byLock[lock]
	i, _ := slices.BinarySearchFunc(list, w.Start+1,
		func(i int32, t uint64) int { return cmp.Compare(o.a.Waits[i].Start, t) })
	for ; i < len(list); i++ {
		if x := &o.a.Waits[list[i]]; x.Start >= end {
			break
		} else if x.Thread == w.Owner || x.Owner != 0 && x.Owner != w.Owner {
			return x.Start
		}
	}
	return end
}

// during finds the wait of w's owner, for anything but w's lock, with the longest overlap
// with the ticks from..to.
func (o *Owners) during(w *Wait, from, to uint64) (best int32, ok bool) {
	list := o.byThread[threadKey{w.Process, w.Owner}]
	i, _ := slices.BinarySearchFunc(list, from,
		func(i int32, t uint64) int { return cmp.Compare(o.a.Waits[i].Stop, t) })
	var most uint64
	for ; i < len(list) && o.a.Waits[list[i]].Start < to; i++ {
		x := &o.a.Waits[list[i]]
		if begin, end := max(x.Start, from),
			min(x.Stop, to); end > begin && end-begin > most && !sameLock(x, w) {
			best, most, ok = list[i], end-begin, true
		}
	}
	return
}

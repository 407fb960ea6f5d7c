package waits

import (
	"cmp"
	"slices"
)

// Owners finds the waits of lock owners while other threads waited for them.
type Owners struct {
	a        *Analysis
	byThread map[threadKey][]int32 // indices into Waits, by start; top-level only
}

// NewOwners indexes a finished Analysis.
func NewOwners(a *Analysis) *Owners {
	o := &Owners{a, map[threadKey][]int32{}}
	for i := range a.Waits {
		if w := &a.Waits[i]; w.Depth == 0 && w.State != Unreliable {
			k := threadKey{w.Process, w.Thread}
			o.byThread[k] = append(o.byThread[k], int32(i))
		}
	}
	return o
}

// maxChain bounds chains of owners.
const maxChain = 16

// Chain follows the owner of a lock, the owner of the lock that this thread waits for, and
// so on. It returns the waits of these owners that were open at the same time, as indices
// into Waits. circle reports whether the chain returns to its start: a deadlock, if the
// waits are still open.
func (o *Owners) Chain(w *Wait) (chain []int32, circle bool) {
	seen := map[uint64]bool{w.Thread: true}
	for at := w; at.Owner != 0 && len(chain) < maxChain; {
		if seen[at.Owner] {
			return chain, len(chain) > 0
		}
		i, ok := o.during(threadKey{at.Process, at.Owner}, w)
		if !ok {
			break
		}
		seen[at.Owner] = true
		chain = append(chain, i)
		at = &o.a.Waits[i]
	}
	return chain, false
}

// during finds the wait of a thread with the longest overlap with w.
func (o *Owners) during(k threadKey, w *Wait) (best int32, ok bool) {
	list := o.byThread[k]
	i, _ := slices.BinarySearchFunc(list, w.Start, func(i int32, t uint64) int { return cmp.Compare(o.a.Waits[i].Stop, t) })
	var most uint64
	for ; i < len(list) && o.a.Waits[list[i]].Start < w.Stop; i++ {
		other := &o.a.Waits[list[i]]
		if from, to := max(other.Start, w.Start), min(other.Stop, w.Stop); to > from && to-from > most {
			best, most, ok = list[i], to-from, true
		}
	}
	return
}

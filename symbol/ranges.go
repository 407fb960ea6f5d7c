package symbol

import (
	"cmp"
	"slices"
)

// Always is the end of a range that is never freed.
const Always = ^uint64(0)

// Range is code with a name for a period of time: the CLR frees methods' code and reuses the memory.
type Range struct {
	Start, End  uint64 // addresses, Start <= a < End
	From, Until uint64 // times, From <= t < Until
	Listed      bool   // from a list made later, without a start time: other ranges take precedence
	Value       int32  // the caller's
}

// Ranges finds the range that covers an address at a time. Ranges may be added at any time; a lookup sorts
// the new ones.
type Ranges struct {
	all    []Range
	outer  []int32 // per entry the nearest earlier one that extends beyond its start, -1 = none
	sorted int
	ends   []rangeEnd // not yet applied
}

// Add adds a range. It refuses an empty or wrapping one.
func (r *Ranges) Add(n Range) bool {
	if n.End <= n.Start || n.Until <= n.From {
		return false
	}
	r.all = append(r.all, n)
	return true
}

// Close ends, at a time, the open range that begins at start.
func (r *Ranges) Close(start, until uint64) { r.ends = append(r.ends, rangeEnd{start, until}) }

type rangeEnd struct{ start, until uint64 }

// Find returns the Value of the range that covers addr at a time. Of several, ranges not from a list win,
// then the latest, then the innermost.
func (r *Ranges) Find(addr, time uint64) (value int32, ok bool) {
	r.sort()
	best := -1
	for j, steps := int32(r.after(addr)-1), 0; j >= 0 && steps < maxOverlap; j, steps = r.outer[j], steps+1 {
		n := &r.all[j]
		if addr < n.End && n.From <= time && time < n.Until && (best < 0 || n.better(&r.all[best])) {
			best = int(j)
		}
	}
	if best < 0 {
		return 0, false
	}
	return r.all[best].Value, true
}

func (n *Range) better(other *Range) bool {
	if n.Listed != other.Listed {
		return other.Listed
	}
	return n.From > other.From
}

// sort sorts by address and links every entry to its enclosing one. Equal ranges from lists are merged.
func (r *Ranges) sort() {
	if r.sorted == len(r.all) && len(r.ends) == 0 {
		return
	}
	slices.SortStableFunc(r.all, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.From, b.From))
	})
	r.all = slices.CompactFunc(r.all, func(a, b Range) bool {
		return a.Listed && b.Listed && a.Start == b.Start && a.End == b.End && a.From == b.From &&
			a.Until == b.Until
	})
	for _, e := range r.ends {
		r.end(e)
	}
	r.ends = r.ends[:0]
	r.outer = r.outer[:0]
	for i := range r.all {
		j := int32(i) - 1
		for j >= 0 && r.all[j].End <= r.all[i].Start {
			j = r.outer[j]
		}
		r.outer = append(r.outer, j)
	}
	r.sorted = len(r.all)
}

// maxOverlap bounds the ranges over one address that are checked: real ones are a handful, at different
// times.
const maxOverlap = 4096

// after returns the index of the first range that starts above addr.
func (r *Ranges) after(addr uint64) int {
	i, _ := slices.BinarySearchFunc(r.all, addr, func(n Range, a uint64) int {
		if n.Start <= a {
			return -1
		}
		return 1
	})
	return i
}

func (r *Ranges) end(e rangeEnd) {
	for i, steps := r.after(e.start)-1, 0; i >= 0 && r.all[i].Start == e.start &&
		steps < maxOverlap; i, steps = i-1, steps+1 {
		if n := &r.all[i]; n.Until == Always && n.From <= e.until {
			n.Until = e.until
			return
		}
	}
}

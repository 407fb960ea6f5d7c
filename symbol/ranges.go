package symbol

import (
	"cmp"
	"slices"
)

// Always is the end of a range that is not given up.
const Always = ^uint64(0)

// Range is code that has a name for a time: the CLR frees methods' code and
// puts other code in its place.
type Range struct {
	Start, End  uint64 // addresses, Start <= a < End
	From, Until uint64 // times, From <= t < Until
	Listed      bool   // known from a list made later, which does not say since when: a range that does goes first
	Value       int32  // the user's
}

// Ranges finds the range that covers an address at a time. It may be added to
// at any time; looking up sorts what is new.
type Ranges struct {
	all    []Range
	outer  []int32 // per entry the nearest one before that reaches beyond its start, -1 = none
	sorted int
	ends   []rangeEnd // not yet applied
}

// Add adds a range. One that is empty or wraps is refused.
func (r *Ranges) Add(n Range) bool {
	if n.End <= n.Start || n.Until <= n.From {
		return false
	}
	r.all = append(r.all, n)
	return true
}

// Close ends the range that begins at start and is not given up, at a time.
func (r *Ranges) Close(start, until uint64) { r.ends = append(r.ends, rangeEnd{start, until}) }

type rangeEnd struct{ start, until uint64 }

// Find returns the Value of the range that covers addr at a time. Of several
// the one wins that is no list's, then the latest, then the innermost.
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

// sort orders by place and links every entry to the one it lies in. Equal
// ranges of lists collapse.
func (r *Ranges) sort() {
	if r.sorted == len(r.all) && len(r.ends) == 0 {
		return
	}
	slices.SortStableFunc(r.all, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.From, b.From))
	})
	r.all = slices.CompactFunc(r.all, func(a, b Range) bool {
		return a.Listed && b.Listed && a.Start == b.Start && a.End == b.End && a.From == b.From && a.Until == b.Until
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

// maxOverlap bounds how many ranges over one address are looked at: real ones
// are a handful, one after the other in time.
const maxOverlap = 4096

// after is the index of the first range that starts above addr.
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
	for i, steps := r.after(e.start)-1, 0; i >= 0 && r.all[i].Start == e.start && steps < maxOverlap; i, steps = i-1, steps+1 {
		if n := &r.all[i]; n.Until == Always && n.From <= e.until {
			n.Until = e.until
			return
		}
	}
}

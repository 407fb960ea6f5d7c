package cfi

// segment is a range in which one of several overlapping FDEs applies.
type segment struct {
	lo, hi uint64
	fde    uint32
}

// flatten makes disjoint segments of overlapping FDEs: in a shared range the FDE that starts last applies, as
// in .eh_frame_hdr's own search; of those with the same start, the one in .eh_frame, then the first. fdes is
// sorted. A stack of the open FDEs gives O(n) segments.
func flatten(t *Table) []segment {
	var out []segment
	var open []uint32
	emit := func(lo, hi uint64, f uint32) {
		if lo < hi {
			out = append(out, segment{lo, hi, f})
		}
	}
	at := uint64(0)
	// closeUntil emits the segments of the open FDEs in [at, limit).
	closeUntil := func(limit uint64) {
		for len(open) > 0 && at < limit {
			top := open[len(open)-1]
			hi := t.fdes[top].hi
			if hi <= at {
				open = open[:len(open)-1]
				continue
			}
			emit(at, min(hi, limit), top)
			at = min(hi, limit)
		}
		at = limit
	}
	for i := 0; i < len(t.fdes); {
		closeUntil(t.fdes[i].lo)
		next := i + 1
		for next < len(t.fdes) && t.fdes[next].lo == t.fdes[i].lo {
			next++
		}
		// Of those with the same start, the first takes precedence: the others apply only past its end.
		for k := next - 1; k >= i; k-- {
			if k > 0 && t.fdes[k].lo < t.fdes[k-1].hi {
				t.stats.Overlapping++
			}
			open = append(open, uint32(k))
		}
		i = next
	}
	closeUntil(^uint64(0))
	return out
}

// buckets speed up a search: they divide the covered addresses into ranges of 1<<shift bytes, about as many
// as there are FDEs.
type buckets struct {
	base  uint64
	shift uint8
	first []uint32 // first[b]: number of starts before bucket b
}

// newBuckets makes buckets for n sorted starts.
func newBuckets(n int, start func(int) uint64) (b buckets) {
	if n == 0 {
		return b
	}
	b.base = start(0)
	span := start(n-1) - b.base
	for span>>b.shift >= 2*uint64(n) {
		b.shift++
	}
	b.first = make([]uint32, span>>b.shift+2)
	for i, k := 0, 0; k < len(b.first); k++ {
		for i < n && (start(i)-b.base)>>b.shift < uint64(k) {
			i++
		}
		b.first[k] = uint32(i)
	}
	return b
}

// narrow returns [lo, hi) such that the last start not above pc has an index
// in [lo-1, hi-1].
func (b *buckets) narrow(pc uint64) (lo, hi int) {
	if pc < b.base || len(b.first) == 0 {
		return 0, 0
	}
	k := min((pc-b.base)>>b.shift, uint64(len(b.first)-2))
	return int(b.first[k]), int(b.first[k+1])
}

// search returns the index of the FDE that applies at pc, or -1.
func (t *Table) search(pc uint64) int {
	if t.segs != nil {
		return t.searchSegs(pc)
	}
	lo, hi := t.near.narrow(pc)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.fdes[mid].lo <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || pc >= t.fdes[lo-1].hi {
		return -1
	}
	return lo - 1
}

func (t *Table) searchSegs(pc uint64) int {
	lo, hi := t.near.narrow(pc)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.segs[mid].lo <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || pc >= t.segs[lo-1].hi {
		return -1
	}
	return int(t.segs[lo-1].fde)
}

// Find returns the FDE that covers pc, an address in the image's own virtual
// address space, or NoInfo. It allocates nothing and takes O(log n) once all
// records have been read; before, a miss in .eh_frame_hdr takes O(n).
func (t *Table) Find(pc uint64) (f FDE, why Reason) {
	if !t.read.Load() {
		return t.findFirst(pc)
	}
	i := t.search(pc)
	if i < 0 {
		return f, NoInfo
	}
	t.public(i, &f)
	return f, None
}

// public fills f field by field: a complete value that is built elsewhere and copied would wait for its own
// stores.
func (t *Table) public(i int, f *FDE) {
	in := &t.fdes[i]
	in.public(&t.cies[in.cie], f)
}

func (in *fde) public(c *cie, f *FDE) {
	f.Lo, f.Hi, f.Offset = in.lo, in.hi, uint64(in.off)
	f.RA, f.Signal, f.BKey, f.DebugFrame = c.ra, c.signal, c.bkey, c.debug
}

// Each reads all records and calls fn with every FDE in order of Lo until fn returns false.
func (t *Table) Each(fn func(FDE) bool) {
	t.Complete()
	for i := range t.fdes {
		var f FDE
		if t.public(i, &f); !fn(f) {
			return
		}
	}
}

package cfi

// segment is a range in which one FDE rules, where FDEs overlap.
type segment struct {
	lo, hi uint64
	fde    uint32
}

// flatten makes disjoint segments of overlapping FDEs: in a shared range the
// FDE that starts last rules, as .eh_frame_hdr's own search would have it; of
// those that start together the one of .eh_frame, then the first.
// fdes is sorted. A stack of the FDEs still open gives O(n) segments.
func flatten(t *Table) []segment {
	var out []segment
	var open []uint32
	emit := func(lo, hi uint64, f uint32) {
		if lo < hi {
			out = append(out, segment{lo, hi, f})
		}
	}
	at := uint64(0)
	// closeUntil emits what the open FDEs rule in [at, limit).
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
	for i := range t.fdes {
		f := &t.fdes[i]
		if i > 0 && f.lo < t.fdes[i-1].hi {
			t.stats.Overlapping++
		}
		closeUntil(f.lo)
		if n := len(open); n > 0 && t.fdes[open[n-1]].lo == f.lo {
			// Starts together with one that ranks higher: rules only past its end.
			open = append(open, open[n-1])
			open[n-1] = uint32(i)
			continue
		}
		open = append(open, uint32(i))
	}
	closeUntil(^uint64(0))
	return out
}

// search returns the index of the FDE that rules at pc, or -1.
func (t *Table) search(pc uint64) int {
	if t.segs != nil {
		return t.searchSegs(pc)
	}
	lo, hi := 0, len(t.fdes)
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
	lo, hi := 0, len(t.segs)
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
// address space, or NoInfo. It takes O(log n) and allocates nothing.
func (t *Table) Find(pc uint64) (FDE, Reason) {
	i := t.search(pc)
	if i < 0 {
		return FDE{}, NoInfo
	}
	return t.public(i), None
}

func (t *Table) public(i int) FDE {
	f := &t.fdes[i]
	c := &t.cies[f.cie]
	return FDE{Lo: f.lo, Hi: f.hi, RA: c.ra, Signal: c.signal, BKey: c.bkey, DebugFrame: c.debug, Offset: uint64(f.off), index: uint32(i)}
}

// Each calls fn with every FDE in order of Lo until fn answers false.
func (t *Table) Each(fn func(FDE) bool) {
	for i := range t.fdes {
		if !fn(t.public(i)) {
			return
		}
	}
}

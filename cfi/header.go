package cfi

import (
	"sort"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// header reads .eh_frame_hdr and adds the FDEs in its table that the linear reading of .eh_frame did not
// reach: those after a damaged record, or after a terminator that a linker left in the middle.
func (l *loader) header() {
	h, eh := &l.t.first.hdr, &l.t.secs[0]
	if len(h.data) == 0 {
		return
	}
	c := l.crossCheck()
	err := h.table(func(e tableEntry) {
		l.t.stats.HeaderSize++
		off := e.fde - eh.addr
		if len(eh.data) == 0 {
			return
		}
		if f := c.seen(off); f == nil {
			l.fromHeader(h, e, off)
		} else if f.lo != e.lo {
			l.t.stats.HeaderWrong++
		}
	})
	if err != nil {
		l.errs.add(err)
	}
	if l.t.stats.HeaderSize > 0 {
		l.t.stats.HeaderMiss = c.missing()
	}
}

// crossCheck marks the FDEs that linear reading found, in order of their offset.
type crossCheck struct {
	fdes []fde
	tick []bool
	next int // index of the most likely next one
}

func (l *loader) crossCheck() *crossCheck {
	n := len(l.t.fdes)
	return &crossCheck{fdes: l.t.fdes[:n:n], tick: make([]bool, n)}
}

// seen returns the FDE at off if it is known, and marks it.
func (c *crossCheck) seen(off uint64) *fde {
	i := c.next
	if i >= len(c.fdes) || uint64(c.fdes[i].off) != off {
		i = sort.Search(len(c.fdes), func(i int) bool { return uint64(c.fdes[i].off) >= off })
	}
	if i == len(c.fdes) || uint64(c.fdes[i].off) != off {
		return nil
	}
	c.tick[i], c.next = true, i+1
	return &c.fdes[i]
}

func (c *crossCheck) missing() (n int) {
	for _, t := range c.tick {
		if !t {
			n++
		}
	}
	return n
}

// fromHeader adds the FDE of e. An entry that refers into a part that was read linearly must refer into the
// middle of a record, and is ignored.
func (l *loader) fromHeader(h *section, e tableEntry, off uint64) {
	eh := &l.t.secs[0]
	if l.skipped[off] {
		return
	}
	if off >= uint64(len(eh.data)) {
		l.errs.add(h.problem("table entry", e.at, e.fde, BadRecord, "points outside .eh_frame"))
		return
	}
	rec, err := eh.header(off)
	if off < l.readTo || err != nil || rec.ended || rec.isCIE || rec.idAt == 0 {
		l.errs.add(h.problem("table entry", e.at, e.fde, BadRecord, "points at no FDE"))
		return
	}
	l.skipped[off] = true // once is enough
	if l.fdeAt(0, &rec) {
		l.t.stats.HeaderOnly++
	}
}

// tableEntry is one row of the header's search table.
type tableEntry struct {
	at  uint64 // its offset in the header
	lo  uint64
	fde uint64 // address of the FDE
}

// table calls fn for every row of the header's search table. A missing table is not an error.
func (s *section) table(fn func(tableEntry)) *FormatError {
	r, count, enc, err := s.counted()
	if err != nil {
		return err
	}
	b := bases{section: s.addr, data: s.addr, size: 8}
	for i := uint64(0); i < count; i++ {
		e := tableEntry{at: uint64(r.Pos())}
		why := None
		if e.lo, why = pointer(&r, enc, &b); why == None {
			e.fde, why = pointer(&r, enc, &b)
		}
		if why != None {
			return s.problem("table", e.at, count, why, "ends before fde_count entries")
		}
		fn(e)
	}
	return nil
}

// counted reads the part before the search table. It returns the table's number of rows, 0 if there is no
// table, their encoding, and a reader at the first row.
func (s *section) counted() (r buf.Reader, count uint64, enc uint8, err *FormatError) {
	r = buf.At(s.data, 0)
	version, ptrEnc, countEnc, enc := r.U8(), r.U8(), r.U8(), r.U8()
	if !r.OK() {
		return r, 0, enc, s.problem("header", 0, uint64(len(s.data)), Truncated,
			"shorter than its four bytes")
	}
	if version != 1 {
		return r, 0, enc, s.problem("header version", 0, uint64(version), Unsupported, "not 1")
	}
	b := bases{section: s.addr, data: s.addr, size: 8}
	if why := skipPointer(&r, ptrEnc, &b); why != None {
		return r, 0, enc, s.problem("eh_frame_ptr", 4, uint64(ptrEnc), why, "cannot be read")
	}
	if countEnc == DW_EH_PE_omit || enc == DW_EH_PE_omit {
		return r, 0, enc, nil
	}
	at := uint64(r.Pos())
	count, why := pointer(&r, countEnc, &b)
	if why != None {
		return r, 0, enc, s.problem("fde_count", at, uint64(countEnc), why, "cannot be read")
	}
	return r, count, enc, nil
}

package cfi

import "encoding/binary"

// Look-ups in a table whose records have not all been read. A linker's .eh_frame_hdr points to the FDE of an
// address; the FDE is used only if it covers the address. A missing entry in the header proves
// nothing, so the records are then searched one by one: slow, but with the same result as in a complete
// table. Neither way allocates.
//
// Results differ only if the header contradicts its section: an entry that refers into the middle of a
// record, or overlapping FDEs where the header lists only one. Complete removes the difference.

const (
	pairSize = 8
	// maxOpened is the size in bytes of the largest .eh_frame whose records Open leaves unread. It bounds
	// the search for an address without an FDE.
	maxOpened = 64 << 20
)

// searchTable is the sorted table of .eh_frame_hdr in the form that needs no decoding: pairs of a function's
// start and its FDE, both of four bytes and relative to the header.
type searchTable struct {
	hdr   section
	eh    section // .eh_frame, in quiet mode
	pairs []byte  // empty: there is no header, or not one of this kind
}

// Open is Load for an image that may need few look-ups: it reads only the first bytes of .eh_frame_hdr.
// Complete reads the records when there is time, as does any call that needs all of them. Without a header of
// the usual kind, with a .debug_frame, or with a very large .eh_frame, Open reads everything at once.
func Open(s Sections) *Table {
	t := newTable(s)
	if len(s.DebugFrame) > 0 || len(s.EHFrame) == 0 || len(s.EHFrame) > maxOpened || !t.first.open() {
		t.Complete()
		return t
	}
	t.first.eh = t.secs[0]
	t.first.eh.quiet = true
	return t
}

// Read reports whether all records have been read.
func (t *Table) Read() bool { return t.read.Load() }

// Entries returns the number of FDEs, as far as it is known without reading them.
func (t *Table) Entries() int {
	if t.read.Load() {
		return len(t.fdes)
	}
	return len(t.first.pairs) / pairSize
}

// open finds the table in the header. It returns false if the header has no table in the form of
// searchTable. It does not check the order of the pairs: a search always ends between two neighbors, and its
// result is checked.
func (s *searchTable) open() bool {
	r, count, enc, err := s.hdr.counted()
	if err != nil || enc != DW_EH_PE_datarel|DW_EH_PE_sdata4 ||
		count == 0 || count > uint64(r.Len())/pairSize {
		return false
	}
	s.pairs = r.Rest()[:count*pairSize]
	return true
}

// search returns the index of the last pair whose start is not above pc, or -1.
func (s *searchTable) search(pc uint64) int {
	lo, hi := 0, len(s.pairs)/pairSize
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.start(mid) <= pc {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (s *searchTable) start(i int) uint64 { return s.address(pairSize * i) }

func (s *searchTable) address(at int) uint64 {
	return s.hdr.addr + uint64(int64(int32(binary.LittleEndian.Uint32(s.pairs[at:]))))
}

// offset returns the offset of the FDE of pair i.
func (s *searchTable) offset(i int) uint64 { return s.address(pairSize*i+4) - s.eh.addr }

// found is an FDE that was read without an index, and its CIE.
type found struct {
	of  *Table // the table of cie, nil before the first one
	cie cie
	fde fde
	new bool // cie has changed
}

// find reads the FDE that applies at pc.
func (f *found) find(t *Table, pc uint64) bool {
	i := t.first.search(pc)
	if i >= 0 && f.at(t, t.first.offset(i)) && f.covers(pc) && (i == 0 || t.first.start(i-1) != t.first.start(i)) {
		return true
	}
	off, ok := f.among(t, i, pc)
	if !ok {
		off, ok = f.scan(t, pc)
	}
	return ok && f.at(t, off)
}

// among checks the pairs up to i with the same start as pair i. Of their FDEs that cover pc, the first in the
// section applies. It returns the offset of that FDE.
func (f *found) among(t *Table, i int, pc uint64) (first uint64, ok bool) {
	for s, k := &t.first, i; k >= 0 && s.start(k) == s.start(i); k-- {
		if off := s.offset(k); f.at(t, off) && f.covers(pc) && (!ok || off < first) {
			first, ok = off, true
		}
	}
	return first, ok
}

func (f *found) covers(pc uint64) bool { return f.fde.lo <= pc && pc < f.fde.hi }

// at reads the FDE at an offset of the section.
func (f *found) at(t *Table, off uint64) bool {
	if off >= uint64(len(t.first.eh.data)) {
		return false
	}
	rec, err := t.first.eh.header(off)
	return err == nil && !rec.ended && f.record(t, &rec)
}

func (f *found) record(t *Table, rec *record) bool {
	if rec.isCIE || rec.idAt == 0 || !f.useCIE(t, rec.cieOff) {
		return false
	}
	in, err := t.first.eh.fde(rec, &f.cie)
	if err != nil {
		return false
	}
	f.fde = in
	return true
}

// useCIE reads the CIE at an offset: most FDEs have the same CIE as their neighbor.
func (f *found) useCIE(t *Table, off uint64) bool {
	if f.of == t && f.cie.off == off {
		return f.cie.why == None
	}
	eh := &t.first.eh
	if off >= uint64(len(eh.data)) {
		return false
	}
	rec, err := eh.header(off)
	if err != nil || !rec.isCIE || rec.idAt == 0 {
		return false
	}
	f.cie, _ = eh.cie(&rec) // cie.why holds its damage
	f.of, f.new = t, true
	return f.cie.why == None
}

// scan reads all records like loader.read and loader.header, and returns the offset of the FDE that applies
// at pc. If several cover pc, the one that starts last applies; among equal starts, the first.
func (f *found) scan(t *Table, pc uint64) (best uint64, ok bool) {
	s, off, start := &t.first, uint64(0), uint64(0)
	for {
		rec, err := s.eh.header(off)
		if rec.ended || rec.end <= off {
			break
		}
		if err == nil && f.record(t, &rec) && f.covers(pc) && (!ok || f.fde.lo > start) {
			best, start, ok = off, f.fde.lo, true
		}
		off = rec.end
		if rec.end == rec.off+4 {
			off = padded(s.eh.data, off)
		}
	}
	for i, readTo := 0, off; i < len(s.pairs)/pairSize; i++ {
		off := s.offset(i)
		if off >= readTo && f.at(t, off) && f.covers(pc) && (!ok || f.fde.lo > start) {
			best, start, ok = off, f.fde.lo, true
		}
	}
	return best, ok
}

// findFirst is Find before all records are read.
func (t *Table) findFirst(pc uint64) (out FDE, why Reason) {
	var f found
	if !f.find(t, pc) {
		return out, NoInfo
	}
	f.fde.public(&f.cie, &out)
	return out, None
}

// rowFirst is Row before all records are read.
func (m *Machine) rowFirst(t *Table, pc uint64, row *Row) Reason {
	f := &m.first
	ok := f.find(t, pc)
	if f.new && m.last == &f.cie { // the stored rules are another CIE's
		m.last = nil
	}
	f.new = false
	if !ok {
		return NoInfo
	}
	why := m.run(t.arch, &t.first.eh, &f.fde, &f.cie, pc, row)
	if why != None {
		row.reset()
	}
	f.fde.public(&f.cie, &row.FDE)
	return why
}

package cfi

import "github.com/seedwalk/seedwalk/internal/buf"

// header reads .eh_frame_hdr and adds the FDEs its table leads to that the
// plain reading of .eh_frame did not reach: behind a damaged record, or behind
// a terminator that a linker left in the middle.
func (l *loader) header(s Sections) {
	if len(s.EHFrameHdr) == 0 {
		return
	}
	h := section{name: ".eh_frame_hdr", data: s.EHFrameHdr, addr: s.EHFrameHdrAddr}
	entries, err := h.table()
	if err != nil {
		l.errs.add(err)
	}
	l.t.stats.HeaderSize = len(entries)
	if len(s.EHFrame) == 0 {
		return
	}
	known := make(map[uint64]bool, len(l.t.fdes))
	for i := range l.t.fdes {
		known[uint64(l.t.fdes[i].off)] = true
	}
	missed := len(known)
	for _, e := range entries {
		off := e.fde - s.EHFrameAddr
		if known[off] {
			missed--
			continue
		}
		l.fromHeader(&h, e, off)
		known[off] = true
	}
	l.t.stats.HeaderMiss = missed
}

func (l *loader) fromHeader(h *section, e tableEntry, off uint64) {
	eh := &l.t.secs[0]
	if off >= uint64(len(eh.data)) {
		l.errs.add(h.problem("table entry", e.at, e.fde, BadRecord, "points outside .eh_frame"))
		return
	}
	rec, err := eh.header(off)
	if err != nil || rec.ended || rec.isCIE || rec.idAt == 0 {
		l.errs.add(h.problem("table entry", e.at, e.fde, BadRecord, "points at no FDE"))
		return
	}
	before := len(l.t.fdes)
	l.fdeAt(0, &rec)
	l.t.stats.HeaderOnly += len(l.t.fdes) - before
}

// tableEntry is one row of the header's search table.
type tableEntry struct {
	at  uint64 // its offset in the header
	lo  uint64
	fde uint64 // address of the FDE
}

// table reads the header's search table. An absent table is no error.
func (s *section) table() ([]tableEntry, *FormatError) {
	r := buf.At(s.data, 0)
	version, ptrEnc, countEnc, tabEnc := r.U8(), r.U8(), r.U8(), r.U8()
	if !r.OK() {
		return nil, s.problem("header", 0, uint64(len(s.data)), Truncated, "shorter than its four bytes")
	}
	if version != 1 {
		return nil, s.problem("header version", 0, uint64(version), Unsupported, "not 1")
	}
	b := bases{section: s.addr, data: s.addr, size: 8}
	if why := skipPointer(&r, ptrEnc, &b); why != None {
		return nil, s.problem("eh_frame_ptr", 4, uint64(ptrEnc), why, "cannot be read")
	}
	if countEnc == DW_EH_PE_omit || tabEnc == DW_EH_PE_omit {
		return nil, nil
	}
	at := uint64(r.Pos())
	count, why := pointer(&r, countEnc, &b)
	if why != None {
		return nil, s.problem("fde_count", at, uint64(countEnc), why, "cannot be read")
	}
	return s.entries(&r, tabEnc, count, &b)
}

func (s *section) entries(r *buf.Reader, enc uint8, count uint64, b *bases) (out []tableEntry, err *FormatError) {
	// An entry takes two bytes at least: the capacity is bounded by the bytes.
	out = make([]tableEntry, 0, min(count, uint64(r.Len())/2, 1<<22))
	for i := uint64(0); i < count; i++ {
		at := uint64(r.Pos())
		lo, why := pointer(r, enc, b)
		fde := uint64(0)
		if why == None {
			fde, why = pointer(r, enc, b)
		}
		if why != None {
			return out, s.problem("table", at, count, why, "ends before fde_count entries")
		}
		out = append(out, tableEntry{at, lo, fde})
	}
	return out, nil
}

// EHFramePointer returns the address of .eh_frame that .eh_frame_hdr at addr
// names: the way to the records of an image without section headers.
func EHFramePointer(hdr []byte, addr uint64) (uint64, error) {
	s := section{name: ".eh_frame_hdr", data: hdr, addr: addr}
	r := buf.At(hdr, 0)
	version, enc := r.U8(), r.U8()
	r.Skip(2)
	if !r.OK() {
		return 0, s.problem("header", 0, uint64(len(hdr)), Truncated, "shorter than its four bytes")
	}
	if version != 1 {
		return 0, s.problem("header version", 0, uint64(version), Unsupported, "not 1")
	}
	p, why := pointer(&r, enc, &bases{section: addr, data: addr, size: 8})
	if why != None {
		return 0, s.problem("eh_frame_ptr", 4, uint64(enc), why, "cannot be read")
	}
	return p, nil
}

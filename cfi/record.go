package cfi

import "github.com/seedwalk/seedwalk/internal/buf"

// section is one of the sections with call frame information.
type section struct {
	name  string
	data  []byte
	addr  uint64
	debug bool
	text  uint64
	got   uint64 // base of datarel
	quiet bool   // problems have only their reason: nothing is allocated
}

// record is the header of a CIE or FDE.
type record struct {
	off    uint64 // of the length field
	id     uint64 // the id field's value: CIE id or CIE pointer
	idAt   uint64 // offset of the id field
	body   uint64 // offset of the first byte after the id
	end    uint64 // offset one past the record
	wide   bool   // 64-bit DWARF
	isCIE  bool
	cieOff uint64 // for an FDE: offset of its CIE
	ended  bool   // the terminator of .eh_frame, or the end of the bytes
}

// problem returns a FormatError of the section. In quiet mode, it has only its Reason and is shared.
func (s *section) problem(what string, off, value uint64, why Reason, msg string) *FormatError {
	if s.quiet {
		return &quietly[why]
	}
	return &FormatError{s.name, what, off, value, why, msg}
}

// quietly are the problems in quiet mode, for reads while a thread is suspended.
var quietly = func() (of [Unsupported + 1]FormatError) {
	for why := range of {
		of[why].Reason = Reason(why)
	}
	return of
}()

// header reads the record header at off. After an error, the next record cannot be found unless rec.end is
// set. An empty record has idAt 0.
func (s *section) header(off uint64) (rec record, err *FormatError) {
	rec.off = off
	if off+4 > uint64(len(s.data)) {
		rec.ended = true
		if off < uint64(len(s.data)) {
			err = s.problem("record length", off, uint64(len(s.data))-off, Truncated,
				"the section ends inside a length")
		}
		return rec, err
	}
	r := buf.At(s.data, off)
	length := uint64(r.U32())
	if length == 0xffffffff {
		rec.wide, length = true, r.U64()
	} else if length >= 0xfffffff0 {
		return rec, s.problem("record length", off, length, BadRecord, "reserved value")
	}
	start := uint64(r.Pos())
	if !r.OK() || length > uint64(len(s.data))-start {
		return rec, s.problem("record length", off, length, Truncated, "the record ends outside the section")
	}
	rec.end = start + length
	if length == 0 {
		rec.ended = !s.debug
		return rec, nil
	}
	return rec, s.readID(&rec, buf.At(s.data[:rec.end], start))
}

func (s *section) readID(rec *record, r buf.Reader) *FormatError {
	rec.idAt = uint64(r.Pos())
	wideID := rec.wide && s.debug
	if wideID {
		rec.id = r.U64()
	} else {
		rec.id = uint64(r.U32())
	}
	if !r.OK() {
		return s.problem("record id", rec.idAt, rec.end-rec.idAt, Truncated, "the record ends inside its id")
	}
	rec.body = uint64(r.Pos())
	switch {
	case !s.debug:
		rec.isCIE = rec.id == 0
		rec.cieOff = rec.idAt - rec.id // out of range if it wraps; checked by the reader of the CIE
	case wideID:
		rec.isCIE, rec.cieOff = rec.id == 1<<64-1, rec.id
	default:
		rec.isCIE, rec.cieOff = rec.id == 1<<32-1, rec.id
	}
	return nil
}

// maxAugmentation bounds an augmentation string, bytes: real ones have up to six.
const maxAugmentation = 64

// cie is a decoded common information entry.
type cie struct {
	off       uint64
	insAt     uint64 // offsets in the section of the initial instructions
	insEnd    uint64
	codeAlign uint64
	dataAlign int64
	ra        uint16
	fdeEnc    uint8
	addrSize  uint8
	segSize   uint8
	idSize    uint8 // bytes of the id field in FDEs of 64-bit .eh_frame
	version   uint8
	hasAug    bool // FDEs have augmentation data
	signal    bool
	bkey      bool
	debug     bool
	common    bool   // FDEs of it may have common rows
	why       Reason // if not None, its FDEs are unusable
}

// cie reads the CIE of rec. After an error, c.why is the reason. The reader follows no pointer from a CIE, so
// cycles of CIE pointers cannot occur.
func (s *section) cie(rec *record) (c cie, err *FormatError) {
	c = cie{off: rec.off, debug: s.debug, addrSize: 8, idSize: 4}
	defer func() {
		if err != nil {
			c.why = err.Reason
		}
	}()
	r := buf.At(s.data[:rec.end], rec.body)
	if rec.wide && !s.debug && r.Len() > 4 && s.data[rec.body] == 0 {
		// The LSB gives the id four bytes here; some writers use eight. A version is never 0, which
		// distinguishes them.
		r.Skip(4)
		c.idSize = 8
	}
	at := uint64(r.Pos())
	c.version = r.U8()
	if c.version != 1 && c.version != 3 && c.version != 4 {
		return c, s.problem("CIE version", at, uint64(c.version), Unsupported, "not 1, 3 or 4")
	}
	aug := r.CString(maxAugmentation)
	if len(aug) >= 2 && aug[0] == 'e' && aug[1] == 'h' {
		r.Skip(8) // an address for gcc 2's own use
		aug = aug[2:]
	}
	if c.version == 4 {
		c.addrSize, c.segSize = r.U8(), r.U8()
		if r.OK() && c.addrSize != 8 && c.addrSize != 4 {
			return c, s.problem("CIE address size", at, uint64(c.addrSize), Unsupported, "not 4 or 8")
		}
	}
	c.codeAlign, c.dataAlign = r.ULEB(), r.SLEB()
	ra := uint64(0)
	if c.version == 1 {
		ra = uint64(r.U8())
	} else {
		ra = r.ULEB()
	}
	if !r.OK() {
		return c, s.problem("CIE", uint64(r.Pos()), rec.off, Truncated, "the record ends inside its fields")
	}
	if ra > 0xffff {
		return c, s.problem("CIE return address register", at, ra, BadRecord, "no such register")
	}
	c.ra = uint16(ra)
	if err := s.augmentation(&c, &r, aug); err != nil {
		return c, err
	}
	c.insAt, c.insEnd = uint64(r.Pos()), rec.end
	c.common = c.isCommon(r.Rest())
	return c, nil
}

// augmentation applies the letters of aug. With 'z', an unknown letter ends the parsing but not the record,
// whose length is known.
func (s *section) augmentation(c *cie, r *buf.Reader, aug []byte) *FormatError {
	at := uint64(r.Pos())
	data := *r
	if len(aug) > 0 && aug[0] == 'z' {
		c.hasAug = true
		aug = aug[1:]
		n := r.ULEB()
		data = *r
		r.Skip(n)
		if !r.OK() {
			return s.problem("CIE augmentation length", at, n, Truncated, "longer than the record")
		}
		data.Data = r.Data[:r.Pos()]
	}
	b := bases{section: s.addr, text: s.text, data: s.got, size: c.addrSize}
	for _, letter := range aug {
		why, known := None, true
		switch letter {
		case 'R':
			c.fdeEnc = data.U8()
		case 'P':
			enc := data.U8()
			why = skipPointer(&data, enc, &b)
		case 'L':
			data.U8()
		case 'S':
			c.signal = true
		case 'B':
			c.bkey = true
		case 'G': // memory-tagged stack frame: irrelevant for an unwinder of values
		default:
			known = false
		}
		if !data.OK() {
			why = Truncated
		}
		if why != None {
			return s.problem("CIE augmentation", at, uint64(letter), why, "its data cannot be read")
		}
		if !known && !c.hasAug {
			return s.problem("CIE augmentation", at, uint64(letter), Unsupported,
				"unknown letter, and no length to skip it by")
		}
		if !known {
			break
		}
	}
	if !c.hasAug {
		*r = data
	}
	if !validFDEEncoding(c.fdeEnc) {
		return s.problem("CIE FDE encoding", at, uint64(c.fdeEnc), BadEncoding, "an FDE cannot be so encoded")
	}
	return nil
}

// fde is an indexed FDE.
type fde struct {
	lo, hi uint64
	insAt  uint32 // offsets in the section
	insEnd uint32
	off    uint32
	cie    uint32
}

// fde reads the FDE of rec, whose CIE is c.
func (s *section) fde(rec *record, c *cie) (f fde, err *FormatError) {
	r := buf.At(s.data[:rec.end], rec.body)
	if rec.wide && c.idSize == 8 {
		r.Skip(4)
	}
	r.Skip(uint64(c.segSize))
	at := uint64(r.Pos())
	b := bases{section: s.addr, text: s.text, data: s.got, size: c.addrSize}
	lo, why := pointer(&r, c.fdeEnc, &b)
	size := uint64(0)
	if why == None {
		enc := c.fdeEnc & 0x0f
		size, why = plain(&r, enc, c.addrSize)
	}
	if why != None {
		return f, s.problem("FDE range", at, uint64(c.fdeEnc), why, "cannot be read")
	}
	if lo+size < lo || size >= 1<<63 {
		return f, s.problem("FDE range", at, size, BadRecord, "wraps the address space")
	}
	if lo == 0 && !s.debug { // of a function that a linker removed (libgcc, unwind-dw2-fde.c)
		size = 0
	}
	if c.hasAug {
		at = uint64(r.Pos())
		n := r.ULEB()
		r.Skip(n)
		if !r.OK() {
			return f, s.problem("FDE augmentation length", at, n, Truncated, "longer than the record")
		}
	}
	return fde{lo: lo, hi: lo + size, insAt: uint32(r.Pos()),
		insEnd: uint32(rec.end), off: uint32(rec.off)}, nil
}

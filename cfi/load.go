package cfi

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seedwalk/seedwalk/context"
)

// maxSection bounds a section's size: offsets in the index have 32 bits.
const maxSection = 1<<32 - 16

// Table is the call frame information of one image. Any number of goroutines may read it.
// Its answers never change, except that Complete may correct them if .eh_frame_hdr is wrong
// (see first.go).
type Table struct {
	arch context.Arch
	read atomic.Bool // all records are read, and the fields below no longer change
	secs [2]section  // .eh_frame, .debug_frame
	cies []cie
	fdes []fde     // sorted by lo, then by precedence
	segs []segment // only if FDEs overlap: disjoint, sorted
	near buckets   // of segs, or of fdes if there are none

	stats  Stats
	errs   LoadError
	first  searchTable // of a table that was opened: look-ups before all is read
	reader sync.Once
}

// Stats counts what Load read.
type Stats struct {
	CIEs        int
	FDEs        int // indexed, .debug_frame's included
	DebugFDEs   int
	HeaderOnly  int // FDEs that were found only by .eh_frame_hdr
	HeaderMiss  int // FDEs of .eh_frame that .eh_frame_hdr does not list
	HeaderWrong int // entries of .eh_frame_hdr whose start is not their FDE's
	Empty       int // FDEs that cover no byte
	Overlapping int // FDEs that share bytes with the one before
	HeaderSize  int // entries of .eh_frame_hdr's table
	Problems    int
}

// Stats reads all records, unless that has been done, and returns what was counted.
func (t *Table) Stats() Stats {
	t.Complete()
	return t.stats
}

// Arch is the architecture given to Load.
func (t *Table) Arch() context.Arch { return t.arch }

// Len reads all records, unless that has been done, and returns the number of FDEs.
func (t *Table) Len() int {
	t.Complete()
	return len(t.fdes)
}

// Load reads every record of the sections. The table is usable even if the
// error is not nil: it holds whatever could be read. The error is a
// *LoadError. The table keeps the sections' bytes.
func Load(s Sections) (*Table, error) {
	t := newTable(s)
	return t, t.Complete()
}

func newTable(s Sections) *Table {
	t := &Table{arch: s.Arch}
	t.secs[0] = section{name: ".eh_frame", data: s.EHFrame, addr: s.EHFrameAddr,
		text: s.TextAddr, got: s.DataAddr}
	t.secs[1] = section{name: ".debug_frame", data: s.DebugFrame, addr: s.DebugFrameAddr, debug: true}
	t.first.hdr = section{name: ".eh_frame_hdr", data: s.EHFrameHdr, addr: s.EHFrameHdrAddr}
	return t
}

// Complete reads all records of a table that was opened, unless that has been done, and
// returns the error that Load would. It waits while another goroutine reads them: do not
// call it while a thread is suspended.
func (t *Table) Complete() error {
	if !t.read.Load() {
		t.reader.Do(t.readAll)
	}
	if t.errs.Count > 0 {
		return &t.errs
	}
	return nil
}

func (t *Table) readAll() {
	l := loader{t: t, errs: &t.errs, byOff: map[uint64]uint32{}, skipped: map[uint64]bool{}}
	t.fdes = make([]fde, 0, l.expected())
	for i := range t.secs {
		l.read(uint64(i))
		if i == 0 {
			l.header()
		}
	}
	l.index()
	t.stats.CIEs, t.stats.FDEs, t.stats.Problems = len(t.cies), len(t.fdes), l.errs.Count
	t.read.Store(true)
}

// loader is a Table while it grows.
type loader struct {
	t     *Table
	errs  *LoadError
	byOff map[uint64]uint32 // offset<<1 | section -> index of CIE
	last  struct {          // the last CIE looked up: most FDEs have their neighbor's
		key uint64
		cie uint32
		ok  bool
	}
	// Of .eh_frame: the offset at which linear reading ended, and the offsets of the FDEs
	// that were read but not indexed.
	readTo  uint64
	skipped map[uint64]bool
}

// minFDE is the size in bytes of the smallest FDE.
const minFDE = 12

// expected returns how many FDEs .eh_frame_hdr lists, at most as many as fit in .eh_frame. An
// index of this size need not grow, which would leave as much garbage.
func (l *loader) expected() uint64 {
	_, count, _, err := l.t.first.hdr.counted()
	if err != nil {
		return 0
	}
	return min(count, uint64(len(l.t.secs[0].data)/minFDE))
}

// read reads one section from its start to its terminator.
func (l *loader) read(sec uint64) {
	s := &l.t.secs[sec]
	if uint64(len(s.data)) > maxSection {
		l.errs.add(s.problem("section", 0, uint64(len(s.data)), Unsupported,
			"4 GiB or more; the rest is not read"))
		s.data = s.data[:maxSection]
	}
	for off := uint64(0); ; {
		rec, err := s.header(off)
		if err != nil {
			l.errs.add(err)
		}
		if sec == 0 {
			l.readTo = off
		}
		if rec.ended || rec.end <= off {
			return
		}
		if err == nil && rec.idAt != 0 {
			l.record(sec, &rec)
		}
		off = rec.end
		if rec.end == rec.off+4 {
			off = padded(s.data, off)
		}
	}
}

// padded skips zeros, eight bytes at a time, after an empty record: .debug_frame may contain
// them as padding, and an expanded section millions of them.
func padded(data []byte, off uint64) uint64 {
	for off+8 <= uint64(len(data)) && binary.LittleEndian.Uint64(data[off:]) == 0 {
		off += 8
	}
	return off
}

func (l *loader) record(sec uint64, rec *record) {
	if rec.isCIE {
		l.cieAt(sec, rec.off)
		return
	}
	if !l.fdeAt(sec, rec) && sec == 0 {
		l.skipped[rec.off] = true
	}
}

// cieAt returns the index of the CIE at off, reading it if it is new: an FDE
// may come before its CIE.
func (l *loader) cieAt(sec, off uint64) (uint32, bool) {
	key := off<<1 | sec
	if l.last.ok && l.last.key == key {
		return l.last.cie, true
	}
	if i, ok := l.byOff[key]; ok {
		l.last.key, l.last.cie, l.last.ok = key, i, true
		return i, true
	}
	s := &l.t.secs[sec]
	if off >= uint64(len(s.data)) {
		return 0, false
	}
	rec, err := s.header(off)
	if err != nil || !rec.isCIE || rec.idAt == 0 {
		return 0, false
	}
	c, err := s.cie(&rec)
	if err != nil {
		l.errs.add(err)
	}
	i := uint32(len(l.t.cies))
	l.t.cies = append(l.t.cies, c)
	l.byOff[key] = i
	return i, true
}

// fdeAt adds the FDE of rec to the index. It returns false if the FDE is unusable or
// covers nothing.
func (l *loader) fdeAt(sec uint64, rec *record) bool {
	s := &l.t.secs[sec]
	i, ok := l.cieAt(sec, rec.cieOff)
	if !ok {
		l.errs.add(s.problem("FDE", rec.idAt, rec.id, BadRecord, "its CIE pointer leads to no CIE"))
		return false
	}
	c := &l.t.cies[i]
	if c.why != None {
		l.errs.add(s.problem("FDE", rec.off, c.off, c.why, "its CIE is unusable"))
		return false
	}
	f, err := s.fde(rec, c)
	if err != nil {
		l.errs.add(err)
		return false
	}
	if f.lo == f.hi {
		l.t.stats.Empty++
		return false
	}
	f.cie = i
	if sec == 1 {
		l.t.stats.DebugFDEs++
	}
	l.t.fdes = append(l.t.fdes, f)
	return true
}

// index sorts the FDEs and resolves overlaps.
func (l *loader) index() {
	t := l.t
	byStart := func(a, b fde) int {
		if a.lo != b.lo {
			return cmp.Compare(a.lo, b.lo)
		}
		return cmp.Compare(t.rank(&a), t.rank(&b))
	}
	if !slices.IsSortedFunc(t.fdes, byStart) {
		slices.SortStableFunc(t.fdes, byStart)
	}
	t.dropDiscarded()
	for i := 1; i < len(t.fdes); i++ {
		if t.fdes[i].lo < t.fdes[i-1].hi {
			t.segs = flatten(t)
			t.near = newBuckets(len(t.segs), func(i int) uint64 { return t.segs[i].lo })
			return
		}
	}
	t.near = newBuckets(len(t.fdes), func(i int) uint64 { return t.fdes[i].lo })
}

// dropDiscarded removes FDEs of functions that a linker has discarded (--gc-sections). In .debug_frame their
// start becomes 0 and their size stays, so they would cover other functions. As gdb does, it removes those at
// 0 that overlap the first FDE elsewhere (gdb/dwarf2/frame.c, dwarf2_build_frame_info).
func (t *Table) dropDiscarded() {
	first := slices.IndexFunc(t.fdes, func(f fde) bool { return f.lo != 0 })
	if first <= 0 {
		return
	}
	lo, n := t.fdes[first].lo, len(t.fdes)
	t.fdes = slices.DeleteFunc(t.fdes,
		func(f fde) bool { return f.lo == 0 && f.hi > lo && t.cies[f.cie].debug })
	t.stats.DebugFDEs -= n - len(t.fdes)
}

// rank orders FDEs that start together: .eh_frame before .debug_frame.
func (t *Table) rank(f *fde) uint64 {
	if t.cies[f.cie].debug {
		return 1
	}
	return 0
}

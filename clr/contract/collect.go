package contract

import "encoding/binary"

// Bounds of the checks.
const (
	maxTreeNodes  = 1 << 14
	maxHeapWords  = 1 << 18 // of one heap's nibble map
	enoughStarts  = 64
	enoughImages  = 4
	maxHeapMargin = 0x1000 // from a nibble map's base to its heap's first byte
)

// Offsets that no runtime publishes: of the bounds in a HeapList, and of the manager and the range list in a
// RangeSection (codeman.h); also the entries of the two managers in the debugger's table (dacvars.h).
const (
	heapStart      = 16
	heapEnd        = 24
	sectionManager = 24
	sectionList    = 48
	jitEntry       = 4
	r2rEntry       = 5
)

// collector walks the runtime's tables, to verify an assumed layout (see Verify). It counts agreements and
// contradictions in e. It stops if there is enough evidence, or if it has read the permitted number of pages.
type collector struct {
	t        *Tables // a copy that answers every lookup and reads pages
	pages    *pages
	descs    *MethodDescs
	searches int
	e        Evidence
	sections map[uint64]section
	proofs   map[uint64]bool
	jit, r2r uint64 // managers of code, 0 = unknown
	nodes    int
	done     bool
}

// collect walks the range map, and checks each code heap and image.
func (t *Tables) collect() Evidence {
	c := &collector{pages: newPages(t.v.r, t.incomplete),
		sections: map[uint64]section{}, proofs: map[uint64]bool{}}
	copied := *t
	c.t = &copied
	c.t.v.r, c.t.proven, c.t.cache, c.t.images = c.pages, allParts,
		map[uint64]*located{}, map[uint64]directory{}
	var err error
	if c.descs, err = NewMethodDescs(c.pages, t.desc); err != nil {
		return Evidence{}
	}
	if t.dac != 0 {
		c.jit, c.r2r = c.manager(jitEntry), c.manager(r2rEntry)
	}
	c.level(t.top, levels-1)
	c.e.Spent = c.pages.spent()
	if c.e.Spent { // failed reads look like contradictions
		c.e.Map, c.e.Headers = 0, 0
	}
	if c.e.contradicts() && t.ended() {
		return t.evidence
	}
	return c.e
}

// ended reports whether the process has ended: the debugger's table, a variable of the runtime, cannot be
// read.
func (t *Tables) ended() bool {
	_, ok := t.v.word(t.dac)
	return !ok && t.dac != 0 && !t.incomplete
}

func (c *collector) manager(entry uint64) uint64 {
	at, ok := c.t.v.word(c.t.dac + 8*entry)
	if !ok {
		return 0
	}
	m, _ := c.t.v.word(at)
	return m
}

// contradiction counts a contradiction of the map.
func (c *collector) contradiction() { c.e.Map++ }

// missing reports whether a structure could not be read because the core lacks one of its pages. missed is
// the number of failed reads before.
func (c *collector) missing(missed int) bool { return c.t.incomplete && c.pages.missed > missed }

// finished reports whether to end the walk.
func (c *collector) finished() bool {
	c.done = c.done || c.pages.spent() || c.e.enough() && c.e.Images > 0
	return c.done
}

// level walks a table of the range map.
func (c *collector) level(table uint64, level int) {
	if c.nodes++; c.nodes > maxTreeNodes {
		c.contradiction()
		c.done = true
	}
	missed := c.pages.missed
	b, ok := c.t.large(table, 8*levelSize)
	if !ok {
		if !c.missing(missed) {
			c.contradiction()
		}
		return
	}
	for i := range levelSize {
		next := binary.LittleEndian.Uint64(b[8*i:]) &^ 1
		switch {
		case c.finished():
			return
		case next == 0:
		case level > 0:
			c.level(next, level-1)
		default:
			c.fragments(next)
		}
	}
}

// fragments walks the list of a leaf.
func (c *collector) fragments(at uint64) {
	for range maxFragments {
		if c.finished() {
			return
		}
		missed := c.pages.missed
		next, ok := c.fragment(at)
		if !ok && !c.missing(missed) {
			c.contradiction()
			return
		}
		if at = next &^ 1; at == 0 {
			return
		}
	}
	c.contradiction()
}

// fragment compares a fragment with its section, and checks a new section.
func (c *collector) fragment(at uint64) (next uint64, ok bool) {
	v, l := &c.t.v, &c.t.l
	begin, ok1 := v.word(at + l.fragmentBegin)
	end, ok2 := v.word(at + l.fragmentEnd)
	next, ok3 := v.word(at + l.fragmentNext)
	rs, ok4 := v.word(at + l.fragmentSection)
	if !ok1 || !ok2 || !ok3 || !ok4 || begin >= end {
		return 0, false
	}
	s, seen := c.sections[rs]
	if !seen {
		switch c.t.readSection(begin, rs, &s) {
		case NotCode: // being deleted, which happens only to collectible sections
			return next, s.flags&flagCollectible != 0
		case Found:
		default:
			return next, false
		}
		c.sections[rs] = s
	}
	if s.begin != begin || s.end != end {
		return next, false
	}
	return next, seen || c.section(rs, &s)
}

// section checks a section.
func (c *collector) section(rs uint64, s *section) bool {
	if !c.consistent(rs, s) {
		return false
	}
	switch {
	case s.r2r != 0 && c.e.Images < enoughImages:
		return c.image(s)
	case s.flags&flagCodeHeap != 0 && !s.collectible && !c.e.enough():
		return c.heap(s)
	}
	return true
}

// consistent compares a section's flags with its contents, and its manager with its kind.
func (c *collector) consistent(rs uint64, s *section) bool {
	manager, ok := c.t.v.word(rs + sectionManager)
	list, ok1 := c.t.v.word(rs + sectionList)
	heap, ranges, image := s.flags&flagCodeHeap != 0, s.flags&flagRangeList != 0, s.r2r != 0
	switch {
	case !ok || !ok1 || s.flags > flagCollectible|flagCodeHeap|flagRangeList:
		return false
	case heap != (s.heap != 0), ranges != (list != 0), image && (heap || ranges):
		return false
	case c.t.dac == 0: // the managers' addresses are unknown
		return true
	case image:
		return manager == c.r2r && manager != 0
	}
	return manager == c.jit && manager != 0
}

// image compares the Module of a section with the image there.
func (c *collector) image(s *section) bool {
	if base, ok := c.descs.Base(s.r2r); !ok || base != s.begin {
		return false
	}
	d, r := c.t.directory(s.begin)
	if r == Unreadable { // in a core, the image's file may be missing
		return true
	}
	if r != Found || d.n == 0 {
		return false
	}
	for _, i := range [...]int{0, d.n / 2, d.n - 1} {
		begin, end, unwind, r := c.t.function(s.begin, d.at+uint64(i)*uint64(functionSize(c.t.arch)))
		if r != Found || end <= begin || uint64(end) > s.end-s.begin ||
			!c.unwinds(s.begin+uint64(unwind), end-begin) {
			return false
		}
	}
	c.e.Images++
	return true
}

// heap walks a code heap's nibble map.
func (c *collector) heap(s *section) bool {
	v, l := &c.t.v, &c.t.l
	base, ok1 := v.word(s.heap + l.heapMapBase)
	table, ok2 := v.word(s.heap + l.heapHeaderMap)
	start, ok3 := v.word(s.heap + heapStart)
	end, ok4 := v.word(s.heap + heapEnd)
	if !ok1 || !ok2 || !ok3 || !ok4 || table == 0 || base&(pageSize-1) != 0 {
		return false
	}
	if start < s.begin || start > end || end > s.end || base > start || start-base > maxHeapMargin {
		return false
	}
	c.e.Heaps++
	words := min((end-base)/(bucketBytes*wordBuckets)+1, maxHeapWords)
	for i := uint64(0); i < words && !c.e.enough() && !c.pages.spent(); i += backChunk {
		n := min(words-i, backChunk)
		missed := c.pages.missed
		b, ok := v.bytes(table+4*i, int(4*n))
		if !ok && c.missing(missed) {
			continue
		}
		if !ok {
			return false
		}
		var chunk [4 * backChunk]byte // the view's buffer is reused below
		copy(chunk[:], b)
		for k := range n {
			if !c.nibbles(binary.LittleEndian.Uint32(chunk[4*k:]),
				base+(i+k)*wordBuckets*bucketBytes, start, end, s) {
				return false
			}
		}
	}
	return true
}

// nibbles checks the code that a word of the nibble map lists.
func (c *collector) nibbles(w uint32, base, start, end uint64, s *section) bool {
	if w == 0 || !c.t.l.linear && isPointer(w) {
		return true
	}
	for k := range uint64(wordBuckets) {
		n := uint64(w >> (28 - 4*k) & 15)
		if n == 0 {
			continue
		}
		at := base + k*bucketBytes + 4*(n-1)
		if n > pointerAbove || at < start || at >= end || !c.code(at, end, s) {
			return false
		}
	}
	return true
}

package contract

// code checks the code at start, which a nibble map lists. It returns false if the nibble map contradicts it.
func (c *collector) code(start, heapEnd uint64, s *section) bool {
	c.e.Starts++
	missed := c.pages.missed
	h, ok := c.t.v.word(start - 8)
	if !ok {
		return c.missing(missed)
	}
	if h <= c.t.l.stubLast {
		return true
	}
	if h < pageSize { // neither a kind of stub nor an address
		return false
	}
	c.e.Methods++
	headers := c.e.Headers
	agrees := c.header(start, heapEnd, h, s)
	if c.missing(missed) {
		c.e.Headers = headers
		return true
	}
	return agrees
}

// header checks a method's code header and everything that it refers to. It returns false if the nibble map
// contradicts it.
func (c *collector) header(start, heapEnd, h uint64, s *section) bool {
	end, ok := c.functions(start, heapEnd, h, s)
	if !ok {
		c.e.Headers++
		return true
	}
	if !c.found(start, end, s) {
		return false
	}
	c.method(start, end, h)
	return true
}

// functions compares the functions of a code header with the start of its code: they are consecutive, and
// their unwind data can be read.
func (c *collector) functions(start, heapEnd, h uint64, s *section) (end uint64, ok bool) {
	n, ok := c.t.v.u32(h + c.t.l.headerCount)
	if !ok || n == 0 || n > maxFunclets {
		return 0, false
	}
	end = start
	for i := range uint64(n) {
		from, to, unwind, r := c.t.function(s.begin, h+c.t.l.headerInfos+i*uint64(functionSize(c.t.arch)))
		if r != Found || s.begin+uint64(from) != end || to <= from || s.begin+uint64(to) > heapEnd {
			return 0, false
		}
		if !c.unwinds(s.begin+uint64(unwind), to-from) {
			return 0, false
		}
		end = s.begin + uint64(to)
	}
	return end, true
}

// found looks up the first, the middle, and the last byte of code.
func (c *collector) found(start, end uint64, s *section) bool {
	for _, ip := range [...]uint64{start, start + (end-start)/2, end - 1} {
		if at, r := c.t.start(ip, s); r != Found || at != start {
			return false
		}
	}
	return true
}

// method compares a method's MethodDesc and debug information with its code.
func (c *collector) method(start, end, h uint64) {
	desc, ok := c.t.v.word(h + c.t.l.headerMethod)
	if !ok || desc == 0 || desc&7 != 0 {
		c.e.Headers++
		return
	}
	row, ok := c.descs.Row(desc)
	if ok && row.Dynamic {
		return // it has nothing to compare
	}
	if !ok {
		c.e.Headers++
		return
	}
	switch c.descs.agrees(desc, row, &c.searches) {
	case rowContradicts:
		c.e.Headers++
		return
	case rowOther:
		return
	}
	if !c.debuggable(start, end, h) {
		return
	}
	c.e.Agreeing++
	if c.leadsTo(desc, start) && !c.proofs[desc] {
		c.proofs[desc] = true
		c.e.Proofs++
	}
}

// debuggable reports whether a method has debug information that refers to its code.
func (c *collector) debuggable(start, end, h uint64) bool {
	info, ok := c.t.v.word(h)
	if !ok || info == 0 || c.t.l.headerMethod != debugHeader {
		return false
	}
	bounds := c.t.Bounds(Debug{Begin: start, info: info})
	return len(bounds) > 0 && bounds[0].Native == 0 && uint64(bounds[len(bounds)-1].Native) <= end-start
}

// One of the words after a MethodDesc is the address of its code (method.hpp) or of a precode. The data of a
// precode are stubPage bytes further: its target and its MethodDesc (precode.h).
const (
	descWords = 12
	stubPage  = 0x4000
)

// leadsTo reports whether the MethodDesc at desc refers to the code at start, directly or through a precode.
// A MethodDesc does not refer to its code of older tiers.
func (c *collector) leadsTo(desc, start uint64) bool {
	v := &c.t.v
	for i := range uint64(descWords) {
		w, ok := v.word(desc + 8*(i+1))
		if !ok {
			return false
		}
		if w == start {
			return true
		}
		if w == 0 || w&7 != 0 {
			continue
		}
		target, ok := v.word(w + stubPage)
		back, ok1 := v.word(w + stubPage + 8)
		if ok && ok1 && target == start && back == desc {
			return true
		}
	}
	return false
}

// Code of the runtime has UNWIND_INFOs of version 1, with flags for a handler or, in images, for a chain.
const (
	unwindVersion = 1
	unwindChained = 4
)

// unwinds reports whether an UNWIND_INFO is plausible for a function of the given size in bytes.
func (c *collector) unwinds(at uint64, size uint32) bool {
	b, ok := c.t.v.bytes(at, 4)
	return ok && b[0]&7 == unwindVersion && b[0]>>3 <= unwindChained && uint32(b[1]) <= size
}

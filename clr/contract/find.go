package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/arm64"
)

// Reason is why a lookup has no answer; Found means that it has one.
type Reason uint8

const (
	Found       Reason = iota
	NotCode            // no range section of the runtime contains the address
	NoMethod           // a code heap or image contains it, but no method does
	Unreadable         // a needed structure could not be read
	Malformed          // a needed structure is inconsistent
	Unsupported        // a kind of code that is not supported (interpreter)
	Unproven           // the runtime's layout is assumed and not yet verified
)

var reasonNames = [...]string{"found", "not-code", "no-method", "unreadable",
	"malformed", "unsupported", "unproven"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason?"
}

// Kind is the kind of a Method's code.
type Kind uint8

const (
	JIT  Kind = iota // compiled at run time
	R2R              // precompiled, in an image
	Stub             // code of the runtime that is not a method
)

// StubKind is the runtime's kind of a block of stubs (codeman.h, StubCodeBlockKind).
type StubKind uint8

const (
	StubNone         StubKind = 0
	StubJump         StubKind = 1
	StubDynamic      StubKind = 3
	StubPrecode      StubKind = 4
	StubFixup        StubKind = 5
	StubVSDDispatch  StubKind = 6
	StubVSDResolve   StubKind = 7
	StubVSDLookup    StubKind = 8
	StubVTable       StubKind = 9
	StubRangeList    StubKind = 0xfe // in a range list: precodes
	StubImageSection StubKind = 0xff // in an image, outside its functions: thunks
)

// Method is the code at an address.
type Method struct {
	Begin, End uint64 // of the RUNTIME_FUNCTION: the method or the funclet; a stub's End is its section's
	Base       uint64 // base address of its RVAs
	MethodDesc uint64 // 0 for precompiled code and stubs
	UnwindRVA  uint32 // of the UNWIND_INFO; on ARM64 the contents of the .pdata entry
	Funclet    int    // 0: the method itself; else the index of its RUNTIME_FUNCTION (JIT)
	Kind       Kind
	Stub       StubKind
	// Volatile code may be freed while the process runs, and other code, with another method's
	// MethodDesc, may take its place: code of collectible assemblies and of dynamic methods.
	Volatile bool
}

// Function identifies the method: by its MethodDesc, or precompiled code by its start; 0 for a stub. Package
// naming has a better identity for precompiled code in several parts.
func (m *Method) Function() clr.FunctionID {
	switch {
	case m.Kind == Stub:
		return 0
	case m.MethodDesc != 0:
		return clr.FunctionID(m.MethodDesc)
	}
	return clr.FunctionID(m.Begin)
}

// located is the result of a lookup.
type located struct{ Method }

// keep reports whether a lookup may be cached. Stubs are not worth it, because samples in them are rare.
func (e *located) keep() bool { return !e.Volatile && e.Kind != Stub }

// Bounds of a lookup.
const (
	levels       = 5
	levelSize    = 256
	chunkShift   = 17 // the range map's leaves cover 128 KiB
	maxFragments = 1 << 12
	maxFunclets  = 1 << 16
	maxMethod    = 1 << 28 // bytes
	maxCache     = 1 << 13
	maxUnloads   = 1 << 12 // sections of code that may be unloaded
)

// functionSize is the size of a RUNTIME_FUNCTION.
func functionSize(a context.Arch) uint32 {
	if a == context.ArchARM64 {
		return arm64.EntrySize
	}
	return amd64.EntrySize
}

// isDynamicMethod distinguishes a dynamic method from a stub of the runtime in the extended flags of a
// MethodDesc without metadata (RuntimeTypeSystem.md, DynamicMethodDescExtendedFlags).
const isDynamicMethod = 0x4000

// Flags of a range section.
const (
	flagCollectible = 1
	flagCodeHeap    = 2
	flagRangeList   = 4
)

// section is a RangeSection.
type section struct {
	begin, end  uint64
	flags       uint32
	r2r, heap   uint64
	collectible bool
	near        bool // the range map has a last table for the address: 32 MB with code of the runtime
}

// Find writes the code at ip into m. If the result is not Found, m is unspecified.
func (t *Tables) Find(ip uint64, m *Method) Reason {
	e, reason := t.locate(ip)
	if reason == Found {
		*m = e.Method
	}
	return reason
}

// MissingAddr returns the address of unreadable memory without which the code at ip cannot be found or
// unwound. It returns false if nothing is missing.
func (t *Tables) MissingAddr(ip uint64) (addr uint64, ok bool) {
	t.v.unread = 0 // an invalid address is not missing memory
	switch e, reason := t.locate(ip); {
	case reason == Unreadable:
		return t.v.unread, t.v.unread != 0
	case reason == Found && e.UnwindRVA != 0 && t.arch == context.ArchAMD64: // on ARM64, locate reads it
		const head = 4 // bytes of UNWIND_INFO
		if _, ok := t.v.bytes(e.Base+uint64(e.UnwindRVA), head); !ok {
			return t.v.unread, t.v.unread != 0
		}
	}
	return 0, false
}

// locate is Find. Volatile code and stubs are looked up each time.
func (t *Tables) locate(ip uint64) (*located, Reason) {
	if !t.MapProven() {
		return nil, Unproven
	}
	if e := t.cache[ip]; e != nil {
		return e, Found
	}
	var s section
	if r := t.section(ip, &s); r != Found {
		return nil, r
	}
	e := new(located)
	if r := t.method(ip, &s, e); r != Found {
		return nil, r
	}
	if e.keep() {
		if len(t.cache) >= maxCache {
			clear(t.cache)
		}
		t.cache[ip] = e
	}
	return e, Found
}

// Unloaded reports whether the runtime has probably freed the code at ip, where a walk has arrived. One of
// these shows it: a code heap contains ip, but has no method there or a newer one; an earlier lookup found a
// collectible section there; or ip is near the runtime's code, in no section, and its memory is gone or
// still has the call. Elsewhere, memory shows nothing, because a damaged stack contains any addresses.
func (t *Tables) Unloaded(ip uint64) bool {
	if !t.MapProven() {
		return false
	}
	var s section
	switch r := t.section(ip, &s); {
	case r == Found && s.r2r == 0 && s.flags&flagCodeHeap != 0:
		var e located
		r := t.method(ip, &s, &e)
		return r == NoMethod || r == Found && e.Kind != Stub && t.replacedAt(&e, ip+1)
	case r != NotCode:
		return false
	case t.mayUnload.contains(ip):
		return true
	}
	_, mapped := t.v.bytes(ip, 1)
	return s.near && (!mapped || t.Call(ip+1))
}

// sections are the ends of sections by their beginnings.
type sections map[uint64]uint64

func (s sections) contains(ip uint64) bool {
	for begin, end := range s {
		if begin <= ip && ip < end {
			return true
		}
	}
	return false
}

// noteCollectible remembers a section, in case it is unloaded before its samples are walked.
func (t *Tables) noteCollectible(s *section) {
	if t.mayUnload[s.begin] == s.end {
		return
	}
	if t.mayUnload == nil || len(t.mayUnload) >= maxUnloads {
		t.mayUnload = sections{}
	}
	t.mayUnload[s.begin] = s.end
}

// section walks the range map to ip's section.
func (t *Tables) section(ip uint64, s *section) Reason {
	table := t.top
	for level := levels - 1; level >= 0; level-- {
		s.near = level == 0
		index := ip >> chunkShift >> (8 * level) & (levelSize - 1)
		next, ok := t.v.word(table + 8*index)
		if !ok {
			return Unreadable
		}
		s.collectible = s.collectible || next&1 != 0
		if table = next &^ 1; table == 0 {
			return NotCode
		}
	}
	return t.fragment(ip, table, s)
}

// fragment searches the list of a leaf.
func (t *Tables) fragment(ip, at uint64, s *section) Reason {
	for range maxFragments {
		var w [4]uint64
		if !t.v.words(at, w[:], t.l.fragmentBegin, t.l.fragmentEnd, t.l.fragmentNext, t.l.fragmentSection) {
			return Unreadable
		}
		begin, end, next := w[0], w[1], w[2]
		if begin <= ip && ip < end {
			return t.readSection(ip, w[3], s)
		}
		s.collectible = s.collectible || next&1 != 0
		if at = next &^ 1; at == 0 {
			return NotCode
		}
	}
	return Malformed
}

// readSection reads the RangeSection at rs and checks that it covers ip.
func (t *Tables) readSection(ip, rs uint64, s *section) Reason {
	var w [6]uint64
	l := &t.l
	if !t.v.words(rs, w[:], l.sectionBegin, l.sectionEnd, l.sectionFlags, l.sectionR2R,
		l.sectionHeap, l.sectionDeleted) {
		return Unreadable
	}
	s.begin, s.end, s.flags, s.r2r, s.heap = w[0], w[1], uint32(w[2]), w[3], w[4]
	deleted := w[5]
	s.collectible = s.collectible || s.flags&flagCollectible != 0
	switch {
	case deleted != 0:
		return NotCode
	case ip < s.begin || ip >= s.end || s.flags > 0xffff:
		return Malformed
	}
	return Found
}

// method finds the method or stub of ip in its section.
func (t *Tables) method(ip uint64, s *section, e *located) Reason {
	if e.Base, e.Volatile = s.begin, s.collectible; s.collectible {
		t.noteCollectible(s)
	}
	switch {
	case s.r2r != 0 && t.answers(partImages):
		return t.precompiled(ip, s, e)
	case s.r2r == 0 && s.flags&flagCodeHeap != 0 && t.answers(partHeaps):
		return t.jitted(ip, s, e)
	case s.r2r != 0 || s.flags&flagCodeHeap != 0:
		return Unproven
	case s.flags&flagRangeList != 0:
		e.Kind, e.Stub, e.Begin, e.End = Stub, StubRangeList, s.begin, s.end
		return Found
	}
	return Unsupported
}

// jitted finds a method or a stub of a code heap.
func (t *Tables) jitted(ip uint64, s *section, e *located) Reason {
	start, r := t.start(ip, s)
	if r != Found {
		return r
	}
	h, ok := t.v.word(start - 8)
	if !ok {
		return Unreadable
	}
	if h <= t.l.stubLast {
		e.Kind, e.Stub, e.Begin, e.End = Stub, StubKind(h), start, s.end
		return Found
	}
	method, ok1 := t.v.word(h + t.l.headerMethod)
	n, ok2 := t.v.u32(h + t.l.headerCount)
	if !ok1 || !ok2 {
		return Unreadable
	}
	if n == 0 || n > maxFunclets || method == 0 || method&7 != 0 {
		return Malformed
	}
	e.Kind, e.MethodDesc = JIT, method
	e.Volatile = e.Volatile || t.dynamic(method)
	return t.choose(ip, h+t.l.headerInfos, int(n), e)
}

// dynamic reports whether a MethodDesc is that of a dynamic method (DynamicMethod, compiled expressions),
// which the runtime frees and reuses. It returns true if the extended flags cannot be read.
func (t *Tables) dynamic(desc uint64) bool {
	b, ok := t.v.bytes(desc+t.descFlags, 2)
	if !ok || binary.LittleEndian.Uint16(b)&descKindMask != descDynamic {
		return false
	}
	flags, ok := t.v.u32(desc + t.extendedFlags)
	return !ok || flags&isDynamicMethod != 0
}

// choose finds the RUNTIME_FUNCTION that contains ip among n sorted ones. It returns NoMethod if there
// is none.
func (t *Tables) choose(ip, at uint64, n int, e *located) Reason {
	rel, size := ip-e.Base, uint64(functionSize(t.arch))
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		begin, ok := t.v.u32(at + uint64(mid)*size)
		if !ok {
			return Unreadable
		}
		if uint64(begin) <= rel {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return NoMethod
	}
	e.Funclet = lo - 1
	begin, end, unwind, r := t.function(e.Base, at+uint64(lo-1)*size)
	if r != Found {
		return r
	}
	e.Begin, e.End, e.UnwindRVA = e.Base+uint64(begin), e.Base+uint64(end), unwind
	switch {
	case end <= begin || end-begin > maxMethod:
		return Malformed
	case ip >= e.End:
		return NoMethod
	}
	return Found
}

// function reads a RUNTIME_FUNCTION. On ARM64 it has no end; the length is in the unwind data.
func (t *Tables) function(base, at uint64) (begin, end, unwind uint32, r Reason) {
	b, ok := t.v.bytes(at, int(functionSize(t.arch)))
	if !ok {
		return 0, 0, 0, Unreadable
	}
	le := binary.LittleEndian
	if t.arch != context.ArchARM64 {
		return le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), Found
	}
	fn := arm64.ReadEntry(b)
	if b = nil; !fn.Packed() {
		if b, ok = t.v.bytes(base+uint64(fn.Data), arm64.XdataHead); !ok {
			return 0, 0, 0, Unreadable
		}
	}
	length, fault := fn.Length(b)
	if !fault.OK() {
		return 0, 0, 0, Malformed
	}
	return fn.Begin, fn.Begin + length, fn.Data, Found
}

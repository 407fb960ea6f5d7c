package contract

import "encoding/binary"

// Flags of the debugging information of code that was compiled at run time
// (debuginfostore.cpp, EXTRA_DEBUG_INFO_FLAGS).
const (
	extraPatchpoint = 1
	extraRich       = 2
)

const (
	maxLocals    = 1 << 16
	maxRich      = 1 << 24
	instrumented = 0xffffffff // .NET 10: boundaries of instrumented code, before the others
)

// Debug is where the debugging information of a method is, that was compiled at run time.
type Debug struct {
	Method uint64 // its MethodDesc
	Begin  uint64 // of its code
	info   uint64
}

// Debug finds the method at ip. Precompiled code has none here.
func (t *Tables) Debug(ip uint64) (d Debug, ok bool) {
	var s section
	if !t.Proven() || t.l.headerMethod != debugHeader || t.section(ip, &s) != Found || s.r2r != 0 || s.flags&flagCodeHeap == 0 {
		return d, false
	}
	start, r := t.start(ip, &s)
	if r != Found {
		return d, false
	}
	h, ok := t.v.word(start - 8)
	if !ok || h <= t.l.stubLast {
		return d, false
	}
	d.Begin = start
	d.Method, _ = t.v.word(h + t.l.headerMethod)
	d.info, ok = t.v.word(h)
	return d, ok && d.info != 0 && d.Method != 0
}

// debugHeader is where a code header has its MethodDesc if its first word leads to the
// debugging information, which no runtime publishes (codeman.h, RealCodeHeader).
const debugHeader = 24

// Bounds are the boundaries of a method; nil if it has none that can be read.
func (t *Tables) Bounds(d Debug) []Bound {
	at, ok := t.skipExtras(d.info)
	if !ok {
		return nil
	}
	b, ok := t.v.bytes(at, 24)
	if !ok {
		b, ok = t.v.bytes(at, 8) // at the end of what can be read
	}
	if !ok {
		return nil
	}
	n := nibbles{b: b}
	size := n.number()
	if t.packed() && size == instrumented {
		size = n.number()
		n.number()
	}
	n.number() // variables
	if n.bad || size == 0 || size > maxBoundBytes {
		return nil
	}
	b, ok = t.large(at+uint64(n.behind()), int(size))
	if !ok {
		return nil
	}
	return DecodeBounds(b, t.packed())
}

// DecodeInfo reads the boundaries at the start of a method's debugging information in a
// precompiled image, where no flags precede the sizes. Nil if they cannot be read.
func DecodeInfo(b []byte, packed bool) []Bound {
	n := nibbles{b: b}
	size := n.number()
	if packed && size == instrumented {
		size = n.number()
		n.number()
	}
	n.number() // variables
	if n.bad || size == 0 || size > maxBoundBytes || uint64(n.behind())+uint64(size) > uint64(len(b)) {
		return nil
	}
	return DecodeBounds(b[n.behind():][:size], packed)
}

// packed tells .NET 10, which publishes its code tables, from .NET 9.
func (t *Tables) packed() bool { _, ok := t.desc.Contracts["ExecutionManager"]; return ok }

// skipExtras passes what stands before the sizes.
func (t *Tables) skipExtras(at uint64) (uint64, bool) {
	b, ok := t.v.bytes(at, 1)
	if !ok || b[0]&^(extraPatchpoint|extraRich) != 0 {
		return 0, false
	}
	flags := b[0]
	at++
	if flags&extraPatchpoint != 0 {
		p, ok := t.patchpoint(at)
		if !ok {
			return 0, false
		}
		at += p
	}
	if flags&extraRich != 0 {
		size, ok := t.v.u32(at)
		if !ok || size > maxRich {
			return 0, false
		}
		at += 4 + uint64(size)
	}
	return at, true
}

// patchpoint is the size of a PatchpointInfo: .NET 10 has a word more before the number of
// locals.
func (t *Tables) patchpoint(at uint64) (uint64, bool) {
	number, size := uint64(8), uint64(32)
	if t.packed() {
		number, size = 16, 40
	}
	b, ok := t.v.bytes(at+number, 4)
	if !ok {
		return 0, false
	}
	locals := binary.LittleEndian.Uint32(b)
	return size + 4*uint64(locals), locals < maxLocals
}

package contract

import "encoding/binary"

// Flags of the debugging information of jitted code (debuginfostore.cpp, EXTRA_DEBUG_INFO_FLAGS).
const (
	extraPatchpoint = 1
	extraRich       = 2
)

const (
	maxLocals    = 1 << 16
	maxRich      = 1 << 24
	instrumented = 0xffffffff // .NET 10: boundaries of instrumented code, before the others
)

// Debug locates the debugging information of a jitted method.
type Debug struct {
	Method uint64 // its MethodDesc
	Begin  uint64 // of its code
	info   uint64
}

// Debug finds the method at ip. Precompiled code has no information here.
func (t *Tables) Debug(ip uint64) (d Debug, ok bool) {
	var s section
	if !t.Proven() || t.l.headerMethod != debugHeader || t.section(ip, &s) != Found || s.r2r != 0 ||
		s.flags&flagCodeHeap == 0 {
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

// debugHeader is the offset of the MethodDesc in a code header whose first word refers to the debugging
// information. No runtime publishes it (codeman.h, RealCodeHeader).
const debugHeader = 24

// Bounds returns the boundaries of a method; nil if it has none, or they are malformed.
func (t *Tables) Bounds(d Debug) []Bound {
	at, _, ok := t.extras(d.info)
	if !ok {
		return nil
	}
	b, ok := t.v.bytes(at, 24)
	if !ok {
		b, ok = t.v.bytes(at, 8) // near the end of readable memory
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

// DecodeInfo decodes the boundaries at the start of a method's debugging information in a precompiled image,
// where no flags precede the sizes. It returns nil if they are malformed.
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

// packed distinguishes .NET 10, which publishes its code tables, from .NET 9.
func (t *Tables) packed() bool { _, ok := t.desc.Contracts["ExecutionManager"]; return ok }

// span is a part of the process's memory.
type span struct {
	at   uint64
	size int
}

// extras skips the data before the sizes. rich is the tree of inlined methods; it may be empty.
func (t *Tables) extras(at uint64) (next uint64, rich span, ok bool) {
	b, ok := t.v.bytes(at, 1)
	if !ok || b[0]&^(extraPatchpoint|extraRich) != 0 {
		return 0, rich, false
	}
	flags := b[0]
	at++
	if flags&extraPatchpoint != 0 {
		p, ok := t.patchpoint(at)
		if !ok {
			return 0, rich, false
		}
		at += p
	}
	if flags&extraRich != 0 {
		size, ok := t.v.u32(at)
		if !ok || size > maxRich {
			return 0, rich, false
		}
		rich = span{at + 4, int(size)}
		at += 4 + uint64(size)
	}
	return at, rich, true
}

// patchpoint returns the size of a PatchpointInfo: .NET 10 has one more word before the number of locals.
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

// Inline is a method whose code is at an address, and the offset of the code's IL in it.
type Inline struct {
	Method uint64 // MethodDesc
	IL     uint32
}

// Bounds of one method's tree of inlined methods.
const (
	maxInlined  = 1 << 14
	maxMappings = 1 << 16
)

// Inlines returns the methods whose code is at a native offset, the innermost first, the compiled
// method last. It returns nil if none is known there, or if the runtime has not kept them:
// DOTNET_RichDebugInfo=1 makes it keep them.
func (t *Tables) Inlines(d Debug, native uint32) []Inline {
	_, rich, ok := t.extras(d.info)
	if !ok || rich.size == 0 {
		return nil
	}
	b, ok := t.large(rich.at, rich.size)
	if !ok {
		return nil
	}
	return DecodeInlines(b, native)
}

// inlinee is a node of the tree; the compiled method is the first.
type inlinee struct {
	Inline
	child, sibling, parent int
}

// DecodeInlines decodes the tree of inlined methods and the mappings of code to them (debuginfostore.cpp,
// DoInlineTreeNodes and DoRichOffsetMappings). It returns the methods at a native offset as Inlines does, nil
// if any part is malformed.
func DecodeInlines(b []byte, native uint32) []Inline {
	n := nibbles{b: b}
	nodes, mappings := int(n.number()), int(n.number())
	if n.bad || nodes == 0 || nodes > maxInlined || mappings > maxMappings || nodes+mappings > 2*len(b) {
		return nil
	}
	tree := n.tree(nodes)
	at, found := Inline{}, -1
	code, index, il := uint32(0), uint32(0), uint32(Prolog)
	for range mappings {
		code += n.number()
		index += n.signed()
		il += n.signed()
		n.number() // source
		if n.bad || int(index) >= nodes || !plausible(code, il) {
			return nil
		}
		if code <= native && il < maxIL {
			at, found = Inline{tree[index].Method, il}, int(index)
		}
	}
	if found < 0 {
		return nil
	}
	out := []Inline{at}
	for found != 0 && len(out) <= nodes {
		up := tree[found].parent
		if up < 0 {
			return nil
		}
		out = append(out, Inline{tree[up].Method, tree[found].IL})
		found = up
	}
	return out
}

// tree reads nodes, and finds the parent of each; -1 = none.
func (n *nibbles) tree(nodes int) []inlinee {
	tree := make([]inlinee, nodes)
	il, child, sibling := uint32(Prolog), uint32(0), uint32(0)
	for i := range tree {
		method := n.word()
		il += n.signed()
		child += n.signed()
		sibling += n.signed()
		tree[i] = inlinee{Inline{method, il}, int(child), int(sibling), -1}
	}
	for i := range tree {
		for c := tree[i].child; c > 0 && c < nodes && tree[c].parent < 0; c = tree[c].sibling {
			tree[c].parent = i
		}
	}
	return tree
}

// signed reads a number whose lowest bit is its sign.
func (n *nibbles) signed() uint32 {
	v := n.number()
	if v&1 != 0 {
		return -(v >> 1)
	}
	return v >> 1
}

// word reads 64 bits in 16 nibbles, the lowest first.
func (n *nibbles) word() uint64 {
	var b [8]byte
	for i := range 16 {
		if n.at>>1 >= len(n.b) {
			n.bad = true
			return 0
		}
		b[i>>1] |= n.b[n.at>>1] >> (4 * (n.at & 1)) & 15 << (4 * (i & 1))
		n.at++
	}
	return binary.LittleEndian.Uint64(b[:])
}

package contract

import "encoding/binary"

// Bound maps the code from a native offset up to the next bound to an offset of IL.
type Bound struct {
	Native, IL uint32
	Call       bool // the code is a call
}

// Special values of IL offsets (cordebuginfo.h, MappingTypes).
const (
	NoMapping = 0xffffffff
	Prolog    = 0xfffffffe
	Epilog    = 0xfffffffd
)

// Bounds of one method's data.
const (
	maxBounds     = 1 << 16
	maxBoundBytes = 1 << 19
	maxIL         = 1 << 24
)

// Bits of a bound's source (cordebuginfo.h, SourceTypes); the packed form has them in reverse order.
const (
	sourceCall   = 2
	packedCall   = 1
	packedSource = 2 // bits
)

// nibbles reads numbers with three bits per nibble, the highest first; the fourth bit means that more nibbles
// follow (nibblestream.h).
type nibbles struct {
	b   []byte
	at  int // in nibbles
	bad bool
}

func (n *nibbles) number() uint32 {
	v := uint32(0)
	for range 11 { // 32 bits
		if n.at>>1 >= len(n.b) {
			n.bad = true
			return 0
		}
		c := n.b[n.at>>1] >> (4 * (n.at & 1)) & 15
		n.at++
		v = v<<3 | uint32(c&7)
		if c&8 == 0 {
			return v
		}
	}
	n.bad = true
	return 0
}

// behind returns the index of the first unread byte.
func (n *nibbles) behind() int { return (n.at + 1) >> 1 }

// DecodeBounds decodes the boundaries of one method (debuginfostore.cpp, DoBounds). .NET 10 packs them. It
// returns nil if any is malformed.
func DecodeBounds(b []byte, packed bool) []Bound {
	n := nibbles{b: b}
	count := int(n.number())
	if n.bad || count > maxBounds || count > 8*len(b) {
		return nil
	}
	if packed {
		return unpack(&n, count)
	}
	out := make([]Bound, 0, count)
	native := uint32(0)
	for range count {
		delta := n.number()
		native += delta
		il := n.number() + Epilog
		source := n.number()
		if n.bad || delta >= maxMethod || !plausible(native, il) {
			return nil
		}
		out = append(out, Bound{native, il, source&sourceCall != 0})
	}
	return out
}

// unpack reads bounds of equal width, the lowest bits first.
func unpack(n *nibbles, count int) []Bound {
	natives, ils := uint64(n.number())+1, uint64(n.number())+1
	width := natives + ils + packedSource
	b := n.b[min(n.behind(), len(n.b)):]
	if n.bad || natives > 32 || ils > 32 || width > 64 || (uint64(count)*width+7)/8 > uint64(len(b)) {
		return nil
	}
	out := make([]Bound, 0, count)
	native := uint32(0)
	for i := range uint64(count) {
		v := bitsAt(b, i*width, width)
		delta := uint32(v >> packedSource & (1<<natives - 1))
		native += delta
		il := uint32(v>>(packedSource+natives)) + Epilog
		if delta >= maxMethod || !plausible(native, il) {
			return nil
		}
		out = append(out, Bound{native, il, v&packedCall != 0})
	}
	return out
}

// bitsAt returns up to 64 bits at a bit offset.
func bitsAt(b []byte, at, width uint64) uint64 {
	var wide [9]byte
	copy(wide[:], b[at/8:])
	v := binary.LittleEndian.Uint64(wide[:]) >> (at % 8)
	if at%8 != 0 {
		v |= uint64(wide[8]) << (64 - at%8)
	}
	if width == 64 {
		return v
	}
	return v & (1<<width - 1)
}

func plausible(native, il uint32) bool { return native < maxMethod && (il < maxIL || il >= Epilog) }

// ILAt returns the offset of IL for the code at a native offset. Code without IL gets the offset of its
// surroundings: 0 for a prolog, else that of the code before it. It returns false for an epilog, because the
// JIT compiler gives no offset to some calls after an epilog.
func ILAt(bounds []Bound, native uint32) (il uint32, ok bool) {
	known := false
	for i := range bounds {
		b := &bounds[i]
		if b.Native > native {
			break
		}
		switch {
		case b.IL < maxIL:
			il, ok, known = b.IL, true, true
		case b.IL == Epilog:
			ok = false
		case known:
			ok = true
		case b.IL == Prolog:
			il, ok = 0, true
		}
	}
	return il, ok
}

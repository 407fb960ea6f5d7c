package contract

import "encoding/binary"

// Bound says that the code from a native offset on, up to the next one, comes from an
// offset of IL.
type Bound struct {
	Native, IL uint32
	Call       bool // a call is there
}

// Offsets of IL that are none (cordebuginfo.h, MappingTypes).
const (
	NoMapping = 0xffffffff
	Prolog    = 0xfffffffe
	Epilog    = 0xfffffffd
)

// Bounds of what one method may have.
const (
	maxBounds     = 1 << 16
	maxBoundBytes = 1 << 19
	maxIL         = 1 << 24
)

// Bits of a bound's source (cordebuginfo.h, SourceTypes); packed, they are the other way
// round.
const (
	sourceCall   = 2
	packedCall   = 1
	packedSource = 2 // bits
)

// nibbles reads numbers of three bits a nibble, the highest first, whose fourth bit says
// that more follow (nibblestream.h).
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

// behind is the first byte that nothing was read of.
func (n *nibbles) behind() int { return (n.at + 1) >> 1 }

// DecodeBounds reads the boundaries of one method (debuginfostore.cpp, DoBounds): of .NET
// 10 they are packed. Nil if any cannot be.
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

// bitsAt are up to 64 bits at an offset of bits.
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

// ILAt returns the offset of IL that the code at a native offset comes from. It returns that of the
// surroundings for code that comes from none: 0 for a prolog, else the place before the code. It
// returns false for an epilog: the JIT compiler gives no place to some calls behind one.
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

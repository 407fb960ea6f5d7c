package naming

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/metadata"
)

// native32 reads the native format (dotnet/runtime src/coreclr/vm/nativeformatreader.h). Offsets are
// indices of b, which is a whole image or one section. The bytes are not trusted: each method returns
// false for an offset outside b.
type native32 struct {
	b    []byte
	lazy *lazyImage // fills b before it is used; nil: b is complete
}

func (r native32) byte(at uint32) (byte, bool) {
	if uint64(at) >= uint64(len(r.b)) {
		return 0, false
	}
	r.lazy.need(at, 1)
	return r.b[at], true
}

// unsigned reads a number whose lowest bits contain its length. next is the offset behind it.
func (r native32) unsigned(at uint32) (v, next uint32, ok bool) {
	var raw [8]byte
	if uint64(at) >= uint64(len(r.b)) {
		return 0, 0, false
	}
	r.lazy.need(at, len(raw))
	copy(raw[:], r.b[at:])
	w := binary.LittleEndian.Uint32(raw[:])
	switch {
	case w&1 == 0:
		return w & 0xff >> 1, at + 1, true
	case w&2 == 0:
		return w & 0xffff >> 2, at + 2, true
	case w&4 == 0:
		return w & 0xffffff >> 3, at + 3, true
	case w&8 == 0:
		return w >> 4, at + 4, true
	case w&16 == 0:
		return binary.LittleEndian.Uint32(raw[1:]), at + 5, true
	}
	return 0, 0, false
}

func (r native32) signed(at uint32) (v int32, next uint32, ok bool) {
	u, next, ok := r.unsigned(at)
	switch next - at {
	case 1:
		return int32(u<<25) >> 25, next, ok
	case 2:
		return int32(u<<18) >> 18, next, ok
	case 3:
		return int32(u<<11) >> 11, next, ok
	case 4:
		return int32(u<<4) >> 4, next, ok
	}
	return int32(u), next, ok
}

// index reads element i of an array of 1, 2, or 4 bytes each: size is 0, 1, or 2.
func (r native32) index(base, size, i uint32) (uint32, bool) {
	at := uint64(base) + uint64(i)<<size
	if size > 2 || at+4 > uint64(len(r.b)) {
		return 0, false
	}
	r.lazy.need(uint32(at), 4)
	v := binary.LittleEndian.Uint32(r.b[at:])
	return v & (1<<(8<<size) - 1), true
}

const block = 16 // elements of a NativeArray that share a tree

// element returns the offset of element i of a NativeArray, or false.
func (r native32) element(base, size, i uint32) (uint32, bool) {
	off, ok := r.index(base, size, i/block)
	if !ok {
		return 0, false
	}
	at := base + off
	for bit := uint32(block / 2); bit > 0; bit >>= 1 {
		v, next, ok := r.unsigned(at)
		switch {
		case !ok:
			return 0, false
		case i&bit != 0 && v&2 != 0:
			at += v >> 2
		case i&bit == 0 && v&1 != 0:
			at = next
		case v&3 == 0 && v>>2 == i&(block-1):
			return next, true
		default:
			return 0, false
		}
	}
	return at, true
}

// Flags of an encoded method (src/coreclr/inc/readytorun.h).
const (
	methodInstantiation = 0x04
	methodSlot          = 0x08
	methodMemberRef     = 0x10
	methodConstrained   = 0x20
	methodOwner         = 0x40
	methodContext       = 0x80
)

// method reads an encoded method: its row in this module, 0 for a method that is encoded in another
// way, such as another module's; and the end of the encoding.
func (r native32) method(at uint32) (rid int32, behind uint32, ok bool) {
	s := signature{b: r.b, lazy: r.lazy, at: at, depth: maxDepth}
	flags := s.number()
	if flags&methodContext != 0 {
		s.number()
	}
	if flags&methodOwner != 0 {
		s.typ()
	}
	row := s.number()
	if flags&(methodContext|methodMemberRef|methodSlot) != 0 {
		row = 0
	}
	if flags&methodInstantiation != 0 {
		for range s.count() {
			s.typ()
		}
	}
	if flags&methodConstrained != 0 {
		s.typ()
	}
	return int32(row), s.at, !s.bad
}

// signature skips types (ECMA-335 II.23.2, and the codes readytorun.h adds).
type signature struct {
	b     []byte
	lazy  *lazyImage // as in native32
	at    uint32
	depth int
	bad   bool
}

const (
	maxDepth = 64
	maxArgs  = 1 << 10
)

func (s *signature) byte() byte {
	if s.bad || uint64(s.at) >= uint64(len(s.b)) {
		s.bad = true
		return 0
	}
	s.lazy.need(s.at, 1)
	s.at++
	return s.b[s.at-1]
}

func (s *signature) number() uint32 {
	if s.bad {
		return 0
	}
	s.lazy.need(s.at, 4)
	v, n := metadata.Compressed(s.b, uint64(s.at))
	s.bad = n == 0
	s.at += uint32(n)
	return v
}

func (s *signature) count() uint32 {
	n := s.number()
	if n > maxArgs {
		s.bad = true
		return 0
	}
	return n
}

// typ skips one type.
func (s *signature) typ() {
	if s.depth--; s.depth < 0 || s.bad {
		s.bad = true
		return
	}
	defer func() { s.depth++ }()
	switch code := s.byte(); code {
	case 0x0f, 0x10, 0x1d, 0x45, 0x3d: // pointer, by reference, vector, pinned, native value type
		s.typ()
	case 0x11, 0x12, 0x13, 0x1e, 0x3b: // value type, class, type variables
		s.number()
	case 0x14: // array
		s.typ()
		s.number()
		for range 2 {
			for range s.count() {
				s.number()
			}
		}
	case 0x15: // generic instance
		s.typ()
		for range s.count() {
			s.typ()
		}
	case 0x1b: // function pointer
		if s.byte()&0x10 != 0 {
			s.number()
		}
		for range s.count() + 1 {
			s.typ()
		}
	case 0x1f, 0x20, 0x3f: // modifiers; a type of another module
		s.number()
		s.typ()
	case 0x3e: // canonical
	default:
		s.bad = s.bad || code == 0 || code > 0x1c
	}
}

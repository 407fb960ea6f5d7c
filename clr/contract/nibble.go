package contract

import "encoding/binary"

// A nibble map covers a code heap with one nibble for each 32 bytes: 0, or the start of a method, at
// 4*(nibble-1). Eight nibbles make a word, the first in the highest bits. Since .NET 10, a word without a
// start may be a pointer instead: its lowest nibble is above 8.
const (
	bucketBytes  = 32
	wordBuckets  = 8
	pointerAbove = 8
	maxBack      = 1 << 16 // words a linear search goes back: 16 MiB of code
	backChunk    = 64      // words that it reads at once
)

// start returns the start of the method whose code contains ip, if there is one.
func (t *Tables) start(ip uint64, s *section) (uint64, Reason) {
	var w [2]uint64
	if s.heap == 0 || !t.v.words(s.heap, w[:], t.l.heapMapBase, t.l.heapHeaderMap) {
		return 0, Unreadable
	}
	base, table := w[0], w[1]
	rel := ip - base
	if base > ip || rel >= 1<<32 {
		return 0, Malformed
	}
	start, r := t.nibbles(rel, table)
	if r != Found {
		return 0, r
	}
	if start > rel {
		return 0, Malformed
	}
	if start += base; start < s.begin+8 {
		return 0, Malformed
	}
	return start, Found
}

// nibbles searches the map at table for rel and returns an offset from the base.
func (t *Tables) nibbles(rel, table uint64) (uint64, Reason) {
	bucket := rel / bucketBytes
	index := bucket / wordBuckets
	w, ok := t.v.u32(table + 4*index)
	if !ok {
		return 0, Unreadable
	}
	if !t.l.linear && isPointer(w) {
		return pointer(w), Found
	}
	w >>= 28 - 4*(bucket%wordBuckets)
	if n := uint64(w & 15); n != 0 && n <= rel%bucketBytes/4+1 {
		return bucket*bucketBytes + 4*(n-1), Found
	}
	if w >>= 4; w != 0 {
		return lastStart(w, bucket-1), Found
	}
	if t.l.linear {
		return t.back(index, table)
	}
	if index == 0 {
		return 0, NoMethod
	}
	w, ok = t.v.u32(table + 4*(index-1))
	switch {
	case !ok:
		return 0, Unreadable
	case w == 0:
		return 0, NoMethod
	case isPointer(w):
		return pointer(w), Found
	}
	return lastStart(w, index*wordBuckets-1), Found
}

func isPointer(w uint32) bool { return w&15 > pointerAbove }

func pointer(w uint32) uint64 { return uint64(w&^15) + 4*uint64(w&15-pointerAbove-1) }

// lastStart returns the start in the lowest nonzero nibble of w, which is not 0 and whose lowest nibble
// belongs to bucket. A bucket below 0 wraps, and start detects it as malformed.
func lastStart(w uint32, bucket uint64) uint64 {
	for w&15 == 0 {
		w >>= 4
		bucket--
	}
	return bucket*bucketBytes + 4*uint64(w&15-1)
}

// back searches the words before index for the last start.
func (t *Tables) back(index, table uint64) (uint64, Reason) {
	for left := min(index, maxBack); left > 0; {
		n := min(left, backChunk)
		b, ok := t.v.bytes(table+4*(index-n), int(4*n))
		if !ok {
			return 0, Unreadable
		}
		for i := n; i > 0; i-- {
			if w := binary.LittleEndian.Uint32(b[4*(i-1):]); w != 0 {
				return lastStart(w, (index-n+i)*wordBuckets-1), Found
			}
		}
		index, left = index-n, left-n
	}
	return 0, NoMethod
}

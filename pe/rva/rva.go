// Package rva holds the bytes of an image, indexed by RVA. Readers of unwind data use it for
// a file, a mapped image, a dump with holes, and a copy of one function alike.
//
// Glossary. An *RVA* is an address relative to the image's first byte.
//
// Source: Microsoft, "PE Format", "General concepts" (RVA).
//
// Strategy: a sorted list of blocks that may leave holes; results are parts of one block,
// never copies. Offsets are differences, so that no sum can wrap.
//
// Known gaps: bytes that cross two blocks cannot be read in one call.
package rva

import "sort"

// Block is a part of an image: Data[0] lies at RVA.
type Block struct {
	RVA  uint32
	Data []byte
}

// Blocks are the bytes of an image, sorted by RVA. If two overlap, the one that
// begins later hides the rest of the other, even past its own end.
type Blocks []Block

// Sort makes Blocks of parts in any order. Bytes above 4 GiB are cut off, and
// empty parts dropped.
func Sort(blocks []Block) Blocks {
	out := make(Blocks, 0, len(blocks))
	for _, b := range blocks {
		if room := 1<<32 - uint64(b.RVA); uint64(len(b.Data)) > room {
			b.Data = b.Data[:room]
		}
		if len(b.Data) > 0 {
			out = append(out, b)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].RVA < out[j].RVA })
	return out
}

// At returns the bytes from rva to the end of its block, nil if it lies in none.
func (r Blocks) At(rva uint32) []byte {
	lo, hi := 0, len(r)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r[mid].RVA <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return nil
	}
	b := &r[lo-1]
	if off := rva - b.RVA; uint64(off) < uint64(len(b.Data)) {
		return b.Data[off:]
	}
	return nil
}

// Bytes returns n bytes at rva without copying them. They must lie in one
// block. It allocates nothing.
func (r Blocks) Bytes(rva uint32, n int) ([]byte, bool) {
	b := r.At(rva)
	if n < 0 || n > len(b) {
		return nil, false
	}
	return b[:n:n], true
}

// Tail returns at most max bytes from rva to the end of its block, nil if there
// are none. It does not copy or allocate.
func (r Blocks) Tail(rva uint32, max int) []byte {
	b := r.At(rva)
	if len(b) > max {
		b = b[:max]
	}
	return b
}

// End returns one past the RVA of the highest byte, at most 1<<32-1; 0 without bytes.
func (r Blocks) End() (end uint32) {
	for _, b := range r {
		end = max(end, uint32(min(uint64(b.RVA)+uint64(len(b.Data)), 1<<32-1)))
	}
	return end
}

package pe

import (
	"encoding/binary"
	"sort"
)

// Block is a part of an image: Data[0] lies at RVA.
type Block struct {
	RVA  uint32
	Data []byte
}

// runs are the bytes of an image, sorted by RVA. Where two overlap the one that
// begins later holds.
type runs []Block

func makeRuns(blocks []Block) runs {
	out := make(runs, 0, len(blocks))
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

// at returns the bytes from rva to the end of its run, nil if it lies in none.
func (r runs) at(rva uint32) []byte {
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

// BytesAt returns n bytes at rva without copying them. They must lie in one
// section (or block). It allocates nothing.
func (f *File) BytesAt(rva uint32, n int) ([]byte, bool) {
	b := f.runs.at(rva)
	if n < 0 || n > len(b) {
		return nil, false
	}
	return b[:n:n], true
}

// Tail returns the up to max bytes there are from rva on in its section (or
// block), nil if none. It allocates nothing.
func (f *File) Tail(rva uint32, max int) []byte {
	b := f.runs.at(rva)
	if len(b) > max {
		b = b[:max]
	}
	return b
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// word reads a 32-bit word at rva.
func (f *File) word(rva uint32) (uint32, bool) {
	b := f.runs.at(rva)
	if len(b) < 4 {
		return 0, false
	}
	return u32(b), true
}

// text reads the string at rva up to its NUL. One longer than max or without
// an end is refused.
func (f *File) text(rva uint32, max int) (string, bool) {
	for i, b := 0, f.Tail(rva, max); i < len(b); i++ {
		if b[i] == 0 {
			return string(b[:i]), true
		}
	}
	return "", false
}

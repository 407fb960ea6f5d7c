package arm64

import (
	"encoding/binary"
	"sort"

	"github.com/seedwalk/seedwalk/pe/rva"
)

// RuntimeFunction is one .pdata entry.
type RuntimeFunction struct {
	Begin uint32 // RVA of the first instruction
	Data  uint32 // packed word, or RVA of the .xdata record
}

// Packed reports whether Data is a packed word.
func (f RuntimeFunction) Packed() bool { return f.Data&3 != 0 }

// Length returns the function's length in bytes: by its packed word, or else by
// head, the first XdataHead bytes of its record.
func (f RuntimeFunction) Length(head []byte) (uint32, Fault) {
	if f.Packed() {
		return DecodePacked(f.Data).Length, Fault{}
	}
	i, _, fault := decodeXdataHeader(head)
	return i.Length, fault
}

// EntrySize is the size of a .pdata entry, bytes.
const EntrySize = 8

// ReadEntry reads an entry of EntrySize bytes.
func ReadEntry(b []byte) RuntimeFunction {
	_ = b[7]
	return RuntimeFunction{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}
}

// Table is the exception directory of one image, or of a copy of a part of it,
// with the bytes that its entries point to. It is immutable: all methods are safe
// for concurrent use. The zero Table has no entry.
type Table struct {
	pdata []byte // sorted by begin
	image rva.Blocks
}

// New makes the table of an exception directory. image holds the bytes that the
// entries point to. A directory that is not sorted is sorted in a copy.
func New(pdata []byte, image rva.Blocks) Table {
	return Table{pdata: sorted(pdata), image: image}
}

// Len is the number of entries.
func (t *Table) Len() int { return len(t.pdata) / EntrySize }

// Entry returns entry i in the order of their begins, 0 <= i < Len.
func (t *Table) Entry(i int) RuntimeFunction { return ReadEntry(t.pdata[i*EntrySize:]) }

// Index returns the number of the last entry that begins at or before rva, or
// -1. The entry covers rva only if it is long enough.
func (t *Table) Index(rva uint32) int {
	lo, hi := 0, t.Len()
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if binary.LittleEndian.Uint32(t.pdata[mid*EntrySize:]) <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// sorted returns a directory sorted by begin: itself if it is, else a copy.
func sorted(pdata []byte) []byte {
	n := len(pdata) / EntrySize
	begin := func(i int) uint32 { return ReadEntry(pdata[i*EntrySize:]).Begin }
	if sort.SliceIsSorted(make([]struct{}, n), func(i, j int) bool { return begin(i) < begin(j) }) {
		return pdata
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return begin(order[i]) < begin(order[j]) })
	out := make([]byte, 0, n*EntrySize)
	for _, i := range order {
		out = append(out, pdata[i*EntrySize:(i+1)*EntrySize]...)
	}
	return out
}

// Buffer holds the codes of one expanded packed word.
type Buffer [64]byte

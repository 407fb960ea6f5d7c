//go:build linux || windows

package probe

import (
	"encoding/binary"
	"sync/atomic"
	"unicode/utf16"
)

// Dropped sums up the allocations or exceptions of one type for which the ring was full.
type Dropped struct {
	Exception bool
	Type      string // cut at MaxTypeName UTF-16 units; "" if the probe's table of types was full
	Count     uint64
	Bytes     uint64 // represented by the allocations
}

// MaxTypeName is the length of the longest type name of a Dropped, in UTF-16 units.
const MaxTypeName = typeName / 2

// otherThrown is the index of the entry for exceptions of other types. The entry for allocations of other
// types is the one before.
const otherThrown = 1

// Dropped calls g for every type with dropped events. Counts are totals since the recording began.
func (f *File) Dropped(g func(Dropped)) {
	for i := range f.types {
		t := &f.types[i]
		n := atomic.LoadUint64(&t.count)
		if n == 0 {
			continue
		}
		d := Dropped{Exception: i == otherThrown || atomic.LoadUint64(&t.key)&thrown != 0, Count: n,
			Bytes: atomic.LoadUint64(&t.bytes)}
		if size := atomic.LoadUint32(&t.size); size > 0 {
			d.Type = typeText(t.name[:min(size-1, typeName)])
		}
		g(d)
	}
}

// typeText decodes UTF-16.
func typeText(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

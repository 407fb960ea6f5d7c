package perfevent

import (
	"encoding/binary"
	"sync/atomic"
)

// Buffer reads the records of a ring's memory. The kernel writes records up to head; the
// reader gives room back by moving tail.
type Buffer struct {
	data       []byte // a power of two bytes
	head, tail *uint64
	record     [MaxRecord]byte // one that wraps around
	broken     uint64
}

// NewBuffer makes a reader of data, whose size is a power of two, at least 8.
func NewBuffer(data []byte, head, tail *uint64) *Buffer {
	return &Buffer{data: data, head: head, tail: tail}
}

// Broken returns how often the ring's bytes made no sense and were skipped up to head.
func (b *Buffer) Broken() uint64 { return b.broken }

// Waiting returns the number of bytes that have not been read.
func (b *Buffer) Waiting() uint64 { return atomic.LoadUint64(b.head) - atomic.LoadUint64(b.tail) }

// Read gives each record that is there now to take, and gives its room back afterwards. The
// bytes are valid until take returns. The number of records is bounded by the ring's size.
func (b *Buffer) Read(take func(record []byte)) {
	head, tail := atomic.LoadUint64(b.head), atomic.LoadUint64(b.tail) // acquires what was written before head
	if head-tail > uint64(len(b.data)) {
		b.skip(head)
		return
	}
	for head-tail >= header {
		size := uint64(binary.LittleEndian.Uint16(b.part(tail, header)[6:]))
		if size < header || size%8 != 0 || size > head-tail {
			b.skip(head)
			return
		}
		take(b.part(tail, size))
		tail += size
		atomic.StoreUint64(b.tail, tail) // releases what has been read
	}
}

// skip gives up all that is there.
func (b *Buffer) skip(head uint64) {
	b.broken++
	atomic.StoreUint64(b.tail, head)
}

// part returns n bytes of the ring from pos on, copied if they wrap around.
func (b *Buffer) part(pos, n uint64) []byte {
	i := pos & uint64(len(b.data)-1)
	if i+n <= uint64(len(b.data)) {
		return b.data[i : i+n]
	}
	k := copy(b.record[:n], b.data[i:])
	copy(b.record[k:n], b.data)
	return b.record[:n]
}

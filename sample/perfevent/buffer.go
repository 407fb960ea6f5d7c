package perfevent

import (
	"encoding/binary"
	"sync/atomic"
)

// Buffer reads the records of a ring's memory. The kernel writes records up to head; the reader frees them by
// moving tail.
type Buffer struct {
	data       []byte // a power of two bytes
	head, tail *uint64
	record     [MaxRecord]byte // a record that wraps around
	broken     uint64
}

// NewBuffer returns a reader of data, whose size is a power of two, at least 8.
func NewBuffer(data []byte, head, tail *uint64) *Buffer {
	return &Buffer{data: data, head: head, tail: tail}
}

// Broken returns how often the ring's bytes were malformed and skipped up to head.
func (b *Buffer) Broken() uint64 { return b.broken }

// Waiting returns the number of bytes that have not been read.
func (b *Buffer) Waiting() uint64 { return atomic.LoadUint64(b.head) - atomic.LoadUint64(b.tail) }

// Read passes each available record to take and then frees it. The bytes are valid until take returns. The
// number of records is bounded by the ring's size.
func (b *Buffer) Read(take func(record []byte)) {
	// acquires what was written before head
	head, tail := atomic.LoadUint64(b.head), atomic.LoadUint64(b.tail)
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

// skip drops all records up to head.
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

// Package buf is the one bounds-checked reader for unwind tables: a cursor
// over little-endian bytes whose first failure sticks.
//
// Strategy: after a failure, every read returns zero and the position stays. So a
// parser checks once at the end of a record, and reports the offset at which the
// bytes ran out. A failed reader is empty, so that a loop over the remaining bytes
// ends even if it does not check each read. The reader is a plain value, allocates
// nothing, and may be used on hot paths. It has no method that allocates by a size
// from the input.
//
// Sources: DWARF 5 section 7.6 (LEB128).
//
// Glossary. LEB128: DWARF's integers of variable length, seven bits per byte; *over-long*
// if bytes follow that do not change the value.
//
// Known gaps: big-endian input.
package buf

import "encoding/binary"

// Fault is the reason why a Reader failed.
type Fault uint8

const (
	FaultNone  Fault = iota
	FaultShort       // the bytes end before the value does
	FaultLEB         // a LEB128 number has more than 64 significant bits or more than 10 bytes
)

func (f Fault) String() string {
	switch f {
	case FaultNone:
		return "none"
	case FaultShort:
		return "truncated"
	case FaultLEB:
		return "LEB128 number too long"
	}
	return "fault?"
}

// Reader reads little-endian values from Data, which a failure cuts off at the
// position of what failed. The zero value is at the end of nothing.
type Reader struct {
	Data  []byte
	pos   int
	fault Fault
}

// At returns a reader of data that starts at offset pos; a pos outside data
// gives a reader that has failed.
func At(data []byte, pos uint64) Reader {
	if pos > uint64(len(data)) {
		return Reader{Data: data, pos: len(data), fault: FaultShort}
	}
	return Reader{Data: data, pos: int(pos)}
}

// Pos is the offset in Data of the next byte, or of the value that failed.
func (r *Reader) Pos() int { return r.pos }

// Len is the number of bytes left, 0 after a failure.
func (r *Reader) Len() int { return len(r.Data) - r.pos }

// Rest are the bytes left, none after a failure.
func (r *Reader) Rest() []byte { return r.Data[r.pos:] }

// OK reports whether no read has failed yet.
func (r *Reader) OK() bool { return r.fault == FaultNone }

// Fail makes the reader fail with f unless it has failed already.
func (r *Reader) Fail(f Fault) {
	if r.fault == FaultNone {
		r.fault, r.Data = f, r.Data[:r.pos]
	}
}

// take steps over n bytes and returns where they start, or -1.
func (r *Reader) take(n int) int {
	if n < 0 || n > len(r.Data)-r.pos {
		r.Fail(FaultShort)
		return -1
	}
	p := r.pos
	r.pos += n
	return p
}

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if r.pos < len(r.Data) {
		r.pos++
		return r.Data[r.pos-1]
	}
	return r.short()
}

// short fails a read that found too little. It stands apart so that those who read stay
// small enough to be inlined.
//
//go:noinline
func (r *Reader) short() uint8 {
	r.Fail(FaultShort)
	return 0
}

// U16 reads two bytes.
func (r *Reader) U16() uint16 {
	p := r.take(2)
	if p < 0 {
		return 0
	}
	return binary.LittleEndian.Uint16(r.Data[p:])
}

// U32 reads four bytes.
func (r *Reader) U32() uint32 {
	p := r.take(4)
	if p < 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(r.Data[p:])
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	p := r.take(8)
	if p < 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(r.Data[p:])
}

// Bytes returns the next n bytes without copying them.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(r.Len()) {
		r.Fail(FaultShort)
		return nil
	}
	p := r.take(int(n))
	if p < 0 {
		return nil
	}
	return r.Data[p:r.pos:r.pos]
}

// Count reads eight bytes: a number of items of at least size bytes each, which must fit into what is left.
func (r *Reader) Count(size int) int {
	n := r.U64()
	if n > uint64(r.Len()/size) {
		r.Fail(FaultShort)
		return 0
	}
	return int(n)
}

// Skip steps over n bytes.
func (r *Reader) Skip(n uint64) { r.Bytes(n) }

// CString returns the at most limit bytes up to the next NUL and steps over
// both. A longer string is a failure, so that many records cannot make a reader
// look through the same megabytes again and again.
func (r *Reader) CString(limit int) []byte {
	for i := r.pos; i < len(r.Data) && i-r.pos <= limit; i++ {
		if r.Data[i] == 0 {
			s := r.Data[r.pos:i:i]
			r.pos = i + 1
			return s
		}
	}
	r.Fail(FaultShort)
	return nil
}

// maxLEB is the length of the longest number of 64 bits. Padding beyond it is
// refused, so that a record cannot hide behind megabytes of 0x80.
const maxLEB = 10

// ULEB reads an unsigned LEB128 number.
func (r *Reader) ULEB() uint64 {
	if r.pos < len(r.Data) && r.Data[r.pos] < 0x80 {
		v := r.Data[r.pos]
		r.pos++
		return uint64(v)
	}
	return r.uleb()
}

func (r *Reader) uleb() uint64 {
	var v uint64
	start := r.pos
	for i := 0; i < maxLEB; i++ {
		b := r.U8()
		if r.fault != FaultNone {
			return 0
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == maxLEB-1 && b > 1 {
				break
			}
			return v
		}
	}
	r.pos = start
	r.Fail(FaultLEB)
	return 0
}

// SLEB reads a signed LEB128 number.
func (r *Reader) SLEB() int64 {
	var v uint64
	start := r.pos
	for i := 0; i < maxLEB; i++ {
		b := r.U8()
		if r.fault != FaultNone {
			return 0
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b >= 0x80 {
			continue
		}
		if i == maxLEB-1 && b != 0 && b != 0x7f {
			break
		}
		if b&0x40 != 0 && i < maxLEB-1 {
			v |= ^uint64(0) << (7 * (i + 1))
		}
		return int64(v)
	}
	r.pos = start
	r.Fail(FaultLEB)
	return 0
}

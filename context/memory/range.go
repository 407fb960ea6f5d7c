package memory

import "encoding/binary"

// Range is a half-open range of addresses; the zero Range is empty.
type Range struct{ Start, End uint64 }

// Holds reports whether addr is in the range.
func (r Range) Holds(addr uint64) bool { return addr >= r.Start && addr < r.End }

// Reader reads the memory of a process, a core, or a dump. ReadAt fills all of p from addr,
// or returns false. It must not fault.
type Reader interface {
	ReadAt(p []byte, addr uint64) bool
}

// A process has no memory below lowest, nor from highest on. Word and Uint32 do not try to read there.
const lowest, highest = 4096, 1 << 63

// Word reads the word at an address, 0 and false if it is unreadable.
func Word(r Reader, addr uint64) (uint64, bool) {
	var b [8]byte
	if addr < lowest || addr >= highest || !r.ReadAt(b[:], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// Uint32 reads the 32-bit number at an address, 0 and false if it is unreadable.
func Uint32(r Reader, addr uint64) (uint32, bool) {
	var b [4]byte
	if addr < lowest || addr >= highest || !r.ReadAt(b[:], addr) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b[:]), true
}

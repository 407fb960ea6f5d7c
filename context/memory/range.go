package memory

// Range is a half-open range of addresses; the zero Range is empty.
type Range struct{ Start, End uint64 }

// Holds reports whether addr is in the range.
func (r Range) Holds(addr uint64) bool { return addr >= r.Start && addr < r.End }

// Reader reads the memory of a process, a core, or a dump. ReadAt fills all of p from addr,
// or returns false. It must not fault.
type Reader interface {
	ReadAt(p []byte, addr uint64) bool
}
